package deployment

import (
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
)

// rolling is all of a template that, when it changes, starts a rollout. A field
// that is added here changes the hash of no template that leaves it empty.
type rolling struct {
	ClassRef      machinev1alpha1.ClassReference        `json:"classRef"`
	Version       string                                `json:"version"`
	ClusterRef    machinev1alpha1.ClusterReference      `json:"clusterRef,omitzero"`
	FailureDomain *string                               `json:"failureDomain,omitempty"`
	Labels        map[string]machinev1alpha1.LabelValue `json:"labels,omitempty"`
	Annotations   map[string]string                     `json:"annotations,omitempty"`
	// After is spec.rollout.after, once that time has come.
	After *metav1.Time `json:"after,omitempty"`
	// Collision tells apart sets of one template, when the name of the first is
	// that of a set which was updated in place to another one, or is going.
	Collision int `json:"collision,omitempty"`
}

// rollingOf a template, or of a set's template, without what the set added.
func rollingOf(t machinev1alpha1.MachineTemplate) rolling {
	labels := maps.Clone(t.Metadata.Labels)
	delete(labels, machinev1alpha1.LabelDeployment)
	delete(labels, machinev1alpha1.LabelTemplateHash)
	return rolling{
		ClassRef:      t.Spec.ClassRef.Rolling(),
		Version:       t.Spec.Version,
		ClusterRef:    t.Spec.ClusterRef,
		FailureDomain: t.Spec.FailureDomain,
		Labels:        labels,
		Annotations:   t.Metadata.Annotations,
	}
}

// same reports whether two templates are the same, whenever they are rolled out.
func (r rolling) same(other rolling) bool {
	r.After, r.Collision = other.After, other.Collision
	return equal(r, other)
}

// stays reports whether a Machine of one template can become one of the other in place.
func (r rolling) stays(other rolling) bool {
	return r.ClusterRef == other.ClusterRef && equality.Semantic.DeepEqual(r.FailureDomain, other.FailureDomain)
}

// hash tells templates apart.
func (r rolling) hash() string {
	b, err := json.Marshal(r)
	if err != nil {
		// Strings and maps of strings always encode.
		panic(err)
	}
	return names.Hash(string(b))
}

// inPlace is a template with the rolling part of from and all else of now.
func inPlace(from, now machinev1alpha1.MachineTemplate) machinev1alpha1.MachineTemplate {
	t := *now.DeepCopy()
	f := from.DeepCopy()
	t.Metadata = f.Metadata
	t.Spec.ClassRef = f.Spec.ClassRef
	t.Spec.Version = f.Spec.Version
	t.Spec.ClusterRef = f.Spec.ClusterRef
	t.Spec.FailureDomain = f.Spec.FailureDomain
	// A VM is one Machine's, never a template's.
	t.Spec.ProviderID = nil
	return t
}

func equal(a, b rolling) bool { return equality.Semantic.DeepEqual(a, b) }
