package handover

import (
	"cmp"
	"encoding/json"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterapi "github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A record has the former state of an object, which the way back restores. It is an annotation of the object, written by the same patch as the
// first change.
type record struct {
	// Group is the API group of the other side, "" for Cluster API.
	Group string `json:"group,omitempty"`
	// From and To are the MachineDeployments of the other side and of Drover.
	From string `json:"from"`
	To   string `json:"to"`
	// Paused is the value of the annotation cluster.x-k8s.io/paused, nil if the object had none.
	Paused *string `json:"paused,omitempty"`
	// OwnerReferences and Labels of a Machine.
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences,omitempty"`
	Labels          map[string]string       `json:"labels,omitempty"`
	// mcmRecord has what only machine-controller-manager needs.
	mcmRecord
}

// recordOf returns the record of an object, nil if it has none that can be read.
func recordOf(o *unstructured.Unstructured) *record {
	r := &record{}
	for _, key := range []string{clusterapi.AnnotationImported, machinev1alpha1.AnnotationImported} {
		if raw, ok := o.GetAnnotations()[key]; ok && json.Unmarshal([]byte(raw), r) == nil {
			return r
		}
	}
	return nil
}

// newRecord returns the record of an object as it is.
func (w *World) newRecord(o *unstructured.Unstructured) record {
	r := record{From: w.From, To: w.To}
	if g := w.System.group(); g != coreGroup {
		r.Group = g
	}
	if o.GetKind() == "Machine" {
		r.OwnerReferences, r.Labels = o.GetOwnerReferences(), o.GetLabels()
	}
	w.System.record(w, o, &r)
	return r
}

// isOf reports whether a record is of the present handover.
func (r record) isOf(w *World) bool {
	return r.From == w.From && r.To == w.To && cmp.Or(r.Group, coreGroup) == w.System.group()
}

// remembered returns the annotations that a change of an object sets, with its record.
func (w *World) remembered(o *unstructured.Unstructured, change map[string]*string) map[string]*string {
	out := maps.Clone(change)
	if out == nil {
		out = map[string]*string{}
	}
	out[w.System.annotation()] = ptr.To(w.newRecord(o).String())
	return out
}

// forgotten returns the annotations that a change of an object sets, without its record.
func (w *World) forgotten(change map[string]*string) map[string]*string {
	out := maps.Clone(change)
	if out == nil {
		out = map[string]*string{}
	}
	out[w.System.annotation()] = nil
	return out
}

func (r record) String() string {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // Strings always encode.
	}
	return string(b)
}

// annotated returns a copy of an object with annotations. An annotation that is nil is removed.
func annotated(o *unstructured.Unstructured, change map[string]*string) *unstructured.Unstructured {
	out := o.DeepCopy()
	a := maps.Clone(o.GetAnnotations())
	if a == nil {
		a = map[string]string{}
	}
	for k, v := range change {
		if v == nil {
			delete(a, k)
		} else {
			a[k] = *v
		}
	}
	if len(a) == 0 {
		a = nil
	}
	out.SetAnnotations(a)
	return out
}

// labeled returns a copy of an object with a label, or without it if the value is nil.
func labeled(o *unstructured.Unstructured, label string, value *string) *unstructured.Unstructured {
	out, l := o.DeepCopy(), maps.Clone(o.GetLabels())
	if l == nil {
		l = map[string]string{}
	}
	if value == nil {
		delete(l, label)
	} else {
		l[label] = *value
	}
	if len(l) == 0 {
		l = nil
	}
	out.SetLabels(l)
	return out
}
