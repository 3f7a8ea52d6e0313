package set

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// ofOneMachine are annotations that users and controllers set on single Machines.
var ofOneMachine = []string{
	machinev1alpha1.AnnotationDeleteMachine,
	machinev1alpha1.AnnotationExhausted,
	machinev1alpha1.AnnotationReboot,
	machinev1alpha1.AnnotationRebootDrain,
	machinev1alpha1.AnnotationRebootGranted,
	machinev1alpha1.AnnotationReplace,
	machinev1alpha1.AnnotationReplaceRequestedBy,
	machinev1alpha1.AnnotationUpdateRetry,
	machinev1alpha1.LabelUpdateSelected,
}

// fresh is a Machine to create.
func (f *fleet) fresh(name string) Desired {
	d := ofTemplate(f.Set, name)
	d.Create = true
	if f.updatesInPlace() {
		d.Labels[machinev1alpha1.LabelUpdatedTo] = f.updateID()
	}
	return d
}

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

// ofTemplate returns a Machine with the metadata and the spec of the template.
func ofTemplate(set *machinev1alpha1.MachineSet, name string) Desired {
	t := set.Spec.Template.DeepCopy()

	labels := machinev1alpha1.LabelsOf(t.Metadata.Labels)
	labels[machinev1alpha1.LabelSet] = set.Name
	if d, ok := set.Labels[machinev1alpha1.LabelDeployment]; ok {
		labels[machinev1alpha1.LabelDeployment] = d
	}
	// An annotation that is meant for one Machine must not reach all of them.
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
	m.Spec.ProviderID, m.Spec.InPlaceUpdate, m.Spec.InfrastructureRef = nil, nil, nil
	if m.Spec.Crossplane != nil {
		m.Spec.Crossplane.ResourceRefs = nil
	}
	m.Spec.CapacityTimeout = machinev1alpha1.CapacityTimeoutOf(set, t.Spec)
	return Desired{Machine: m}
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
