package terminator

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A Machine as the terminator reads it. A cache of these is much smaller than one of
// whole Machines, and has the references that Crossplane keeps in the spec.
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MachineSpec   `json:"spec"`
	Status MachineStatus `json:"status,omitempty"`
}

// MachineSpec has what a Machine composes, and how long hooks may hold it.
type MachineSpec struct {
	Drain struct {
		HookTimeout metav1.Duration `json:"hookTimeout,omitzero"`
	} `json:"drain,omitzero"`
	Crossplane struct {
		ResourceRefs []corev1.ObjectReference `json:"resourceRefs,omitempty"`
	} `json:"crossplane,omitempty"`
}

// MachineStatus has what the terminator writes, and what metrics tell beside.
type MachineStatus struct {
	Phase         v1alpha1.MachinePhase    `json:"phase,omitempty"`
	FailureReason v1alpha1.FailureReason   `json:"failureReason,omitempty"`
	LastOperation *v1alpha1.LastOperation  `json:"lastOperation,omitempty"`
	Deletion      *v1alpha1.DeletionStatus `json:"deletion,omitempty"`
}

// DeepCopyObject copies the Machine.
func (m *Machine) DeepCopyObject() runtime.Object {
	out := *m
	out.ObjectMeta = *m.ObjectMeta.DeepCopy()
	out.Spec.Crossplane.ResourceRefs = slices.Clone(m.Spec.Crossplane.ResourceRefs)
	out.Status.LastOperation = m.Status.LastOperation.DeepCopy()
	out.Status.Deletion = m.Status.Deletion.DeepCopy()
	return &out
}

// A MachineList is a list of Machines.
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Machine `json:"items"`
}

// DeepCopyObject copies the list.
func (l *MachineList) DeepCopyObject() runtime.Object {
	out := &MachineList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		if m, ok := l.Items[i].DeepCopyObject().(*Machine); ok {
			out.Items = append(out.Items, *m)
		}
	}
	return out
}

// AddToScheme registers the views as the kinds that they are views of.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypeWithName(v1alpha1.MachineGroupVersionKind, &Machine{})
	s.AddKnownTypeWithName(v1alpha1.SchemeGroupVersion.WithKind("MachineList"), &MachineList{})
	metav1.AddToGroupVersion(s, v1alpha1.SchemeGroupVersion)
	return nil
}
