package rollout

import (
	"maps"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
)

// A set is a MachineSet and what is decided about it.
type set struct {
	Set
	revision int64
	// told is how many Machines the set shall have as far as it was decided
	// before, and wants is what is decided now.
	told, wants int32
	// missing means that the set does not exist yet, and recorded that the status
	// knows it.
	missing, recorded bool
}

// settled means that the set has acted on what it was told: its counts are about
// that and nothing else is under way.
func (s *set) settled() bool {
	return s.missing || s.Spec.Replicas == s.told && s.Status.ObservedGeneration >= s.Generation
}

// total Machines that the set has or may come to have. Those that are terminating
// count: their VMs are still there.
func (s *set) total() int32 {
	return max(s.told, s.Spec.Replicas, s.Status.Replicas) + s.Status.TerminatingReplicas
}

// available Machines that the set has and will keep.
func (s *set) available() int32 {
	if s.Terminating {
		return 0
	}
	return min(s.told, s.Spec.Replicas, s.Status.AvailableReplicas)
}

func (s *set) unavailable() int32 { return s.told - s.available() }

// empty means that the set has no Machines, and that none is left of it.
func (s *set) empty() bool { return s.total() == 0 }

func sum(sets []*set, f func(*set) int32) int32 {
	n := int32(0)
	for _, s := range sets {
		n += f(s)
	}
	return n
}

func revisionOf(s *machinev1alpha1.MachineSet) int64 {
	// What is no number is no revision of ours.
	n, _ := strconv.ParseInt(s.Annotations[machinev1alpha1.AnnotationRevision], 10, 64)
	return n
}

// newSet is the MachineSet of the current template, before it exists.
func newSet(d *machinev1alpha1.MachineDeployment, hash string) *machinev1alpha1.MachineSet {
	own := map[string]machinev1alpha1.LabelValue{
		machinev1alpha1.LabelDeployment:   machinev1alpha1.LabelValue(d.Name),
		machinev1alpha1.LabelTemplateHash: machinev1alpha1.LabelValue(hash),
	}
	t := inPlace(d.Spec.Template, d.Spec.Template)
	t.Metadata.Labels = merged(t.Metadata.Labels, own)

	s := &machinev1alpha1.MachineSet{}
	s.Name = names.MachineSet(d.Name, d.UID, hash)
	s.Spec.Template = t
	s.Spec.Selector.MatchLabels = merged(d.Spec.Selector.MatchLabels, map[string]machinev1alpha1.LabelValue{
		machinev1alpha1.LabelTemplateHash: machinev1alpha1.LabelValue(hash),
	})
	return s
}

// composed is a set as it shall be. It is told what was decided before: what is
// decided now is carried out when it is read back.
func (p *plan) composed(s *set) *machinev1alpha1.MachineSet {
	t := inPlace(s.Spec.Template, p.Deployment.Spec.Template)
	labels := map[string]string{}
	for k, v := range t.Metadata.Labels {
		labels[k] = string(v)
	}
	labels[machinev1alpha1.LabelAutoscalerDeployment] = p.Deployment.Name
	if p.Safety.Frozen {
		labels[machinev1alpha1.LabelFreeze] = "true"
	}

	return &machinev1alpha1.MachineSet{
		TypeMeta: metav1.TypeMeta{
			APIVersion: machinev1alpha1.SchemeGroupVersion.String(),
			Kind:       machinev1alpha1.MachineSetGroupVersionKind.Kind,
		},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   p.Deployment.Namespace,
			Name:        s.Name,
			Labels:      labels,
			Annotations: map[string]string{machinev1alpha1.AnnotationRevision: strconv.FormatInt(s.revision, 10)},
			Finalizers:  []string{machinev1alpha1.FinalizerTerminator},
		},
		Spec: machinev1alpha1.MachineSetSpec{
			Replicas:        s.told,
			Selector:        *s.Spec.Selector.DeepCopy(),
			Template:        t,
			MinReadySeconds: p.Deployment.Spec.MinReadySeconds,
		},
	}
}

func merged(a, b map[string]machinev1alpha1.LabelValue) map[string]machinev1alpha1.LabelValue {
	out := make(map[string]machinev1alpha1.LabelValue, len(a)+len(b))
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}
