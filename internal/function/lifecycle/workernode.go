package lifecycle

import (
	"maps"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/workernode"
)

// workerNode has what the Node of the Machine shall be like, from the moment that the
// providerID is known.
func workerNode(o Observed, u *machinev1alpha1.UpdateStatus, phase machinev1alpha1.MachinePhase, preserved bool) *workernode.Parameters {
	id := providerID(o)
	if id == "" {
		return nil
	}
	m := o.Machine
	p := &workernode.Parameters{
		ProviderID:      id,
		Addresses:       vmAddresses(o),
		CloudNamesNodes: o.CloudNamesNodes,
		Labels:          labels(m),
		Annotations:     annotations(m),
		Drained:         m.Spec.InPlaceUpdate != nil && begun(u),
		Drain: workernode.Drain{
			Drain: m.Spec.Drain,
			Skip:  m.Annotations[machinev1alpha1.AnnotationSkipDrain] == "true",
			Force: m.Annotations[machinev1alpha1.AnnotationForceDrain] == "true",
		},
	}
	for _, t := range m.Spec.Taints {
		p.Taints = append(p.Taints, workernode.Taint(t))
	}
	for _, t := range m.Spec.StartupTaints {
		p.StartupTaints = append(p.StartupTaints, workernode.Taint(t))
	}
	onNode(p, m.Spec.InPlaceUpdate, u)
	protect(p, o, phase, preserved)
	return p
}

// providerID of the Machine's VM. The Machine remembers it for when its VM can no longer
// be asked. It names the VM to people and to the cluster-autoscaler, and proves nothing:
// which Node is the Machine's is decided by the token that the Node joined with.
func providerID(o Observed) string {
	if o.VM.ProviderID != "" {
		return o.VM.ProviderID
	}
	return o.Machine.Status.ProviderID
}

// vmAddresses are those that the cloud reports of the VM, or reported last: never what
// the Node reports of itself.
func vmAddresses(o Observed) []workernode.Address {
	if len(o.VM.Addresses) == 0 && o.WorkerNode != nil {
		return o.WorkerNode.Parameters.Addresses
	}
	var out []workernode.Address
	for _, a := range o.VM.Addresses {
		out = append(out, workernode.Address(a))
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
