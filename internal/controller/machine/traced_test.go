package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper/nodetest"
	"github.com/drover-dev/drover/internal/names"
)

// vmReference is that of the only resource that the pipeline of these tests composes.
var vmReference = v1alpha1.ResourceReference{APIVersion: "cloud.example.org/v1", Kind: "Server", Name: names.OfMachine("m", "uid-m")}

func (w *world) wantTraced(want ...v1alpha1.ResourceReference) {
	w.t.Helper()
	if d := cmp.Diff(want, tracedBefore(w.machine())); d != "" {
		w.t.Errorf("spec.crossplane.resourceRefs (-want +got):\n%s", d)
	}
}

// traces sets the references of the Machine.
func (w *world) traces(refs ...v1alpha1.ResourceReference) {
	w.t.Helper()
	m := w.machine()
	m.Spec.Crossplane = &v1alpha1.CompositionSelection{ResourceRefs: refs}
	w.update(m)
	w.writes = nil
}

func TestAMachineTracesItsVMAsSoonAsTheProviderReportsAnError(t *testing.T) {
	w := living(t)
	w.step()
	w.step()
	w.wantTraced()
	w.provide("error", "QuotaExceeded")
	w.wantStep("the user looks for the VM resource", "patch Machine", "patch Machine/status")
	w.wantTraced(vmReference)
	w.wantRest("the error stays")
	w.provide("id", nodetest.ID)
	w.wantStep("the quota was raised", "patch Machine", "patch Machine/status")
	w.wantTraced(vmReference)
}

// TestReferencesOfAMachineDecideNothing: a user may write them, and those of a Machine that was
// restored or made by an earlier release differ.
func TestReferencesOfAMachineDecideNothing(t *testing.T) {
	for name, before := range map[string][]v1alpha1.ResourceReference{
		"None":    nil,
		"Forged":  {{APIVersion: "v1", Kind: "Secret", Name: "of-another-team"}},
		"Another": {{APIVersion: "cloud.example.org/v1", Kind: "Server", Name: "v"}, vmReference},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t)
			watched := len(w.watched)
			w.traces(before...)
			w.wantStep("the references are corrected, and nothing else happens", "patch Machine", "patch Machine/status")
			w.wantTraced(vmReference)
			w.wantRest("they are corrected")
			if w.servers() != 1 || len(w.watched) != watched {
				t.Errorf("%d VMs, new watches %v", w.servers(), w.watched[watched:])
			}
		})
	}
}
