package handover

import (
	"cmp"
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterapi "github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
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
	w := &World{Namespace: r.Namespace, From: r.From, To: r.To, Differences: r.Differences, Versions: map[schema.GroupKind]string{}}
	x := &reader{Client: r.Client, world: w}
	core := func(kind string) schema.GroupVersionKind {
		return x.served(schema.GroupKind{Group: coreGroup, Kind: kind})
	}
	x.get(ctx, core("MachineDeployment"), r.From)
	if from := w.from(); from != nil {
		x.get(ctx, core("Cluster"), stringAt(from, "spec", "clusterName"))
		if rec := recordOf(from); rec != nil {
			w.To = cmp.Or(w.To, rec.To)
		}
	}
	x.list(ctx, core("MachineSet"))
	x.list(ctx, core("Machine"))
	x.list(ctx, clusterapi.VirtualMachineGroupVersionKind)
	x.list(ctx, machinev1alpha1.MachineGroupVersionKind)
	x.list(ctx, machinev1alpha1.MachineSetGroupVersionKind)
	if w.To != "" {
		x.get(ctx, machinev1alpha1.MachineDeploymentGroupVersionKind, w.To)
	}
	x.infraMachines(ctx)
	x.class(ctx)
	x.stopped(ctx, r.now())
	if x.err != nil {
		return nil, x.err
	}
	if r.Target != nil {
		nodes := &unstructured.UnstructuredList{}
		nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
		if err := r.Target.List(ctx, nodes); err != nil {
			return nil, fmt.Errorf("target cluster: cannot list Nodes: %w", err)
		}
		for i := range nodes.Items {
			w.Add(&nodes.Items[i])
		}
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
		x.err = fmt.Errorf("the API server does not serve %s: is Cluster API installed in this cluster? %w", k, err)
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

// infraMachines adds the InfraMachines of the Machines that change hands.
func (x *reader) infraMachines(ctx context.Context) {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, m := range x.world.machines() {
		k, _ := x.world.infraOf(m)
		if k.Version == "" && k.Kind != "" {
			k = x.served(k.GroupKind())
		}
		if k.Kind != "" && !kinds[k] {
			kinds[k] = true
			x.list(ctx, k)
		}
	}
}

// class adds the class of Drover's set, and its configuration.
func (x *reader) class(ctx context.Context) {
	if x.err != nil || x.world.set() == nil {
		return
	}
	kind, name := x.world.classRef()
	x.get(ctx, machinev1alpha1.SchemeGroupVersion.WithKind(kind), name)
	if class := x.world.class(); class != nil && stringAt(class, "spec", "provider") == "clusterapi" {
		x.get(ctx, clusterapi.SchemeGroupVersion.WithKind("ClusterProviderConfig"), stringAt(class, "spec", "providerConfigRef", "name"))
	}
}

// stopped finds out whether Cluster API's own controllers were stopped: their Lease exists, and is not held. Without a Lease they
// may run without an election of a leader.
func (x *reader) stopped(ctx context.Context, now time.Time) {
	if x.err != nil {
		return
	}
	l := &coordinationv1.LeaseList{}
	if err := x.List(ctx, l, client.MatchingFields{"metadata.name": clusterapi.LeaseOfClusterAPI}); err != nil {
		x.err = fmt.Errorf("cannot list Leases %s: %w", clusterapi.LeaseOfClusterAPI, err)
		return
	}
	held := false
	for _, lease := range l.Items {
		held = held || clusterapi.IsHeld(lease.Spec, now)
	}
	x.world.Stopped = len(l.Items) > 0 && !held
}

// Kubeconfig returns the kubeconfig of the target cluster that Cluster API keeps for the Cluster of a MachineDeployment.
func Kubeconfig(ctx context.Context, c client.Client, namespace, from string) ([]byte, error) {
	w := &World{Namespace: namespace, From: from, Versions: map[schema.GroupKind]string{}}
	x := &reader{Client: c, world: w}
	if x.get(ctx, x.served(schema.GroupKind{Group: coreGroup, Kind: "MachineDeployment"}), from); x.err != nil {
		return nil, x.err
	}
	if w.from() == nil {
		return nil, fmt.Errorf("MachineDeployment.%s %s/%s does not exist", coreGroup, namespace, from)
	}
	s := &corev1.Secret{}
	name := stringAt(w.from(), "spec", "clusterName") + "-kubeconfig"
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, s); err != nil {
		return nil, fmt.Errorf("cannot read Secret %s/%s with the kubeconfig of the target cluster: name one by --target-kubeconfig: %w", namespace, name, err)
	}
	if len(s.Data["value"]) == 0 {
		return nil, fmt.Errorf("no key value with a kubeconfig in Secret %s/%s: name one by --target-kubeconfig", namespace, name)
	}
	return s.Data["value"], nil
}
