package handover

import (
	"cmp"
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterapi "github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	// coreGroup is the API group of Cluster API's own kinds, and the prefix of its labels.
	coreGroup = "cluster.x-k8s.io"

	labelCluster      = "cluster.x-k8s.io/cluster-name"
	labelControlPlane = "cluster.x-k8s.io/control-plane"
	labelTopology     = "topology.cluster.x-k8s.io/owned"
	// annotationPausedCAPI has any value.
	annotationPausedCAPI = machinev1alpha1.AnnotationPaused
	annotationRemediate  = "cluster.x-k8s.io/remediate-machine"
	prefixPreDrain       = "pre-drain.delete.hook.machine.cluster.x-k8s.io"
	prefixPreTerminate   = "pre-terminate.delete.hook.machine.cluster.x-k8s.io"
)

// ClusterAPI is Cluster API, whose controllers may run. The VM of a Machine is its InfraMachine, which provider-clusterapi keeps.
var ClusterAPI System = capi{}

type capi struct{}

func (capi) group() string { return coreGroup }

func (capi) annotation() string { return clusterapi.AnnotationImported }

func (capi) title() string { return "Cluster API" }

func (capi) vmKind(*World) schema.GroupVersionKind { return clusterapi.VirtualMachineGroupVersionKind }

// member of a Machine of Cluster API. The external name of its VM is the UID that its InfraMachine had when it was imported.
func (capi) member(w *World, o *unstructured.Unstructured) (member, bool) {
	m := member{
		name: o.GetName(), machine: o, external: o.GetLabels()[clusterapi.LabelVirtualMachine],
		provider: stringAt(o, "spec", "providerID"), nodeName: stringAt(o, "status", "nodeRef", "name"),
	}
	if k, name := w.infraOf(o); name != "" {
		m.infra = w.get(k.Group, k.Kind, name)
	}
	if m.infra != nil {
		m.hasVM, m.external = true, cmp.Or(m.infra.GetLabels()[clusterapi.LabelVirtualMachine], string(m.infra.GetUID()))
	}
	return m, true
}

func (capi) record(_ *World, o *unstructured.Unstructured, r *record) {
	if v, ok := o.GetAnnotations()[annotationPausedCAPI]; ok {
		r.Paused = &v
	}
}

func (capi) detached(w *World, machine *unstructured.Unstructured) map[string]string {
	return w.unselected(machine, labelCluster)
}

func (capi) reported(_ *World, m member) string {
	return stringAt(m.vm, "status", "atProvider", "providerID")
}

// cluster is the Cluster of the MachineDeployment of Cluster API.
func (w *World) cluster() *unstructured.Unstructured {
	if w.from() == nil {
		return nil
	}
	return w.get(coreGroup, "Cluster", stringAt(w.from(), "spec", "clusterName"))
}

// infraOf returns the kind and the name of the InfraMachine of a Machine, by the reference of either contract.
func (w *World) infraOf(machine *unstructured.Unstructured) (schema.GroupVersionKind, string) {
	ref, _, _ := unstructured.NestedStringMap(machine.Object, "spec", "infrastructureRef")
	if ref == nil {
		// A reference of v1beta1 may have fields of other types.
		return schema.GroupVersionKind{}, ""
	}
	gvk := schema.FromAPIVersionAndKind(ref["apiVersion"], ref["kind"])
	if ref["apiVersion"] == "" {
		gk := schema.GroupKind{Group: ref["apiGroup"], Kind: ref["kind"]}
		gvk = gk.WithVersion(w.Versions[gk])
	}
	return gvk, ref["name"]
}

// read adds the Cluster, the VirtualMachines, the InfraMachines of the Machines that change hands, and the configuration of the class.
func (capi) read(ctx context.Context, x *reader, r *Run) {
	if from := x.world.from(); from != nil {
		x.get(ctx, x.served(schema.GroupKind{Group: coreGroup, Kind: "Cluster"}), stringAt(from, "spec", "clusterName"))
	}
	x.list(ctx, clusterapi.VirtualMachineGroupVersionKind)
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
	if class := x.world.class(); class != nil && stringAt(class, "spec", "provider") == "clusterapi" {
		x.get(ctx, clusterapi.SchemeGroupVersion.WithKind("ClusterProviderConfig"), stringAt(class, "spec", "providerConfigRef", "name"))
	}
	x.stopped(ctx, r.now())
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
	w := &World{System: ClusterAPI, Namespace: namespace, From: from, Versions: map[schema.GroupKind]string{}}
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
