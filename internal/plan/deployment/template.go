package deployment

import (
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
)

// rolling is the part of a template that starts a rollout when it changes. To keep the hashes of
// existing templates, a new field must be omitted if it is empty.
type rolling struct {
	ClassRef      machinev1alpha1.ClassReference        `json:"classRef"`
	Version       string                                `json:"version"`
	ClusterRef    machinev1alpha1.ClusterReference      `json:"clusterRef,omitzero"`
	FailureDomain *string                               `json:"failureDomain,omitempty"`
	Labels        map[string]machinev1alpha1.LabelValue `json:"labels,omitempty"`
	Annotations   map[string]string                     `json:"annotations,omitempty"`
	// After is spec.rollout.after, once that time has come.
	After *metav1.Time `json:"after,omitempty"`
	// Collision distinguishes sets of one template. It is needed if a set has the name that was
	// updated in place to another template, or is being deleted.
	Collision int `json:"collision,omitempty"`
}

// rollingOf a template, or of a set's template without the labels that the deployment added.
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

// same reports whether two templates are equal, regardless of the time of their rollout.
func (r rolling) same(other rolling) bool {
	r.After, r.Collision = other.After, other.Collision
	return equal(r, other)
}

// stays reports whether a Machine can be updated in place from one template to the other.
func (r rolling) stays(other rolling) bool {
	return r.ClusterRef == other.ClusterRef && equality.Semantic.DeepEqual(r.FailureDomain, other.FailureDomain)
}

// hash identifies a template.
func (r rolling) hash() string {
	b, err := json.Marshal(r)
	if err != nil {
		// Strings and maps of strings always encode.
		panic(err)
	}
	return names.Hash(string(b))
}

// Keep returns a template that starts no rollout of a deployment that has from, with the remaining fields of now.
func Keep(from, now machinev1alpha1.MachineTemplate) machinev1alpha1.MachineTemplate {
	return inPlace(from, now)
}

// inPlace returns a template with the rolling part of from and the remaining fields of now.
func inPlace(from, now machinev1alpha1.MachineTemplate) machinev1alpha1.MachineTemplate {
	t := *now.DeepCopy()
	f := from.DeepCopy()
	t.Metadata = f.Metadata
	t.Spec.ClassRef = f.Spec.ClassRef
	t.Spec.Version = f.Spec.Version
	t.Spec.ClusterRef = f.Spec.ClusterRef
	t.Spec.FailureDomain = f.Spec.FailureDomain
	// A VM belongs to one Machine, never to a template.
	t.Spec.ProviderID = nil
	return t
}

func equal(a, b rolling) bool { return equality.Semantic.DeepEqual(a, b) }

func content(r machinev1alpha1.Revision) rolling {
	return rolling{
		ClassRef: r.ClassRef.Rolling(), Version: r.Version, ClusterRef: r.ClusterRef, FailureDomain: r.FailureDomain,
		Labels: r.Labels, Annotations: r.Annotations, After: r.After,
	}
}

// from returns the template of a revision. Fields that start no rollout are taken from now.
func from(r machinev1alpha1.Revision, now machinev1alpha1.MachineTemplate) machinev1alpha1.MachineTemplate {
	t := machinev1alpha1.MachineTemplate{}
	t.Metadata = machinev1alpha1.TemplateMetadata{Labels: r.Labels, Annotations: r.Annotations}
	t.Spec.ClassRef, t.Spec.Version = r.ClassRef, r.Version
	t.Spec.ClusterRef, t.Spec.FailureDomain = r.ClusterRef, r.FailureDomain
	return inPlace(t, now)
}
