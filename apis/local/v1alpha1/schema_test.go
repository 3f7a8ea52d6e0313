package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/schematest"
)

const crds = "../../../package/provider-local/crds/local.drover.dev_"

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	o := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// The Composition of the local cloud sets and reads all these fields. The API server prunes a field
// that is not in the schema.
func TestTheVirtualMachineHasTheFieldsThatCompositionsUse(t *testing.T) {
	const vm = `
apiVersion: local.drover.dev/v1alpha1
kind: VirtualMachine
metadata: {name: vm, namespace: default}
spec:
  managementPolicies: [Observe, Delete]
  providerConfigRef: {kind: ProviderConfig, name: default}
  forProvider:
    name: vm
    image: ubuntu-24.04
    size: small
    zone: zone-b
    tags: {a: b}
    userDataSecretRef: {name: vm, key: userData}
  initProvider: {}
status:
  atProvider:
    id: vm-1
    providerId: local:///zone-b/vm-1
    state: Failed
    addresses: [{type: InternalIP, address: 10.0.0.1}]
    error: {code: QuotaExceeded, message: none left}
    tags: {a: b}
    zone: zone-b
`
	got, want := object(t, vm), object(t, vm)
	if errs := schematest.Load(t, crds+"virtualmachines.yaml").Validate(got, nil); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the schema changes it (-want +got):\n%s", d)
	}
}

func TestSchemas(t *testing.T) {
	cases := map[string]struct {
		crd, object string
		want        string // part of the error; empty if there is none
	}{
		"AVMNeedsAnImage": {"virtualmachines.yaml",
			`{spec: {forProvider: {name: vm, size: small}}}`, "spec.forProvider.image is a required parameter"},
		"AVMThatIsOnlyObservedNeedsNone": {"virtualmachines.yaml",
			`{spec: {managementPolicies: [Observe], forProvider: {}}}`, ""},
		"AProviderConfigNeedsNoNamespace": {"providerconfigs.yaml",
			`{spec: {credentials: {secretRef: {name: s}}}}`, ""},
		"AClusterProviderConfigNeedsOne": {"clusterproviderconfigs.yaml",
			`{spec: {credentials: {secretRef: {name: s}}}}`, "spec.credentials.secretRef.namespace is required"},
		"AClusterProviderConfigWithOneIsFine": {"clusterproviderconfigs.yaml",
			`{spec: {credentials: {secretRef: {name: s, namespace: ns}}}}`, ""},
		"CredentialsAreInASecret": {"providerconfigs.yaml",
			`{spec: {credentials: {source: Environment, secretRef: {name: s}}}}`, `supported values: "Secret"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			errs := schematest.Load(t, crds+tc.crd).Validate(object(t, tc.object), nil)
			switch {
			case tc.want == "" && len(errs) > 0:
				t.Fatal(errs.ToAggregate())
			case tc.want != "" && (len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), tc.want)):
				t.Fatalf("errors %v, want one with %q", errs, tc.want)
			}
		})
	}
}
