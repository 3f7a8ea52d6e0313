package replicas

import (
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
)

const requirementRevisions = "revisions"

// finalizerComposite is Crossplane's own on every XR.
const finalizerComposite = "composite.apiextensions.crossplane.io"

// A selection is what Crossplane would find out and write into a Machine at its
// first three reconciles. A Machine that is created with it is spared them.
type selection struct {
	// Composition and its latest revision. Both are empty when not known yet:
	// Crossplane finds them then.
	composition, revision string
}

// requireCompositions asks for the Compositions of a class's provider, and for
// their revisions, which have the same labels.
func requireCompositions(rsp step.Response, class *machinev1alpha1.MachineClass) {
	rsp.RequireCompositions(class)
	labels := map[string]string{machinev1alpha1.LabelProvider: class.Spec.Provider}
	rsp.RequireByLabels(requirementRevisions, "apiextensions.crossplane.io/v1", "CompositionRevision", "", labels)
}

// composition selects one for a class's provider, and returns a problem if there is
// none for Machines. It is false while Crossplane has not looked for them yet.
func composition(req *fnv1.RunFunctionRequest, class *machinev1alpha1.MachineClass) (step.Object, selection, *step.Problem, bool) {
	c, problem, looked := step.Composition(req, class)
	revisions, looked2 := step.Required(req, requirementRevisions)
	if !looked || !looked2 || problem != nil {
		return c, selection{}, problem, looked && looked2
	}
	if revision := latest(revisions, c.GetName()); revision != "" {
		return c, selection{composition: c.GetName(), revision: revision}, nil, true
	}
	return c, selection{}, nil, true
}

// latest revision of a Composition.
func latest(revisions []step.Object, composition string) string {
	name, most := "", int64(0)
	for _, r := range revisions {
		n, _, _ := unstructured.NestedFieldNoCopy(r.Object, "spec", "revision")
		if r.GetLabels()["crossplane.io/composition-name"] != composition {
			continue
		}
		if revision := number(n); revision > most {
			name, most = r.GetName(), revision
		}
	}
	return name
}

// number decodes what protobuf makes a float of.
func number(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	}
	return 0
}

var (
	compositionName = []string{"spec", "crossplane", "compositionRef", "name"}
	revisionName    = []string{"spec", "crossplane", "compositionRevisionRef", "name"}
)

// selectionOf a Machine that exists is kept as it is: Crossplane or a user may have
// changed it since.
func selectionOf(m step.Object) selection {
	s := selection{}
	s.composition, _, _ = unstructured.NestedString(m.Object, compositionName...)
	s.revision, _, _ = unstructured.NestedString(m.Object, revisionName...)
	return s
}

// write the selection, and Crossplane's finalizer, into a desired Machine.
func (s selection) write(m map[string]any) error {
	for _, f := range []struct {
		path  []string
		value string
	}{{compositionName, s.composition}, {revisionName, s.revision}} {
		if f.value == "" {
			continue
		}
		if err := unstructured.SetNestedField(m, f.value, f.path...); err != nil {
			return err
		}
	}
	u := unstructured.Unstructured{Object: m}
	u.SetFinalizers(append(u.GetFinalizers(), finalizerComposite))
	return nil
}
