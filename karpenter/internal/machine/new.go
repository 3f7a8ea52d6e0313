package machine

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/drover-dev/drover/karpenter/apis/v1alpha1"
	"github.com/drover-dev/drover/karpenter/internal/drover"
	"github.com/drover-dev/drover/karpenter/internal/offer"
)

// NameOf returns the name of the Machine of a NodeClaim. Another attempt to create it finds the Machine of the first one, also
// after a restart.
func NameOf(claim types.UID) string { return "karpenter-" + string(claim) }

// New returns the Machine of a NodeClaim.
func New(namespace, cluster string, claim *karpenterv1.NodeClaim, class v1alpha1.DroverNodeClassSpec, of offer.Offering) *drover.Machine {
	m := &drover.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: NameOf(claim.UID),
		Labels:      map[string]string{drover.LabelCluster: cluster, drover.LabelNodeClaim: labelValue(claim.Name)},
		Annotations: map[string]string{drover.AnnotationNodeClaimUID: string(claim.UID), drover.HookDrain: "true"},
		Finalizers:  []string{drover.FinalizerTerminator},
	}}
	m.Spec = drover.MachineSpec{
		ClassRef:   of.Class,
		Version:    class.Version,
		ClusterRef: drover.Reference{Kind: class.ClusterRef.Kind, Name: class.ClusterRef.Name},
		Metadata:   drover.NodeMetadata{Labels: nodeLabels(claim.Labels, of)},
		Taints:     taints(claim.Spec.Taints, nil),
	}
	// The Node registers with these. Karpenter removes its own one when the Node has all labels and taints of the NodeClaim.
	m.Spec.StartupTaints = taints(append([]corev1.Taint{karpenterv1.UnregisteredNoExecuteTaint}, claim.Spec.StartupTaints...), m.Spec.Taints)
	if of.FailureDomain != "" {
		m.Spec.FailureDomain = &of.FailureDomain
	}
	return m
}

// labelValue cuts a name that is too long for a label. The annotation with the UID is what counts.
func labelValue(name string) string {
	const longest = 63
	if len(name) > longest {
		name = strings.TrimRight(name[:longest], "-_.")
	}
	return name
}

// nodeLabels are kept on the Node by Drover. The kubelet itself sets architecture, operating system and host name, and a
// configuration of a target cluster may refuse other keys of Kubernetes: Karpenter sets those when it registers the Node.
func nodeLabels(claim map[string]string, of offer.Offering) map[string]string {
	out := map[string]string{
		corev1.LabelInstanceTypeStable:   of.InstanceType,
		corev1.LabelTopologyZone:         of.Zone,
		karpenterv1.CapacityTypeLabelKey: of.CapacityType,
	}
	for k, v := range claim {
		if _, ok := out[k]; !ok && !isOfKubernetes(k) {
			out[k] = v
		}
	}
	return out
}

func isOfKubernetes(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	if !ok {
		return false
	}
	for _, d := range []string{"kubernetes.io", "k8s.io"} {
		if domain == d || strings.HasSuffix(domain, "."+d) {
			return true
		}
	}
	return false
}

// taints returns each taint once, and none that the other list has.
func taints(in []corev1.Taint, other []drover.Taint) []drover.Taint {
	type id struct{ key, effect string }
	seen := map[id]bool{}
	for _, t := range other {
		seen[id{t.Key, t.Effect}] = true
	}
	var out []drover.Taint
	for _, t := range in {
		if i := (id{t.Key, string(t.Effect)}); !seen[i] {
			seen[i] = true
			out = append(out, drover.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
		}
	}
	return out
}
