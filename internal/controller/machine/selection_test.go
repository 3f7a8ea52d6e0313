package machine

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func aClass() *v1alpha1.MachineClass {
	c := &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "small"}}
	c.Spec.Provider = "cloud"
	return c
}

// aClusterClass serves the namespaces of the patterns.
func aClusterClass(patterns ...clusterv1alpha1.NamespacePattern) *v1alpha1.ClusterMachineClass {
	c := &v1alpha1.ClusterMachineClass{ObjectMeta: metav1.ObjectMeta{Name: "small"}}
	c.Spec.Provider, c.Spec.AllowedNamespaces = "cloud", patterns
	return c
}

// revision of a Composition of Machines for the provider of aClass.
func revision(composition string, number int64, changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	r := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"revision":         number,
		"compositeTypeRef": map[string]any{"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "Machine"},
		"pipeline": []any{map[string]any{
			"step": "script", "functionRef": map[string]any{"name": "function-drover"},
			"input": map[string]any{"kind": "Infrastructure", "virtualMachine": map[string]any{"apiVersion": vmKind.GroupVersion().String(), "kind": vmKind.Kind}},
		}},
	}}}
	r.SetGroupVersionKind(revisionKind)
	r.SetName(composition + "-" + string(rune('0'+number)))
	r.SetUID(types.UID(r.GetName()))
	r.SetLabels(map[string]string{labelComposition: composition, v1alpha1.LabelProvider: "cloud"})
	for _, c := range changes {
		c(r)
	}
	return r
}

func labeled(key, value string) func(*unstructured.Unstructured) {
	return func(r *unstructured.Unstructured) {
		l := r.GetLabels()
		l[key] = value
		r.SetLabels(l)
	}
}

func ofOtherComposites(r *unstructured.Unstructured) {
	_ = unstructured.SetNestedField(r.Object, "MachineSet", "spec", "compositeTypeRef", "kind")
}

// ofProvider names the provider in the input Infrastructure, in place of the label.
func ofProvider(provider string) func(*unstructured.Unstructured) {
	return func(r *unstructured.Unstructured) {
		steps, _, _ := unstructured.NestedSlice(r.Object, "spec", "pipeline")
		input := steps[0].(map[string]any)["input"].(map[string]any)
		input["apiVersion"], input["provider"] = fn.Group+"/"+fn.Version, provider
		_ = unstructured.SetNestedSlice(r.Object, steps, "spec", "pipeline")
	}
}

func TestChoose(t *testing.T) {
	const foreign = `MachineClass "small": spec.provider: is "cloud", but the Machine's Composition makes VMs of provider "other": select the Composition labeled provider: cloud with the Machine's spec.crossplane.compositionSelector.matchLabels`
	ref := func(name string) *v1alpha1.CompositionReference { return &v1alpha1.CompositionReference{Name: name} }
	selector := func(key, value string) *v1alpha1.CompositionSelector {
		return &v1alpha1.CompositionSelector{MatchLabels: map[string]string{key: value}}
	}
	manual := v1alpha1.CompositionUpdateManual
	cases := map[string]struct {
		reason    string
		selection *v1alpha1.CompositionSelection
		followed  string // by the status
		cluster   bool   // a ClusterMachineClass is named
		there     []client.Object
		want      string
		pin       bool
		problem   string
		because   string
	}{
		"ByTheProviderOfTheClass": {
			reason: "The latest revision of the Composition that has the label.",
			there:  []client.Object{aClass(), revision("a", 2), revision("a", 3), revision("a", 1), revision("b", 9, labeled(v1alpha1.LabelProvider, "other"))},
			want:   "a-3",
		},
		"TheFirstOfTwoCompositions": {
			reason: "The same view gives the same answer.",
			there:  []client.Object{aClass(), revision("b", 3), revision("a", 1)}, want: "a-1",
		},
		"NotOneOfOtherComposites": {
			reason: "The Composition of MachineSets has the label too.",
			there:  []client.Object{aClass(), revision("a", 1, ofOtherComposites), revision("b", 1)}, want: "b-1",
		},
		"NoneForTheProvider": {
			reason:  "The message names class, provider and label.",
			there:   []client.Object{aClass(), revision("a", 1, labeled(v1alpha1.LabelProvider, "other"))},
			problem: `MachineClass "small" has spec.provider "cloud", for which there is no Composition of Machines: one must have the label provider: cloud`,
		},
		"ByReference": {
			reason:    "The reference goes before the label, which two Compositions have.",
			selection: &v1alpha1.CompositionSelection{CompositionRef: ref("b")},
			there:     []client.Object{aClass(), revision("a", 1), revision("b", 1), revision("b", 2)}, want: "b-2",
		},
		"ByReferenceToAnotherProvider": {
			reason:    "The class would name an account and fields of another cloud.",
			selection: &v1alpha1.CompositionSelection{CompositionRef: ref("b")},
			there:     []client.Object{aClass(), revision("b", 1, labeled(v1alpha1.LabelProvider, "other"))},
			problem:   foreign, because: v1alpha1.ReasonProviderMismatch,
		},
		"BySelectorOfAnotherProvider": {
			reason:    "A selector can say anything.",
			selection: &v1alpha1.CompositionSelection{CompositionSelector: selector("tier", "gold")},
			there:     []client.Object{aClass(), revision("b", 1, labeled("tier", "gold"), ofProvider("other"))},
			problem:   foreign, because: v1alpha1.ReasonProviderMismatch,
		},
		"ByRevisionOfAnotherProvider": {
			reason:    "As a reference.",
			selection: &v1alpha1.CompositionSelection{CompositionUpdatePolicy: manual, CompositionRevisionRef: ref("b-1")},
			there:     []client.Object{aClass(), revision("b", 1, ofProvider("other"))},
			problem:   foreign, because: v1alpha1.ReasonProviderMismatch,
		},
		"ByReferenceToACopyWithoutTheLabel": {
			reason:    "The step has the provider. So the copy is not selected by default.",
			selection: &v1alpha1.CompositionSelection{CompositionRef: ref("b")},
			there:     []client.Object{aClass(), revision("b", 1, labeled(v1alpha1.LabelProvider, "copy"), ofProvider("cloud"))}, want: "b-1",
		},
		"ByReferenceToOneForAllProviders": {
			reason:    "Its author names no provider.",
			selection: &v1alpha1.CompositionSelection{CompositionRef: ref("b")},
			there:     []client.Object{aClass(), revision("b", 1, labeled(v1alpha1.LabelProvider, ""))}, want: "b-1",
		},
		"AClassThatWasMadeAgainForAnotherProvider": {
			reason: "What exists keeps its Composition.", followed: "b-1",
			selection: &v1alpha1.CompositionSelection{CompositionRef: ref("b")},
			there:     []client.Object{aClass(), revision("b", 1, ofProvider("other")), revision("b", 2, ofProvider("other"))}, want: "b-2",
		},
		"AReferenceThatChangedToAnotherProvider": {
			reason: "The VM stays where it is.", followed: "a-1",
			selection: &v1alpha1.CompositionSelection{CompositionRef: ref("b")},
			there:     []client.Object{aClass(), revision("a", 1), revision("b", 1, ofProvider("other"))},
			problem:   foreign, because: v1alpha1.ReasonProviderMismatch,
		},
		"ByReferenceWithoutClass": {
			reason: "The class is needed by the pipeline, not by the selection.", selection: &v1alpha1.CompositionSelection{CompositionRef: ref("b")},
			there: []client.Object{revision("b", 1)}, want: "b-1",
		},
		"ByReferenceToNone": {
			reason: "The message names the field.", selection: &v1alpha1.CompositionSelection{CompositionRef: ref("b")},
			there: []client.Object{aClass(), revision("a", 1)}, problem: `spec.crossplane.compositionRef.name: there is no Composition "b" of Machines with a revision`,
		},
		"BySelector": {
			reason: "A selector goes before the provider.", selection: &v1alpha1.CompositionSelection{CompositionSelector: selector("tier", "gold")},
			there: []client.Object{aClass(), revision("a", 1), revision("b", 1, labeled("tier", "gold"))}, want: "b-1",
		},
		"BySelectorOfNone": {
			reason: "The message names the field and the labels.", selection: &v1alpha1.CompositionSelection{CompositionSelector: selector("tier", "gold")},
			there: []client.Object{aClass(), revision("a", 1)}, problem: "spec.crossplane.compositionSelector.matchLabels: there is no Composition of Machines with the labels tier=gold",
		},
		"ByRevisionSelector": {
			reason:    "It narrows what the provider selects, and takes no revision of another one.",
			selection: &v1alpha1.CompositionSelection{CompositionRevisionSelector: selector("channel", "stable")},
			there: []client.Object{aClass(), revision("a", 1, labeled("channel", "stable")), revision("a", 2),
				revision("b", 3, labeled("channel", "stable"), labeled(v1alpha1.LabelProvider, "other"))},
			want: "a-1",
		},
		"ManualWithReference": {
			reason: "A newer revision changes nothing.", selection: &v1alpha1.CompositionSelection{CompositionUpdatePolicy: manual, CompositionRevisionRef: ref("a-1")},
			there: []client.Object{aClass(), revision("a", 1), revision("a", 2)}, want: "a-1",
		},
		"ManualWithReferenceToNone": {
			reason: "The message names the field.", selection: &v1alpha1.CompositionSelection{CompositionUpdatePolicy: manual, CompositionRevisionRef: ref("a-7")},
			there: []client.Object{aClass(), revision("a", 1)}, problem: `spec.crossplane.compositionRevisionRef.name: there is no CompositionRevision "a-7"`,
		},
		"ManualWithReferenceToOtherComposites": {
			reason: "A pipeline of another kind would decide about a Machine.", selection: &v1alpha1.CompositionSelection{CompositionUpdatePolicy: manual, CompositionRevisionRef: ref("a-1")},
			there: []client.Object{aClass(), revision("a", 1, ofOtherComposites)}, problem: `spec.crossplane.compositionRevisionRef.name: the CompositionRevision "a-1" does not compose Machines`,
		},
		"ManualWithoutReference": {
			reason: "The latest revision is recorded.", selection: &v1alpha1.CompositionSelection{CompositionUpdatePolicy: manual},
			there: []client.Object{aClass(), revision("a", 1), revision("a", 2)}, want: "a-2", pin: true,
		},
		"AutomaticWithReference": {
			reason: "The reference of an earlier policy does not count.", selection: &v1alpha1.CompositionSelection{CompositionRevisionRef: ref("a-1")},
			there: []client.Object{aClass(), revision("a", 1), revision("a", 2)}, want: "a-2",
		},
		"ClassDeletedLater": {
			reason: "A Machine keeps its Composition, and gets its new revisions.", followed: "a-1",
			there: []client.Object{revision("a", 1), revision("a", 2), revision("0", 1)}, want: "a-2",
		},
		"ClassAndRevisionDeletedLater": {
			reason: "The Composition is unknown.", followed: "a-1",
			there: []client.Object{revision("a", 2)}, problem: `spec.classRef.name: there is no MachineClass "small" in namespace "ns"`, because: v1alpha1.ReasonClassNotFound,
		},
		"ByTheProviderOfAClusterMachineClass": {
			reason: "The class serves the namespace.", cluster: true,
			there: []client.Object{aClusterClass("other", "n*"), revision("a", 1)}, want: "a-1",
		},
		"AClusterMachineClassOfOtherNamespaces": {
			reason: "The message shows what to change.", cluster: true,
			there:   []client.Object{aClusterClass("other", "ns-*"), aClass(), revision("a", 1)},
			problem: `spec.classRef.name: ClusterMachineClass "small": Machines of namespace "ns" may not use it: add "ns", or a pattern that matches it, to its spec.allowedNamespaces`,
			because: v1alpha1.ReasonClassNotAllowed,
		},
		"AClusterMachineClassThatServesTheNamespaceNoLonger": {
			reason: "What exists keeps its Composition.", cluster: true, followed: "a-1",
			there: []client.Object{aClusterClass(), revision("a", 1)}, want: "a-1",
		},
		"NoClusterMachineClass": {
			reason: "The MachineClass of the same name is another one.", cluster: true, there: []client.Object{aClass(), revision("a", 1)},
			problem: `spec.classRef.name: there is no ClusterMachineClass "small"`, because: v1alpha1.ReasonClassNotFound,
		},
		"NoMachineClassOfTheNameOfAClusterMachineClass": {
			reason: "The kinds are distinguished.", there: []client.Object{aClusterClass("*"), revision("a", 1)},
			problem: `spec.classRef.name: there is no MachineClass "small" in namespace "ns"`, because: v1alpha1.ReasonClassNotFound,
		},
		"NoClass": {
			reason: "The class is named.", there: []client.Object{revision("a", 1)},
			problem: `spec.classRef.name: there is no MachineClass "small" in namespace "ns"`, because: v1alpha1.ReasonClassNotFound,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := aMachine(false)
			if tc.cluster {
				m.Spec.ClassRef.Kind = "ClusterMachineClass"
			}
			m.Spec.Crossplane, m.Status.CompositionRevision = tc.selection, tc.followed
			slices.Reverse(tc.there)
			got, err := newWorld(t, tc.there...).r.choose(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			var chosen, problem, because string
			if got.revision != nil {
				chosen = got.revision.GetName()
			}
			if got.problem != nil {
				problem, because = got.problem.Message, got.problem.Reason
			}
			if tc.problem != "" && tc.because == "" {
				tc.because = v1alpha1.ReasonCompositionNotFound
			}
			if chosen != tc.want || got.pin != tc.pin || problem != tc.problem || because != tc.because {
				t.Errorf("%s\nrevision %q, pin %v, problem %s: %s\nwant %q, %v, %s: %s", tc.reason, chosen, got.pin, because, problem, tc.want, tc.pin, tc.because, tc.problem)
			}
		})
	}
}
