package apis

import "testing"

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
