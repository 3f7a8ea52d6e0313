package set

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// ofOneMachine are annotations that others set on the Machines that they mean.
var ofOneMachine = []string{
	machinev1alpha1.AnnotationDeleteMachine,
	machinev1alpha1.AnnotationReplace,
	machinev1alpha1.AnnotationUpdateRetry,
	machinev1alpha1.LabelUpdateSelected,
}

// fresh is a Machine that does not exist yet.
func (p *plan) fresh(name string) Desired {
	d := ofTemplate(p.Set, name)
	d.Create = true
	if p.updatesInPlace() {
		d.Labels[machinev1alpha1.LabelUpdatedTo] = p.updateID()
	}
	return d
}

// ofTemplate is a Machine as the template wants it.
func ofTemplate(set *machinev1alpha1.MachineSet, name string) Desired {
	t := set.Spec.Template.DeepCopy()

	labels := map[string]string{}
	for k, v := range t.Metadata.Labels {
		labels[k] = string(v)
	}
	labels[machinev1alpha1.LabelSet] = set.Name
	if d, ok := set.Labels[machinev1alpha1.LabelDeployment]; ok {
		labels[machinev1alpha1.LabelDeployment] = d
	}
	// What is said of one Machine is never said of all.
	annotations := map[string]string{}
	maps.Copy(annotations, t.Metadata.Annotations)
	for _, key := range ofOneMachine {
		delete(annotations, key)
	}

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
	m.Spec.ProviderID, m.Spec.InPlaceUpdate = nil, nil
	return Desired{Machine: m}
}

// existing is a Machine that exists: as the template wants it, but for what its VM
// was made from.
func (p *plan) existing(m Machine) Desired {
	if p.expected.Has(m.Name) {
		return p.fresh(m.Name)
	}
	d := ofTemplate(p.Set, m.Name)
	d.Spec.ClassRef = m.Spec.ClassRef
	d.Spec.Version = m.Spec.Version
	d.Spec.ClusterRef = m.Spec.ClusterRef
	d.Spec.FailureDomain = m.Spec.FailureDomain

	if isMarked(m) && slices.Contains(p.Set.Status.SetAside, m.Name) {
		p.hide(&d)
	}
	p.composeUpdate(&d, m)
	if _, said := d.Annotations[machinev1alpha1.AnnotationPreserve]; !said && p.auto.Has(m.Name) {
		d.Annotations[machinev1alpha1.AnnotationPreserve] = machinev1alpha1.PreserveAuto
	}
	return d
}

func isFailed(m Machine) bool { return m.Status.Phase == machinev1alpha1.MachineFailed }

// isInFlight until the provider took the order for the Machine's VM.
func isInFlight(m Machine) bool { return m.Status.Phase.IsOnItsWay() && !hasVM(m) }

func hasVM(m Machine) bool { return m.Status.ProviderID != "" || m.Spec.ProviderID != nil }

func hadNode(m Machine) bool { return m.Status.NodeRef != nil }

// inError means that the provider refuses to do something, for now.
func inError(m Machine) bool {
	return m.Status.LastOperation != nil && m.Status.LastOperation.ErrorCode != ""
}

// differs says whether the Machine was made from something else than the template.
func differs(m Machine, t machinev1alpha1.MachineSpec) bool {
	return m.Spec.ClassRef != t.ClassRef || m.Spec.Version != t.Version || m.Spec.ClusterRef != t.ClusterRef ||
		!ptr.Equal(m.Spec.FailureDomain, t.FailureDomain)
}

func isReady(m Machine) bool {
	return m.Status.Phase == machinev1alpha1.MachineRunning && m.Status.ReadySince != nil
}

// untilAvailable is how long a ready Machine must still be ready until it counts
// as available, and 0 or less when it does.
func (p *plan) untilAvailable(m Machine) time.Duration {
	return m.Status.ReadySince.Add(time.Duration(p.Set.Spec.MinReadySeconds) * time.Second).Sub(p.now)
}

func (p *plan) isAvailable(m Machine) bool {
	return isReady(m) && p.untilAvailable(m) <= 0 && !p.isUpdating(m)
}
