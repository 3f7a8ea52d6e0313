package move

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// A reference to an object that users write.
type reference struct {
	kind            schema.GroupVersionKind
	namespace, name string
}

func (r reference) String() string {
	if r.namespace == "" {
		return r.kind.Kind + " " + r.name
	}
	return fmt.Sprintf("%s %s/%s", r.kind.Kind, r.namespace, r.name)
}

// check fails if there is an obstacle to the move. It changes nothing.
func (m *Move) check(ctx context.Context) error {
	o, err := m.objects(ctx)
	if err != nil {
		return err
	}
	var problems []string
	for _, obj := range o.All() {
		if obj.GetAnnotations()[annotationMove] == "" && m.Source != nil {
			problems = append(problems, unfit(obj)...)
		}
	}
	missing, err := m.missing(ctx, o)
	if err != nil {
		return err
	}
	taken, err := m.taken(ctx, o)
	if err != nil {
		return err
	}
	problems = slices.Concat(problems, missing, taken)
	if len(problems) == 0 {
		return nil
	}
	return errors.New("nothing was moved:\n  " + strings.Join(problems, "\n  "))
}

// unfit returns the obstacles in an object of the source.
func unfit(obj *unstructured.Unstructured) []string {
	var out []string
	if xpmeta.IsPaused(obj) {
		out = append(out, fmt.Sprintf("%s is paused: remove its annotation %s first", describe(obj), annotationPaused))
	}
	if obj.GetKind() != machinev1alpha1.MachineGroupVersionKind.Kind {
		return out
	}
	switch m, err := machineOf(obj); {
	case err != nil:
		out = append(out, err.Error())
	case m.Status.Identity == nil && m.Status.NodeRef == nil && m.Status.Phase != machinev1alpha1.MachineFailed && hasVM(m):
		out = append(out, fmt.Sprintf("Machine %s has a VM whose Node has not joined: wait for it, or delete the Machine", m.GetName()))
	}
	return out
}

func hasVM(m *machinev1alpha1.Machine) bool {
	return slices.ContainsFunc(m.Status.ResourceRefs, func(r machinev1alpha1.ComposedReference) bool { return r.Role == machinev1alpha1.ResourceVM })
}

// missing returns the objects that the destination lacks.
func (m *Move) missing(ctx context.Context, o Objects) ([]string, error) {
	wanted := map[reference]bool{}
	if len(o.All()) > 0 {
		wanted[reference{kind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, name: m.Namespace}] = true
	}
	for _, u := range o.Machines {
		m.refer(wanted, u, "spec")
	}
	for _, u := range slices.Concat(o.Sets, o.Deployments) {
		m.refer(wanted, u, "spec", "template", "spec")
	}
	var out []string
	for _, ref := range slices.SortedFunc(maps.Keys(wanted), func(a, b reference) int { return strings.Compare(a.String(), b.String()) }) {
		refused, err := m.find(ctx, ref)
		switch {
		case refused != "":
			out = append(out, "the destination: "+refused)
		case kerrors.IsNotFound(err) || meta.IsNoMatchError(err):
			out = append(out, fmt.Sprintf("the destination has no %s: create it there first", ref))
		case err != nil:
			return nil, fmt.Errorf("destination: cannot read %s: %w", ref, err)
		}
	}
	kinds, err := o.kinds()
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		if _, err := m.Destination.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
			out = append(out, fmt.Sprintf("the destination has no kind %s: install its provider there first", kind.GroupKind()))
		}
	}
	return out, nil
}

// find reads a referenced object in the destination. It returns the refusal of a ClusterMachineClass that does
// not serve the namespace there.
func (m *Move) find(ctx context.Context, ref reference) (refused string, err error) {
	key := client.ObjectKey{Namespace: ref.namespace, Name: ref.name}
	if ref.kind != machinev1alpha1.ClusterMachineClassGroupVersionKind {
		is := &metav1.PartialObjectMetadata{}
		is.SetGroupVersionKind(ref.kind)
		return "", m.Destination.Get(ctx, key, is)
	}
	u, class := &unstructured.Unstructured{}, &machinev1alpha1.ClusterMachineClass{}
	u.SetGroupVersionKind(ref.kind)
	if err := m.Destination.Get(ctx, key, u); err != nil {
		return "", err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, class); err != nil {
		return "", err
	}
	machine := &machinev1alpha1.Machine{}
	machine.Namespace = m.Namespace
	machine.Spec.ClassRef = class.AsMachineClass().Reference()
	if problem := plan.Admit(class, machine, "classRef.name"); problem != nil {
		return problem.Message, nil
	}
	return "", nil
}

// refer adds the references in a Machine's spec.
func (m *Move) refer(wanted map[reference]bool, u *unstructured.Unstructured, path ...string) {
	field := func(names ...string) string {
		s, _, _ := unstructured.NestedString(u.Object, append(slices.Clone(path), names...)...)
		return s
	}
	class := machinev1alpha1.ClassReference{Kind: field("classRef", "kind"), Name: field("classRef", "name")}
	switch {
	case class.Name == "":
	case class.IsCluster():
		wanted[reference{kind: machinev1alpha1.ClusterMachineClassGroupVersionKind, name: class.Name}] = true
	default:
		wanted[reference{kind: machinev1alpha1.MachineClassGroupVersionKind, namespace: m.Namespace, name: class.Name}] = true
	}
	cluster := field("clusterRef", "name")
	switch kind := field("clusterRef", "kind"); {
	case cluster == "":
	case kind == "ProviderConfig":
		wanted[reference{kind: clusterv1alpha1.SchemeGroupVersion.WithKind(kind), namespace: m.Namespace, name: cluster}] = true
	default:
		wanted[reference{kind: clusterv1alpha1.SchemeGroupVersion.WithKind("ClusterProviderConfig"), name: cluster}] = true
	}
}

// taken returns the names that other objects in the destination already have.
func (m *Move) taken(ctx context.Context, o Objects) ([]string, error) {
	var out []string
	for _, obj := range o.All() {
		is := &metav1.PartialObjectMetadata{}
		is.SetGroupVersionKind(obj.GroupVersionKind())
		err := m.Destination.Get(ctx, client.ObjectKeyFromObject(obj), is)
		switch {
		case kerrors.IsNotFound(err) || meta.IsNoMatchError(err):
		case err != nil:
			return nil, fmt.Errorf("destination: cannot read %s: %w", describe(obj), err)
		case is.GetAnnotations()[annotationMove] != m.origin(obj) && is.GetAnnotations()[annotationFrom] != m.origin(obj):
			out = append(out, fmt.Sprintf("the destination has another %s already", describe(obj)))
		}
	}
	return out, nil
}
