package v1alpha1_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/schematest"
)

const crds = "../../../package/provider-drover/crds/cluster.drover.dev_"

func TestTheSchemaRefusesConfigurationsThatCannotBeAllowed(t *testing.T) {
	const secret = `{source: Secret, secretRef: {name: s, namespace: ns}}`
	for name, tc := range map[string]struct {
		kind, spec string
		err        string
	}{
		"ASecretInANamespace":            {kind: "providerconfigs", spec: `{credentials: {source: Secret, secretRef: {name: s}}}`},
		"ASecretForAllNamespaces":        {kind: "clusterproviderconfigs", spec: `{credentials: ` + secret + `}`},
		"OurIdentityForAllNamespaces":    {kind: "clusterproviderconfigs", spec: `{credentials: {source: InjectedIdentity}}`},
		"OurIdentityInANamespace":        {kind: "providerconfigs", spec: `{credentials: {source: InjectedIdentity}}`, err: "spec.credentials.source: Invalid value"},
		"OurIdentityInANamespaceReason":  {kind: "providerconfigs", spec: `{credentials: {source: InjectedIdentity}}`, err: "InjectedIdentity is refused in a ProviderConfig"},
		"ASecretOfNoNamespace":           {kind: "clusterproviderconfigs", spec: `{credentials: {source: Secret, secretRef: {name: s}}}`, err: "secretRef.namespace is required"},
		"NamesAndPatternsThatAreAllowed": {kind: "clusterproviderconfigs", spec: `{credentials: ` + secret + `, allowedNamespaces: [a, "team-*", "*"], allowedNodeLabels: [default, "x.k8s.io/*"], allowedNodeTaints: []}`},
		"ANamespaceThatIsNone":           {kind: "clusterproviderconfigs", spec: `{credentials: ` + secret + `, allowedNamespaces: ["team-[ab]"]}`, err: "spec.allowedNamespaces[0]: Invalid value"},
		"AKeyThatIsNone":                 {kind: "clusterproviderconfigs", spec: `{credentials: ` + secret + `, allowedNodeLabels: ["a b"]}`, err: "spec.allowedNodeLabels[0]: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			obj := map[string]any{}
			if err := yaml.Unmarshal([]byte(`{apiVersion: cluster.drover.dev/v1alpha1, kind: X, metadata: {name: c}, spec: `+tc.spec+`}`), &obj); err != nil {
				t.Fatal(err)
			}
			errs := schematest.Load(t, crds+tc.kind+".yaml").Validate(obj, nil)
			switch {
			case tc.err == "" && len(errs) > 0:
				t.Error(errs.ToAggregate())
			case tc.err != "" && (len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), tc.err)):
				t.Errorf("errors %v, want %q", errs.ToAggregate(), tc.err)
			}
		})
	}
}
