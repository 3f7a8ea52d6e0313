package machine

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/workernode"
)

// workerNode returns the desired state of the Machine's Node, nil until the providerID is known.
func workerNode(f facts, d decision) *workernode.Parameters {
	if f.providerID == "" {
		return nil
	}
	m := f.Machine
	p := &workernode.Parameters{
		ProviderID:      f.providerID,
		Addresses:       f.addresses,
		CloudNamesNodes: f.CloudNamesNodes,
		Labels:          labels(f),
		Annotations:     annotations(m),
		Drained:         m.Spec.InPlaceUpdate != nil && begun(d.update),
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
	onNode(p, m.Spec.InPlaceUpdate, d.update)
	emptyForReboot(p, d.reboot)
	protect(p, f, d)
	return p
}

// labels of the Node. One that the cloud calls by a name that is no label value has no instance type.
func labels(f facts) map[string]string {
	out := map[string]string{}
	if t := instanceType(f); t != nil && t.InstanceType != "" && len(validation.IsValidLabelValue(t.InstanceType)) == 0 {
		out[corev1.LabelInstanceTypeStable] = t.InstanceType
	}
	maps.Copy(out, f.Machine.Spec.Metadata.Labels)
	return out
}

// annotations by which users and the cluster-autoscaler find a Node's Machine.
func annotations(m *machinev1alpha1.Machine) map[string]string {
	out := map[string]string{}
	maps.Copy(out, m.Spec.Metadata.Annotations)
	out[machinev1alpha1.AnnotationMachine] = m.Name
	out[machinev1alpha1.AnnotationNamespace] = m.Namespace
	out[machinev1alpha1.AnnotationCluster] = m.Spec.ClusterRef.Name
	return out
}
