package handover

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/move"
)

// A reader reads a World. Its first error ends it.
type reader struct {
	client.Client
	world *World
	err   error
}

// read reads all that a handover depends on.
func (r *Run) read(ctx context.Context) (*World, error) {
	w := &World{System: r.System, Namespace: r.Namespace, From: r.From, To: r.To, Differences: r.Differences, Versions: map[schema.GroupKind]string{}}
	x := &reader{Client: r.Client, world: w}
	theirs := func(kind string) schema.GroupVersionKind {
		return x.served(schema.GroupKind{Group: w.System.group(), Kind: kind})
	}
	x.get(ctx, theirs("MachineDeployment"), r.From)
	if from := w.from(); from != nil {
		if rec := recordOf(from); rec != nil {
			w.To = cmp.Or(w.To, rec.To)
		}
	}
	x.list(ctx, theirs("MachineSet"))
	x.list(ctx, theirs("Machine"))
	x.list(ctx, machinev1alpha1.MachineGroupVersionKind)
	x.list(ctx, machinev1alpha1.MachineSetGroupVersionKind)
	if w.To != "" {
		x.get(ctx, machinev1alpha1.MachineDeploymentGroupVersionKind, w.To)
	}
	x.class(ctx)
	if r.Target != nil && x.err == nil {
		nodes := &unstructured.UnstructuredList{}
		nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
		if err := r.Target.List(ctx, nodes); err != nil {
			return nil, fmt.Errorf("target cluster: cannot list Nodes: %w", err)
		}
		for i := range nodes.Items {
			w.Add(&nodes.Items[i])
		}
	}
	if x.err == nil {
		w.System.read(ctx, x, r)
	}
	if x.err != nil {
		return nil, x.err
	}
	var err error
	w.Installation, err = move.Installation(ctx, r.Client)
	return w, err
}

// served returns a kind in the version that the API server prefers.
func (x *reader) served(k schema.GroupKind) schema.GroupVersionKind {
	if x.err != nil {
		return schema.GroupVersionKind{}
	}
	m, err := x.RESTMapper().RESTMapping(k)
	if err != nil {
		x.err = fmt.Errorf("the API server does not serve %s: is %s installed in this cluster? %w", k, x.world.System.title(), err)
		return schema.GroupVersionKind{}
	}
	x.world.Versions[k] = m.GroupVersionKind.Version
	return m.GroupVersionKind
}

// get adds an object, if it exists.
func (x *reader) get(ctx context.Context, gvk schema.GroupVersionKind, name string) {
	if x.err != nil {
		return
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	key := client.ObjectKey{Namespace: x.world.Namespace, Name: name}
	if m, err := x.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err == nil && m.Scope.Name() == meta.RESTScopeNameRoot {
		key.Namespace = ""
	}
	switch err := x.Client.Get(ctx, key, o); {
	case kerrors.IsNotFound(err):
	case err != nil:
		x.err = fmt.Errorf("cannot read %s %s: %w", gvk.Kind, name, err)
	default:
		x.world.Add(o)
	}
}

// list adds the objects of a kind.
func (x *reader) list(ctx context.Context, gvk schema.GroupVersionKind) {
	if x.err != nil {
		return
	}
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := x.List(ctx, l, client.InNamespace(x.world.Namespace)); err != nil {
		x.err = fmt.Errorf("cannot list %s of %s in namespace %s: %w", gvk.Kind, gvk.Group, x.world.Namespace, err)
		return
	}
	for i := range l.Items {
		x.world.Add(&l.Items[i])
	}
}

// class adds the class of Drover's set.
func (x *reader) class(ctx context.Context) {
	if x.err != nil || x.world.set() == nil {
		return
	}
	kind, name := x.world.classRef()
	x.get(ctx, machinev1alpha1.SchemeGroupVersion.WithKind(kind), name)
}
