package rollout

import (
	"encoding/json"

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
}

// hash tells templates apart.
func hash(t machinev1alpha1.MachineTemplate) string {
	b, err := json.Marshal(rolling{
		ClassRef:      t.Spec.ClassRef,
		Version:       t.Spec.Version,
		ClusterRef:    t.Spec.ClusterRef,
		FailureDomain: t.Spec.FailureDomain,
		Labels:        t.Metadata.Labels,
		Annotations:   t.Metadata.Annotations,
	})
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
