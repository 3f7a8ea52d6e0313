package bootstrap

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// ownUserData returns the reference to the user data of a class, or the problem with it. It returns neither while a
// bootstrap provider makes the user data. The controller checks size and format before a VM is created, because only the
// controller reads the Secret.
func ownUserData(c *machinev1alpha1.MachineClass, config *Config) (*plan.OwnUserData, *plan.Problem) {
	spec := field.NewPath("class", "spec")
	os, err := withoutEffect(spec.Child("operatingSystem"), c.Spec.OperatingSystem, map[string]any{
		"provisioning": c.Spec.OperatingSystem.Provisioning, "kubeletDownloadURL": machinev1alpha1.DefaultKubeletDownloadURL,
	})
	if err != nil {
		return nil, problemOf(c, err)
	}
	kubelet, err := withoutEffect(spec.Child("kubelet"), c.Spec.Kubelet, map[string]any{"clusterDomain": machinev1alpha1.DefaultClusterDomain})
	if err != nil {
		return nil, problemOf(c, err)
	}
	if errs := append(os, kubelet...); len(errs) > 0 {
		return nil, problemOf(c, errs.ToAggregate())
	}
	ref := c.Spec.UserData.SecretRef
	if ref == nil {
		return ofConfig(c, config)
	}
	return &plan.OwnUserData{SecretName: ref.Name, SecretNamespace: ref.Namespace, Key: ref.Key, Format: c.Spec.OperatingSystem.Provisioning}, nil
}

// withoutEffect returns an error for each field of settings that is set to a value other than the
// allowed one: Drover does not write the user data, so such a setting would have no effect. It
// reads the fields from JSON, so that new fields are refused too.
func withoutEffect(path *field.Path, settings any, allowed map[string]any) (field.ErrorList, error) {
	b, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	set := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &set); err != nil {
		return nil, err
	}
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if v, ok := allowed[name]; ok && string(set[name]) == fmt.Sprintf("%q", v) {
			continue
		}
		errs = append(errs, field.Forbidden(path.Child(name), "has no effect on the user data that class.spec.userData names: remove it, and put it into that user data"))
	}
	return errs, nil
}
