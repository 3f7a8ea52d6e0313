package handover

import (
	"encoding/json"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterapi "github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
)

// A record has the former state of an object, which the way back restores. It is an annotation of the object, written by the same patch as the
// first change.
type record struct {
	// From and To are the MachineDeployments of Cluster API and of Drover.
	From string `json:"from"`
	To   string `json:"to"`
	// Paused is the value of the annotation cluster.x-k8s.io/paused, nil if the object had none.
	Paused *string `json:"paused,omitempty"`
	// OwnerReferences and Labels of a Machine.
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences,omitempty"`
	Labels          map[string]string       `json:"labels,omitempty"`
}

// recordOf returns the record of an object, nil if it has none that can be read.
func recordOf(o *unstructured.Unstructured) *record {
	r := &record{}
	raw, ok := o.GetAnnotations()[clusterapi.AnnotationImported]
	if !ok || json.Unmarshal([]byte(raw), r) != nil {
		return nil
	}
	return r
}

// newRecord returns the record of an object as it is.
func (w *World) newRecord(o *unstructured.Unstructured) record {
	r := record{From: w.From, To: w.To}
	if v, ok := o.GetAnnotations()[annotationPausedCAPI]; ok {
		r.Paused = &v
	}
	if o.GetKind() == "Machine" {
		r.OwnerReferences, r.Labels = o.GetOwnerReferences(), o.GetLabels()
	}
	return r
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
