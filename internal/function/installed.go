package function

import (
	"slices"
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/vm"
)

const requirementRevisions = "provider-revisions"

// definitions are the kinds by which a package of a provider defines a kind. An inactive one of Crossplane has only
// the second.
var definitions = []string{"CustomResourceDefinition", "ManagedResourceDefinition"}

// areInstalled reports whether the kinds of a VM and its companions that Crossplane shows no schema of are in
// packages of providers. Crossplane caches the index of schemas until a CustomResourceDefinition changes. If it
// reads the index between the change and the moment at which the API server has published the new kind, it lacks
// the kind until the next change, or for an hour. So the absence of a schema alone does not mean that a provider
// is not installed. A kind that is of no package may be reported as missing for that time: a CustomResourceDefinition is
// too large to be read for each MachineDeployment. The controller of Machines reads the index itself, and reports a kind that is missing. The last
// result is false while Crossplane has not looked for the packages yet.
func areInstalled(req *fnv1.RunFunctionRequest, rsp step.Response, b *vm.Binding, companions []vm.Companion) (installed, looked bool) {
	var lacking []schema.GroupVersionKind
	lack := func(requirement string, t vm.Template) {
		if has, _ := hasKind(req, rsp, requirement, t.GVK); !has {
			lacking = append(lacking, t.GVK)
		}
	}
	lack(requirementSchema, b.VM)
	for _, c := range companions {
		lack(c.Name+suffixSchema, c.Template)
	}
	return arePackaged(req, rsp, lacking...)
}

// arePackaged reports whether active packages of providers define all of some kinds. The last result is false while
// Crossplane has not looked for the packages yet.
func arePackaged(req *fnv1.RunFunctionRequest, rsp step.Response, kinds ...schema.GroupVersionKind) (packaged, looked bool) {
	rsp.RequireByLabels(requirementRevisions, "pkg.crossplane.io/v1", "ProviderRevision", "", nil)
	revisions, looked := step.Required(req, requirementRevisions)
	missing := slices.ContainsFunc(kinds, func(gvk schema.GroupVersionKind) bool {
		return !slices.ContainsFunc(revisions, func(r plan.Object) bool { return defines(r, gvk) })
	})
	return !missing, looked
}

// defines reports whether an active revision of a package defines a kind.
func defines(revision plan.Object, gvk schema.GroupVersionKind) bool {
	if state, _, _ := unstructured.NestedString(revision.Object, "spec", "desiredState"); state != "Active" {
		return false
	}
	plural, singular := apimeta.UnsafeGuessKindToResource(gvk)
	names := []string{plural.GroupResource().String(), singular.GroupResource().String()}
	refs, _, _ := unstructured.NestedSlice(revision.Object, "status", "objectRefs")
	return slices.ContainsFunc(refs, func(ref any) bool {
		r, _ := ref.(map[string]any)
		kind, _ := r["kind"].(string)
		name, _ := r["name"].(string)
		return slices.Contains(definitions, kind) && slices.Contains(names, strings.ToLower(name))
	})
}
