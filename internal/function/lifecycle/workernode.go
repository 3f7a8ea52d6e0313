package lifecycle

import (
	"maps"
	"slices"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	xpv2 "github.com/crossplane/crossplane-runtime/v2/apis/common/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
)

// finalizerManaged is that of crossplane-runtime on every managed resource.
const finalizerManaged = "finalizer.managedresource.crossplane.io"

// workerNode is wanted from the moment that the providerID is known, for ever: a
// Machine without it would be deleted without a drain.
func workerNode(o Observed, u *machinev1alpha1.UpdateStatus, phase machinev1alpha1.MachinePhase, preserved bool) *clusterv1alpha1.WorkerNode {
	id := providerID(o)
	if id == "" {
		return nil
	}
	m := o.Machine
	wn := &clusterv1alpha1.WorkerNode{
		TypeMeta: metav1.TypeMeta{APIVersion: clusterv1alpha1.SchemeGroupVersion.String(), Kind: "WorkerNode"},
		ObjectMeta: metav1.ObjectMeta{
			Name:   names.OfMachine(m.Name, m.UID),
			Labels: map[string]string{machinev1alpha1.LabelMachine: m.Name},
		},
		Spec: clusterv1alpha1.WorkerNodeSpec{
			ManagedResourceSpec: xpv2.ManagedResourceSpec{
				ProviderConfigReference: &xpv1.ProviderConfigReference{Kind: m.Spec.ClusterRef.Kind, Name: m.Spec.ClusterRef.Name},
			},
			ForProvider: clusterv1alpha1.WorkerNodeParameters{
				ProviderID:  id,
				Addresses:   vmAddresses(o),
				Labels:      labels(m),
				Annotations: annotations(m),
				Drain: clusterv1alpha1.WorkerNodeDrain{
					Drain: m.Spec.Drain,
					Skip:  m.Annotations[machinev1alpha1.AnnotationSkipDrain] == "true",
				},
			},
		},
	}
	p := &wn.Spec.ForProvider
	p.Drained = m.Spec.InPlaceUpdate != nil && begun(u)
	// Its controller would add it with a write of its own. It is kept as long as it
	// is there, and nothing may be added to what is being deleted.
	if was := o.WorkerNode; was == nil || was.DeletionTimestamp == nil || slices.Contains(was.Finalizers, finalizerManaged) {
		wn.Finalizers = []string{finalizerManaged}
	}
	for _, t := range m.Spec.Taints {
		p.Taints = append(p.Taints, clusterv1alpha1.NodeTaint(t))
	}
	for _, t := range m.Spec.StartupTaints {
		p.StartupTaints = append(p.StartupTaints, clusterv1alpha1.NodeTaint(t))
	}
	onNode(p, m.Spec.InPlaceUpdate, u)
	if o.NodesByName {
		p.NodeName = names.OfMachine(m.Name, m.UID)
	}
	protect(p, o, phase, preserved)
	return wn
}

// providerID of the Machine's VM. A WorkerNode keeps the one that it was made with,
// and a Machine remembers it when its VM can no longer be asked.
func providerID(o Observed) string {
	switch {
	case o.WorkerNode != nil && o.WorkerNode.Spec.ForProvider.ProviderID != "":
		return o.WorkerNode.Spec.ForProvider.ProviderID
	case o.VM.ProviderID != "":
		return o.VM.ProviderID
	}
	return o.Machine.Status.ProviderID
}

// vmAddresses are those that the cloud tells of the VM, or told last: never what the
// Node says of itself.
func vmAddresses(o Observed) []clusterv1alpha1.NodeAddress {
	if len(o.VM.Addresses) == 0 && o.WorkerNode != nil {
		return o.WorkerNode.Spec.ForProvider.Addresses
	}
	var out []clusterv1alpha1.NodeAddress
	for _, a := range o.VM.Addresses {
		out = append(out, clusterv1alpha1.NodeAddress{Type: a.Type, Address: a.Address})
	}
	return out
}

func labels(m *machinev1alpha1.Machine) map[string]string {
	out := map[string]string{}
	maps.Copy(out, m.Spec.Metadata.Labels)
	return out
}

// annotations by which people and the cluster-autoscaler find a Node's Machine.
func annotations(m *machinev1alpha1.Machine) map[string]string {
	out := map[string]string{}
	maps.Copy(out, m.Spec.Metadata.Annotations)
	out[machinev1alpha1.AnnotationMachine] = m.Name
	out[machinev1alpha1.AnnotationNamespace] = m.Namespace
	out[machinev1alpha1.AnnotationCluster] = m.Spec.ClusterRef.Name
	return out
}
