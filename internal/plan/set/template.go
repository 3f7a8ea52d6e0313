package set

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
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

// fresh is a Machine to create.
func (f *fleet) fresh(name string) Desired {
	d := ofTemplate(f.Set, name)
	d.Create = true
	if f.updatesInPlace() {
		d.Labels[machinev1alpha1.LabelUpdatedTo] = f.updateID()
	}
	return d
}

// updatesInPlace reports whether the set updates its Machines in place.
func (f *fleet) updatesInPlace() bool { return f.Set.Spec.InPlaceUpdate != nil }

// updateID is the ID of the template. Machines that have the template are labeled with it.
func (f *fleet) updateID() string {
	if id := f.Set.Spec.InPlaceUpdate.ID; id != "" {
		return id
	}
	t := f.Set.Spec.Template.Spec
	return names.Hash(t.Version, t.ClassRef.Key())
}

// updateIDOf is the template's ID in the Machine's spec, where its agent reads it. It changes with each
// retry that a user requests.
func (f *fleet) updateIDOf(m Machine) string {
	if retry := m.Annotations[machinev1alpha1.AnnotationUpdateRetry]; retry != "" {
		return f.updateID() + "-" + names.Hash(retry)[:8]
	}
	return f.updateID()
}

// hasUpdated reports whether the agent has finished the update. The Machine's spec is then changed to
// match.
func (f *fleet) hasUpdated(m Machine) bool {
	want, is := m.Spec.InPlaceUpdate, m.Status.Update
	return f.updatesInPlace() && want != nil && is != nil &&
		is.State == machinev1alpha1.UpdateSucceeded && is.ID == want.ID && is.ID == f.updateIDOf(m)
}

// toUpdate reports whether an update in place brings the Machine to the current template.
func (f *fleet) toUpdate(m Machine) bool {
	if !f.updatesInPlace() || f.hasUpdated(m) {
		return false
	}
	t := f.Set.Spec.Template.Spec
	other := f.Set.Spec.InPlaceUpdate.ID != "" && hadUpdate(m) != f.updateID()
	return !m.Spec.ClassRef.Equal(t.ClassRef) || m.Spec.Version != t.Version || other || isSelected(m)
}

// isOutdated reports whether the Machine's VM runs another template than the current one, or may do so
// because an update of it has started.
func (f *fleet) isOutdated(m Machine) bool {
	t := f.Set.Spec.Template.Spec
	return differs(m, t) || f.toUpdate(m)
}

// templateHash identifies the fields of the template that a VM is made from.
func (f *fleet) templateHash() string {
	t := f.Set.Spec.Template.Spec
	domain := "any"
	if t.FailureDomain != nil {
		domain = "in " + *t.FailureDomain
	}
	return names.Hash(t.ClassRef.Key(), t.Version, t.ClusterRef.Kind, t.ClusterRef.Name, domain)
}

func (f *fleet) failureDomain() string { return ptr.Deref(f.Set.Spec.Template.Spec.FailureDomain, "") }

func (f *fleet) createsNone() bool {
	return f.Set.Spec.Creation == machinev1alpha1.CreationDisabled
}

func (f *fleet) mayCreate() bool {
	return !f.createsNone() && f.Problem == nil && !f.Safety.Frozen
}

// isRolledOut reports whether a rollout of the MachineDeployment replaces all Machines of the set: during
// that time, their Nodes are marked as outdated.
func (f *fleet) isRolledOut() bool {
	return slices.ContainsFunc(f.Set.Spec.NodeMarks.Taints, func(t machinev1alpha1.Taint) bool { return t.Key == machinev1alpha1.TaintOutdated })
}

func (f *fleet) isSelected(m Machine) bool { return f.Set.Spec.Selector.Matches(m.Labels) }
