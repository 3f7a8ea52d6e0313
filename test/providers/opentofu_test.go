package providers

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/drover-dev/drover/internal/function/machinetest"
)

// TestAClassOfOpenTofuDecidesOnVariablesOnly has a class with all fields by which a Workspace
// could run code with the credentials of the cloud, or read Secrets.
func TestAClassOfOpenTofuDecidesOnVariablesOnly(t *testing.T) {
	want := rendered(t, newPlane(t, "opentofu", ""))
	hostile := func(class *unstructured.Unstructured) {
		for field, value := range map[string]any{
			"source": "Remote", "module": "git::https://example.org/hostile.git", "entrypoint": "hostile", "inlineFormat": "JSON",
			"env":                  []any{map[string]any{"name": "TF_CLI_CONFIG_FILE", "value": "hostile"}},
			"vars":                 []any{map[string]any{"key": "name", "value": "hostile"}},
			"varFiles":             []any{map[string]any{"source": "SecretKey", "secretKeyRef": map[string]any{"name": "hostile", "key": "hostile"}}},
			"enableTofuCLILogging": true,
		} {
			machinetest.Set(class, value, "spec", "forProvider", field)
		}
		for _, field := range []string{"initArgs", "planArgs", "applyArgs", "destroyArgs"} {
			machinetest.Set(class, []any{"-backend-config=hostile"}, "spec", "forProvider", field)
		}
		for _, variable := range []string{"name", "failure_domain"} {
			machinetest.Set(class, "hostile", "spec", "forProvider", "varmap", variable)
		}
	}
	got := rendered(t, newPlane(t, "opentofu", "", hostile))
	if diff := cmp.Diff(want.Object["spec"], got.Object["spec"]); diff != "" {
		t.Errorf("the class changed the Workspace: -want +got:\n%s", diff)
	}
}

// TestTheModuleOfOpenTofuDeclaresItsVariables compares the module with the values that the
// Composition and the class set. OpenTofu silently ignores an undeclared variable of the
// environment, and prompts for a missing value.
func TestTheModuleOfOpenTofuDeclaresItsVariables(t *testing.T) {
	vm := rendered(t, newPlane(t, "opentofu", "cn-hangzhou-h"))
	module, _, _ := unstructured.NestedString(vm.Object, "spec", "forProvider", "module")
	f, diags := hclparse.NewParser().ParseHCL([]byte(module), "main.tf")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	given, _, _ := unstructured.NestedMap(vm.Object, "spec", "forProvider", "varmap")
	given["user_data"] = "by the environment"
	var outputs []string
	for _, block := range f.Body.(*hclsyntax.Body).Blocks {
		switch block.Type {
		case "variable":
			_, hasDefault := block.Body.Attributes["default"]
			if _, ok := given[block.Labels[0]]; !ok && !hasDefault {
				t.Errorf("variable %s has neither a value nor a default", block.Labels[0])
			}
			delete(given, block.Labels[0])
			if block.Labels[0] == "user_data" && !isTrue(block.Body.Attributes["sensitive"]) {
				t.Error("variable user_data is not sensitive: OpenTofu prints it in errors")
			}
		case "output":
			outputs = append(outputs, block.Labels[0])
		}
	}
	for name := range given {
		t.Errorf("the module does not declare the variable %s", name)
	}
	if want := []string{"provider_id", "addresses"}; !slices.Equal(outputs, want) {
		t.Errorf("outputs %v, want %v", outputs, want)
	}
}

func isTrue(a *hclsyntax.Attribute) bool {
	if a == nil {
		return false
	}
	v, diags := a.Expr.Value(&hcl.EvalContext{})
	return !diags.HasErrors() && v.True()
}
