package metrics

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/stored"
)

// An Owner has the fields of a MachineDeployment or MachineSet that are read.
type Owner struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	stored.Undecoded  `json:"-"`

	Status OwnerStatus `json:"status,omitempty"`
}

// OwnerStatus has the conditions.
type OwnerStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Go types for the two kinds, since a scheme distinguishes kinds by types.
type (
	// A Deployment is a MachineDeployment.
	Deployment struct{ Owner }
	// DeploymentList is a list of them.
	DeploymentList struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata,omitempty"`
		Items           []Deployment `json:"items"`
	}
	// A Set is a MachineSet.
	Set struct{ Owner }
	// SetList is a list of them.
	SetList struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata,omitempty"`
		Items           []Set `json:"items"`
	}
)

// UnmarshalJSON drops the fields that do not fit: see package stored.
func (d *Deployment) UnmarshalJSON(b []byte) error {
	type plain Deployment
	return stored.Unmarshal(b, (*plain)(d), &d.Undecoded)
}

// UnmarshalJSON drops the fields that do not fit: see package stored.
func (s *Set) UnmarshalJSON(b []byte) error {
	type plain Set
	return stored.Unmarshal(b, (*plain)(s), &s.Undecoded)
}

func (o *Owner) copy() Owner {
	out := *o
	out.ObjectMeta = *o.ObjectMeta.DeepCopy()
	out.Status.Conditions = slices.Clone(o.Status.Conditions)
	return out
}

// DeepCopyObject copies the view.
func (d *Deployment) DeepCopyObject() runtime.Object { return &Deployment{d.copy()} }

// DeepCopyObject copies the view.
func (s *Set) DeepCopyObject() runtime.Object { return &Set{s.copy()} }

// DeepCopyObject copies the list.
func (l *DeploymentList) DeepCopyObject() runtime.Object {
	out := &DeploymentList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, Deployment{l.Items[i].copy()})
	}
	return out
}

// DeepCopyObject copies the list.
func (l *SetList) DeepCopyObject() runtime.Object {
	out := &SetList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, Set{l.Items[i].copy()})
	}
	return out
}

// AddToScheme registers the views with the kinds that they stand for.
func AddToScheme(s *runtime.Scheme) error {
	gv := v1alpha1.SchemeGroupVersion
	s.AddKnownTypeWithName(v1alpha1.MachineDeploymentGroupVersionKind, &Deployment{})
	s.AddKnownTypeWithName(gv.WithKind("MachineDeploymentList"), &DeploymentList{})
	s.AddKnownTypeWithName(v1alpha1.MachineSetGroupVersionKind, &Set{})
	s.AddKnownTypeWithName(gv.WithKind("MachineSetList"), &SetList{})
	s.AddKnownTypes(gv, &v1alpha1.OrphanCollector{}, &v1alpha1.OrphanCollectorList{})
	metav1.AddToGroupVersion(s, gv)
	return nil
}
