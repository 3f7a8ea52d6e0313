package replicas

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// missing is a Machine that does not exist yet.
func missing(set *machinev1alpha1.MachineSet, name, provider string) Desired {
	t := set.Spec.Template.DeepCopy()

	labels := map[string]string{}
	for k, v := range t.Metadata.Labels {
		labels[k] = string(v)
	}
	labels[machinev1alpha1.LabelSet] = set.Name
	if d, ok := set.Labels[machinev1alpha1.LabelDeployment]; ok {
		labels[machinev1alpha1.LabelDeployment] = d
	}
	// What is to be deleted first is said of one Machine, never of all.
	annotations := maps.Clone(t.Metadata.Annotations)
	delete(annotations, machinev1alpha1.AnnotationDeleteMachine)

	m := &machinev1alpha1.Machine{
		TypeMeta: metav1.TypeMeta{
			APIVersion: machinev1alpha1.SchemeGroupVersion.String(),
			Kind:       machinev1alpha1.MachineGroupVersionKind.Kind,
		},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   set.Namespace,
			Name:        name,
			Labels:      labels,
			Annotations: annotations,
			Finalizers:  []string{machinev1alpha1.FinalizerTerminator},
		},
		Spec: t.Spec,
	}
	m.Spec.ProviderID = nil
	return Desired{Machine: m, Provider: provider}
}

// existing is a Machine that exists: as the template wants it, but for what its VM
// was made from.
func existing(set *machinev1alpha1.MachineSet, m Machine, provider string) Desired {
	d := missing(set, m.Name, cmp.Or(m.Provider, provider))
	d.Ready = m.Status.Phase == machinev1alpha1.MachineRunning

	d.Spec.ClassRef = m.Spec.ClassRef
	d.Spec.Version = m.Spec.Version
	d.Spec.ClusterRef = m.Spec.ClusterRef
	d.Spec.FailureDomain = m.Spec.FailureDomain

	// A function cannot write its own XR's spec, so the set copies what the
	// Machine found out.
	d.Spec.ProviderID = m.Spec.ProviderID
	if d.Spec.ProviderID == nil && m.Status.ProviderID != "" {
		d.Spec.ProviderID = &m.Status.ProviderID
	}
	return d
}

// phases in the order in which Machines are given up. A Machine that has no phase
// yet is Pending.
var phases = []machinev1alpha1.MachinePhase{
	machinev1alpha1.MachineFailed,
	machinev1alpha1.MachinePending,
	machinev1alpha1.MachineProvisioning,
	machinev1alpha1.MachineJoining,
	machinev1alpha1.MachineUnknown,
	machinev1alpha1.MachineRunning,
}

func phaseOf(m Machine) machinev1alpha1.MachinePhase {
	return cmp.Or(m.Status.Phase, machinev1alpha1.MachinePending)
}

func isOnItsWay(p machinev1alpha1.MachinePhase) bool {
	switch p {
	case "", machinev1alpha1.MachinePending, machinev1alpha1.MachineProvisioning, machinev1alpha1.MachineJoining:
		return true
	default:
		return false
	}
}

func isMarked(m Machine) bool {
	_, ok := m.Annotations[machinev1alpha1.AnnotationDeleteMachine]
	return ok
}

func isReady(m Machine) bool {
	return m.Status.Phase == machinev1alpha1.MachineRunning && m.Status.ReadySince != nil
}

// untilAvailable is how long a ready Machine must still be ready until it counts
// as available, and 0 or less when it does.
func (p *plan) untilAvailable(m Machine) time.Duration {
	return m.Status.ReadySince.Add(time.Duration(p.Set.Spec.MinReadySeconds) * time.Second).Sub(p.now)
}

func (p *plan) isAvailable(m Machine) bool { return isReady(m) && p.untilAvailable(m) <= 0 }

// worstFirst returns the kept Machines in the order in which they are given up.
func (p *plan) worstFirst() []Machine {
	return slices.SortedFunc(slices.Values(p.kept), func(a, b Machine) int {
		return cmp.Or(
			falseFirst(!isMarked(a), !isMarked(b)),
			cmp.Compare(slices.Index(phases, phaseOf(a)), slices.Index(phases, phaseOf(b))),
			falseFirst(p.isAvailable(a), p.isAvailable(b)),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}
