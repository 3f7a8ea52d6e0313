package apis

import (
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

func TestTheTargetClusterNeedsTheseKinds(t *testing.T) {
	all, err := CRDs()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, crd := range all {
		kinds[crd.Spec.Names.Kind] = true
	}
	for _, k := range []string{"DroverNodeClass", "NodePool", "NodeClaim", "NodeOverlay"} {
		if !kinds[k] {
			t.Errorf("there is no CustomResourceDefinition of %s", k)
		}
	}
}

// A kind that Karpenter may not read keeps the controllers from starting that a feature gate adds.
func TestTheRightsOfTheExampleReadEachKind(t *testing.T) {
	b, err := os.ReadFile("../../examples/karpenter/target-cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	may := map[string]bool{}
	for doc := range strings.SplitSeq(string(b), "\n---\n") {
		role := &rbacv1.ClusterRole{}
		if err := yaml.Unmarshal([]byte(doc), role); err != nil || role.Kind != "ClusterRole" {
			continue
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					may[verb+" "+resource+"."+rule.APIGroups[0]] = true
				}
			}
		}
	}
	all, err := CRDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		for _, verb := range []string{"get", "list", "watch"} {
			if !may[verb+" "+crd.Name] {
				t.Errorf("Karpenter may not %s %s", verb, crd.Name)
			}
		}
	}
}
