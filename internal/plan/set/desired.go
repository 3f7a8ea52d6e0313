package set

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// ordered is a Machine that this plan or an earlier one creates, and that was not observed yet.
func (p *plan) ordered(name string) Desired {
	d := p.fresh(name)
	if p.withholdsVMs() {
		d.Annotations[machinev1alpha1.AnnotationExhausted] = p.backoff.ErrorCode
	}
	return d
}

// desired is the desired state of a Machine that exists or is being created.
func (p *plan) desired(m Machine) Desired {
	if p.expected.Has(m.Name) {
		return p.ordered(m.Name)
	}
	return p.existing(m)
}

// existing is the desired state of a Machine that exists: the template, except for the fields that its VM
// was made from.
func (f *fleet) existing(m Machine) Desired {
	d := ofTemplate(f.Set, m.Name)
	d.Spec.ClassRef = m.Spec.ClassRef
	d.Spec.Version = m.Spec.Version
	d.Spec.ClusterRef = m.Spec.ClusterRef
	d.Spec.FailureDomain = m.Spec.FailureDomain

	if f.recorded.setAside.Has(m.Name) && (isMarked(m) || f.isToBeMarked(m)) {
		f.hide(&d)
		if f.isToBeMarked(m) || m.Annotations[machinev1alpha1.AnnotationDeleteMachine] == failedReplacement {
			d.Annotations[machinev1alpha1.AnnotationDeleteMachine] = failedReplacement
		}
	}
	if code, ok := m.Annotations[machinev1alpha1.AnnotationExhausted]; ok {
		d.Annotations[machinev1alpha1.AnnotationExhausted] = code
	}
	f.composeUpdate(&d, m)
	f.composeReboot(&d, m)
	if _, said := d.Annotations[machinev1alpha1.AnnotationPreserve]; !said && f.auto.Has(m.Name) {
		d.Annotations[machinev1alpha1.AnnotationPreserve] = machinev1alpha1.PreserveAuto
	}
	return d
}

// hide removes the labels by which the cluster-autoscaler finds a Machine of the set. For a Machine without
// a Node, it would lower replicas in each of its loops, and the set would delete a healthy Machine each
// time.
func (f *fleet) hide(d *Desired) {
	for k := range f.Set.Spec.Selector.MatchLabels {
		if k != machinev1alpha1.LabelDeployment {
			delete(d.Labels, k)
		}
	}
}

// composeUpdate sets the fields of a Machine that concern updates in place.
func (f *fleet) composeUpdate(d *Desired, m Machine) {
	id, labeled := m.Labels[machinev1alpha1.LabelUpdatedTo]
	t := f.Set.Spec.Template.Spec
	switch {
	case f.hasUpdated(m):
		d.Spec.ClassRef, d.Spec.Version = t.ClassRef, t.Version
		id, labeled = f.updateID(), true
	case f.toUpdate(m) && hasVM(m):
		d.Spec.InPlaceUpdate = &machinev1alpha1.MachineUpdate{
			ID:       f.updateIDOf(m),
			Version:  t.Version,
			ClassRef: t.ClassRef,
			Selected: isSelected(m) || f.recorded.updating.Has(m.Name),
			// Always set: a value that the schema defaulted would stay when the other fields are removed.
			Timeout: cmp.Or(f.Set.Spec.InPlaceUpdate.Timeout, metav1.Duration{Duration: machinev1alpha1.DefaultUpdateTimeout}),
		}
	}
	if labeled {
		d.Labels[machinev1alpha1.LabelUpdatedTo] = id
	}
}

// composeReboot sets the annotation by which the reboot of a Machine begins. It stays until the reboot has ended.
func (f *fleet) composeReboot(d *Desired, m Machine) {
	granted := m.Annotations[machinev1alpha1.AnnotationRebootGranted]
	switch {
	case f.isRebootDue(m) && f.recorded.rebooting.Has(m.Name) && (!f.Safety.Frozen || granted == m.Status.Unhealthy.RebootID):
		granted = m.Status.Unhealthy.RebootID
	case isRebootedByHealth(m):
	default:
		return
	}
	d.Annotations[machinev1alpha1.AnnotationRebootGranted] = granted
}
