package v1alpha1_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// TestDefaultsAreThoseOfTheSchemas reads each generated schema that has a default of which Go has
// a constant.
func TestDefaultsAreThoseOfTheSchemas(t *testing.T) {
	inputs := "../../../package/function-drover/input/fn.drover.dev_"
	conditions := []any{}
	for _, c := range v1alpha1.DefaultHealthConditions() {
		conditions = append(conditions, map[string]any{"type": c.Type, "status": string(c.Status)})
	}
	for _, tc := range []struct {
		files []string
		field string
		want  any
	}{
		{[]string{deploymentXRD, setXRD}, "spec.remediation.maxUnhealthy", v1alpha1.DefaultMaxUnhealthy},
		{[]string{deploymentXRD, setXRD}, "spec.remediation.maxInFlight", float64(v1alpha1.DefaultMaxInFlight)},
		{[]string{deploymentXRD, setXRD, machineCRD}, "spec.health.timeout", v1alpha1.DefaultHealthTimeout},
		{[]string{deploymentXRD, setXRD, machineCRD}, "spec.health.conditions", conditions},
		{[]string{deploymentXRD, setXRD, machineCRD}, "spec.health.reboot.window", v1alpha1.DefaultRebootWindow},
		{[]string{deploymentXRD, setXRD, machineCRD}, "spec.health.reboot.timeout", v1alpha1.DefaultRebootTimeout},
		{[]string{deploymentXRD, setXRD, machineCRD}, "spec.preserve.timeout", v1alpha1.DefaultPreserveTimeout},
		{[]string{deploymentXRD}, "spec.strategy.inPlaceUpdate.timeout", v1alpha1.DefaultUpdateTimeout},
		{[]string{setXRD, machineCRD}, "spec.inPlaceUpdate.timeout", v1alpha1.DefaultUpdateTimeout},
		{[]string{deploymentXRD, setXRD, machineCRD}, "spec.drain.timeout", v1alpha1.DefaultDrainTimeout},
		{[]string{deploymentXRD, setXRD, machineCRD}, "spec.drain.hookTimeout", v1alpha1.DefaultHookTimeout},
		{[]string{profileCRD}, "spec.kubelet.path", v1alpha1.DefaultKubeletPath},
		{[]string{profileCRD}, "spec.containerd.download.url", v1alpha1.DefaultContainerdURL},
		{[]string{inputs + "bootstraps.yaml"}, "tokenTTL", fn.DefaultTokenTTL},
		{[]string{inputs + "bootstraps.yaml"}, "tokenGroups", []any{fn.DefaultTokenGroup}},
		{[]string{inputs + "lifecycles.yaml"}, "returnGrace", fn.DefaultReturnGrace},
		{[]string{classCRD}, "spec.operatingSystem.imageCredentialProviders.binDir", v1alpha1.DefaultCredentialProviderDir},
		{[]string{profileCRD}, "spec.trust.extension", v1alpha1.DefaultTrustExtension},
		{[]string{inputs + "safeties.yaml"}, "overshoot.upMargin", float64(fn.DefaultUpMargin)},
		{[]string{inputs + "safeties.yaml"}, "overshoot.downMargin", float64(fn.DefaultDownMargin)},
	} {
		for _, file := range tc.files {
			defaults := defaultsOf(t, file)
			found := false
			for field, got := range defaults {
				if field != tc.field && !strings.HasSuffix(field, ".template."+tc.field) {
					continue
				}
				found = true
				if d, ok := tc.want.(time.Duration); ok {
					parsed, err := time.ParseDuration(fmt.Sprint(got))
					if err != nil || parsed != d {
						t.Errorf("%s: %s is %v by default, in Go %v", file, field, got, d)
					}
				} else if !equality.Semantic.DeepEqual(got, tc.want) {
					t.Errorf("%s: %s is %v by default, in Go %v", file, field, got, tc.want)
				}
			}
			if !found {
				t.Errorf("%s has no default of %s, only of %s", file, tc.field, slices.Sorted(maps.Keys(defaults)))
			}
		}
	}
}

// defaultsOf the schema in a file, by field.
func defaultsOf(t *testing.T, file string) map[string]any {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var o struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	addDefaults(out, "", o.Spec.Versions[0].Schema.OpenAPIV3Schema)
	return out
}

func addDefaults(out map[string]any, field string, schema map[string]any) {
	if d, ok := schema["default"]; ok {
		out[field] = d
	}
	if items, ok := schema["items"].(map[string]any); ok {
		addDefaults(out, field, items)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, p := range properties {
		if p, ok := p.(map[string]any); ok {
			addDefaults(out, strings.TrimPrefix(field+"."+name, "."), p)
		}
	}
}
