package vm

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// withDependents adds a companion that is created before the VM, and two that are created after it.
func withDependents(in *fn.Infrastructure) {
	in.Companions = []fn.CompanionBinding{
		{Name: "disk", APIVersion: "test.drover.dev/v1", Kind: "Disk"},
		{
			Name: "attachment", APIVersion: "test.drover.dev/v1", Kind: "Attachment", AfterVM: true, Optional: true,
			Fields: []fn.FieldBinding{
				{Path: "spec.forProvider.disk", Value: `companions.disk.status.?id.orValue("")`},
				{Path: "spec.forProvider.vm", Value: `vm.status.?id.orValue("")`},
			},
		},
		{
			Name: "backend", APIVersion: "test.drover.dev/v1", Kind: "Backend", AfterVM: true, Ready: `companion.status.?id.orValue("") != ""`,
			Fields: []fn.FieldBinding{{Path: "spec.forProvider.attachment", Value: `companions.attachment.status.?id.orValue("")`}},
		},
	}
}

// created returns a Machine whose VM exists, and whose companions before the VM are ready.
func created(t *testing.T, change ...func(*fn.Infrastructure)) (*Binding, Observed) {
	t.Helper()
	b, err := Bind(input(append([]func(*fn.Infrastructure){withDependents}, change...)...))
	if err != nil {
		t.Fatal(err)
	}
	class := &machinev1alpha1.MachineClass{}
	class.Name, class.Spec.Provider = "a", "test"
	class.Spec.Companions = map[string]machinev1alpha1.Companion{"attachment": {ForProvider: &runtime.RawExtension{Raw: []byte(`{"slot": 3}`)}}}
	template := &machinev1alpha1.Machine{}
	template.Name = "set"
	o := Specimen(class, template)
	o.Companions = map[string]plan.Object{}
	says("disk", o, Plan(b, nil, o).Companions["disk"], map[string]any{"id": "d-1"}, isReady)
	made := Plan(b, nil, o).VM
	if made == nil {
		t.Fatal("no VM")
	}
	if got := made.GetAnnotations()[machinev1alpha1.AnnotationCompanions]; got != "disk,attachment,backend" {
		t.Fatalf("the VM was made with %q", got)
	}
	there := vm(made.GetAnnotations(), map[string]any{"id": "test:///1"}, isReady)
	there.SetAnnotations(merge(there.GetAnnotations(), "crossplane.io/external-name", "1"))
	o.VM = &there
	return b, o
}

func merge(annotations map[string]string, key, value string) map[string]string {
	out := map[string]string{key: value}
	for k, v := range annotations {
		out[k] = v
	}
	return out
}

// observes adds a companion that is created after the VM as its provider reports it.
func observes(name string, o Observed, made *unstructured.Unstructured, status map[string]any, conditions ...map[string]any) {
	says(name, o, made, status, conditions...)
	o.Companions[name].SetAnnotations(merge(o.Companions[name].GetAnnotations(), machinev1alpha1.AnnotationAfterVM, made.GetAnnotations()[machinev1alpha1.AnnotationAfterVM]))
}

func TestACompanionAfterTheVMIsMadeWhenTheVMIsThere(t *testing.T) {
	b, o := created(t)
	before := o
	before.VM = nil
	if d := Plan(b, nil, before); d.composed() != "disk vm" {
		t.Fatalf("composed %q before there is a VM", d.composed())
	}
	unknown := *o.VM
	unknown.Unstructured = o.VM.DeepCopy()
	unknown.Object["status"] = map[string]any{}
	before.VM = &unknown
	if d := Plan(b, nil, before); d.composed() != "disk vm" || d.Word.AwaitsCompanion {
		t.Fatalf("composed %q before the providerID is known: %+v", d.composed(), d.Word)
	}

	d := Plan(b, nil, o)
	if d.composed() != "attachment disk vm" {
		t.Fatalf("composed %q", d.composed())
	}
	a := d.Companions["attachment"]
	if diff := cmp.Diff(map[string]any{"disk": "d-1", "vm": "test:///1", "slot": int64(3)}, a.Object["spec"].(map[string]any)["forProvider"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{machinev1alpha1.AnnotationOrder: "1", machinev1alpha1.AnnotationAfterVM: "true"}, a.GetAnnotations()); diff != "" {
		t.Errorf("annotations: -want +got:\n%s", diff)
	}
	if d.Word.State != plan.VMCreating || !d.Word.AwaitsCompanion || d.Word.Message != "waiting for Attachment "+a.GetName()+", which completes the VM" || d.Word.ProviderID != "test:///1" {
		t.Errorf("%+v", d.Word)
	}

	observes("attachment", o, a, map[string]any{"id": "a-1"})
	if d = Plan(b, nil, o); d.composed() != "attachment disk vm" {
		t.Fatalf("composed %q before the attachment is ready", d.composed())
	}
	observes("attachment", o, a, map[string]any{"id": "a-1"}, isReady)
	d = Plan(b, nil, o)
	if d.composed() != "attachment backend disk vm" {
		t.Fatalf("composed %q", d.composed())
	}
	if got, _, _ := unstructured.NestedString(d.Companions["backend"].Object, "spec", "forProvider", "attachment"); got != "a-1" {
		t.Errorf("the backend has the attachment %q", got)
	}
	// The expression of the binding decides on readiness.
	observes("backend", o, d.Companions["backend"], nil, isReady)
	if d = Plan(b, nil, o); d.Word.State != plan.VMCreating || !strings.Contains(d.Word.Message, "Backend") {
		t.Errorf("before the backend is ready: %+v", d.Word)
	}
	observes("backend", o, d.Companions["backend"], map[string]any{"id": "b-1"})
	if d = Plan(b, nil, o); d.Word.State != plan.VMRunning || d.Word.AwaitsCompanion || d.Word.Message != "" {
		t.Errorf("when all are ready: %+v", d.Word)
	}
}

func TestACompanionAfterTheVMThatFailsHoldsAMachineOnlyUntilItHasRun(t *testing.T) {
	unfit := condition("LastAsyncOperation", "False", "AsyncCreateFailure", "no quota left")
	for name, tc := range map[string]struct {
		status machinev1alpha1.MachineStatus
		want   plan.VM
	}{
		"AMachineThatHasNotRunWaits": {
			machinev1alpha1.MachineStatus{Phase: machinev1alpha1.MachineJoining},
			plan.VM{State: plan.VMCreating, AwaitsCompanion: true, ErrorCode: "QuotaExceeded", Message: "no quota left"},
		},
		"AMachineThatRunsStaysRunning": {
			machinev1alpha1.MachineStatus{Phase: machinev1alpha1.MachineRunning},
			plan.VM{State: plan.VMRunning},
		},
		"AMachineWhoseNodeIsUnhealthyIsNotHeldToo": {
			machinev1alpha1.MachineStatus{Phase: machinev1alpha1.MachineUnknown},
			plan.VM{State: plan.VMRunning},
		},
		"AMachineThatIsUpdatedIsNotHeldToo": {
			machinev1alpha1.MachineStatus{Phase: machinev1alpha1.MachineUpdating},
			plan.VM{State: plan.VMRunning},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, o := created(t)
			observes("attachment", o, Plan(b, nil, o).Companions["attachment"], nil, unfit)
			o.Machine.Status = tc.status
			got := Plan(b, nil, o).Word
			if got.State != tc.want.State || got.AwaitsCompanion != tc.want.AwaitsCompanion || got.ErrorCode != tc.want.ErrorCode || !strings.HasSuffix(got.Message, tc.want.Message) || tc.want.Message == "" && got.Message != "" {
				t.Errorf("want %+v, got %+v", tc.want, got)
			}
		})
	}
}

// TestANewMachineWaitsAlsoWhileItsVMResourceShowsNothing: its Node may be healthy meanwhile.
func TestANewMachineWaitsAlsoWhileItsVMResourceShowsNothing(t *testing.T) {
	b, o := created(t)
	o.Machine.Status.ProviderID = "test:///1"
	o.VM.Object["status"] = map[string]any{"conditions": []any{isReady}}
	d := Plan(b, nil, o)
	if d.composed() != "disk vm" || !d.Word.AwaitsCompanion || d.Word.State != plan.VMCreating {
		t.Errorf("composed %q, %+v", d.composed(), d.Word)
	}
}

func TestNothingIsMadeAfterTheVMWhileThereIsAProblem(t *testing.T) {
	b, o := created(t)
	problem := &plan.Problem{Reason: "BindingInvalid", Message: "its kind is not installed"}
	if d := Plan(b, problem, o); d.composed() != "disk vm" || d.Word.Problem != problem {
		t.Errorf("composed %q, problem %+v", d.composed(), d.Word.Problem)
	}
}

func TestAnErrorOfTheVMComesBeforeACompanionThatIsWaitedFor(t *testing.T) {
	failing := condition("LastAsyncOperation", "False", "AsyncCreateFailure", "rate limit")
	for name, tc := range map[string]struct {
		vm, attachment []map[string]any
		want           string
	}{
		"OfAVMThatRuns":              {[]map[string]any{isReady, failing}, nil, "rate limit"},
		"OfAVMThatDoesNotRun":        {[]map[string]any{failing}, nil, "rate limit"},
		"ButNotBeforeAnErrorOfThat":  {[]map[string]any{isReady, failing}, []map[string]any{condition("Synced", "False", "ReconcileError", "no quota left")}, "no quota left"},
		"UnlessTheVMDoesNotRunAtAll": {[]map[string]any{failing}, []map[string]any{condition("Synced", "False", "ReconcileError", "no quota left")}, "rate limit"},
	} {
		t.Run(name, func(t *testing.T) {
			b, o := created(t)
			observes("attachment", o, Plan(b, nil, o).Companions["attachment"], nil, tc.attachment...)
			there := vm(o.VM.GetAnnotations(), map[string]any{"id": "test:///1"}, tc.vm...)
			o.VM = &there
			if got := Plan(b, nil, o).Word; !strings.HasSuffix(got.Message, tc.want) || !got.AwaitsCompanion || got.State != plan.VMCreating {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestAVMThatDoesNotRunYetComesBeforeItsCompanions(t *testing.T) {
	b, o := created(t)
	setConditions(*o.VM, condition("Ready", "False", "Creating", ""))
	o.VM.Object["status"].(map[string]any)["id"] = "test:///1"
	o.VM.SetAnnotations(merge(o.VM.GetAnnotations(), "crossplane.io/external-create-succeeded", "2030-01-01T12:00:00Z"))
	d := Plan(b, nil, o)
	if d.composed() != "attachment disk vm" || !d.Word.AwaitsCompanion || d.Word.State != plan.VMCreating || d.Word.Message != "" {
		t.Errorf("composed %q, %+v", d.composed(), d.Word)
	}
	// The provider is still requested to observe the VM.
	if d.VM.GetAnnotations()["crossplane.io/reconcile-requested-at"] == "" && d.Word.LookAgain == 0 {
		t.Error("the provider of the VM is never requested to observe it")
	}
}

func TestACreationAfterTheVMWithAnUnknownResultFailsOnlyANewMachine(t *testing.T) {
	for phase, want := range map[machinev1alpha1.MachinePhase]plan.VMState{
		machinev1alpha1.MachineJoining: plan.VMCreateUnknown, machinev1alpha1.MachineRunning: plan.VMRunning,
	} {
		b, o := created(t)
		observes("attachment", o, Plan(b, nil, o).Companions["attachment"], nil, condition("Synced", "False", "ReconcileError", "cannot determine creation result - remove the annotation"))
		o.Companions["attachment"].SetAnnotations(map[string]string{"crossplane.io/external-create-pending": "2030-01-01T12:00:00Z", machinev1alpha1.AnnotationAfterVM: "true"})
		o.Machine.Status.Phase = phase
		if got := Plan(b, nil, o).Word; got.State != want {
			t.Errorf("%s: %+v", phase, got)
		}
	}
}

func TestTheClassIsNeededUntilTheLastCompanionAfterTheVMWasCreated(t *testing.T) {
	problem := &plan.Problem{Reason: "ClassNotFound", Message: "no class"}
	for name, tc := range map[string]struct {
		change  func(o *Observed)
		lacking string
		want    string
		problem bool
	}{
		"WithoutItNothingIsMadeAndTheVMStays": {
			change: func(o *Observed) { o.Class, o.ClassProblem = nil, problem }, lacking: "attachment backend", want: "disk vm", problem: true,
		},
		"SoItIsWithoutTheInstallation": {
			change: func(o *Observed) { o.InstallationProblem = problem }, lacking: "attachment backend", want: "disk vm", problem: true,
		},
		"AnotherClassOfTheNameThatLacksItMakesNone": {
			change: func(o *Observed) { o.Class.Spec.Companions = nil }, lacking: "attachment backend", want: "disk vm", problem: true,
		},
		"AnotherClassOfTheNameForAnotherCloudMakesNone": {
			change: func(o *Observed) { o.Class.Spec.Provider = "other" }, lacking: "attachment backend", want: "disk vm", problem: true,
		},
		"AFailedMachineIsNotCompleted": {
			change: func(o *Observed) {
				o.Class, o.ClassProblem, o.Machine.Status.Phase = nil, problem, machinev1alpha1.MachineFailed
			}, want: "disk vm",
		},
		"AVMThatWasMadeWithoutItGetsNone": {
			change: func(o *Observed) {
				o.VM.SetAnnotations(merge(map[string]string{machinev1alpha1.AnnotationCompanions: "disk"}, "crossplane.io/external-name", "1"))
			}, want: "disk vm",
		},
		"WhenAllAreCreatedItIsNot": {
			change: func(o *Observed) {
				b, _ := Bind(input(withDependents))
				for _, name := range []string{"attachment", "backend"} {
					observes(name, *o, Plan(b, nil, *o).Companions[name], map[string]any{"id": "x"}, isReady)
				}
				o.Class, o.ClassProblem = nil, problem
			}, want: "attachment backend disk vm",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, o := created(t)
			tc.change(&o)
			var lacking []string
			for _, c := range b.LackingDependents(o) {
				lacking = append(lacking, c.Name)
			}
			if got := strings.Join(lacking, " "); got != tc.lacking {
				t.Errorf("lacking %q", got)
			}
			d := Plan(b, nil, o)
			if d.composed() != tc.want {
				t.Errorf("composed %q", d.composed())
			}
			if (d.Word.Problem != nil) != tc.problem || d.Word.ProviderID != "test:///1" {
				t.Errorf("%+v", d.Word)
			}
		})
	}
}

func TestACompanionAfterTheVMThatAUserDeletesIsMadeAgain(t *testing.T) {
	b, o := created(t)
	observes("attachment", o, Plan(b, nil, o).Companions["attachment"], map[string]any{"id": "a-1"}, isReady)
	o.Machine.Status.Phase = machinev1alpha1.MachineRunning
	now := metav1.Now()
	o.Companions["attachment"].SetDeletionTimestamp(&now)
	d := Plan(b, nil, o)
	if d.Word.State != plan.VMRunning || d.composed() != "attachment disk vm" {
		t.Errorf("while it is being deleted: composed %q, %+v", d.composed(), d.Word)
	}
	o.Machine.Status.Phase = machinev1alpha1.MachineJoining
	if d := Plan(b, nil, o); d.Word.State != plan.VMCreating || !strings.Contains(d.Word.Message, "which is being deleted and then created again") {
		t.Errorf("of a new Machine: %+v", d.Word)
	}
	o.Machine.Status.Phase = machinev1alpha1.MachineRunning
	delete(o.Companions, "attachment")
	d = Plan(b, nil, o)
	if got, _, _ := unstructured.NestedString(d.Companions["attachment"].Object, "spec", "forProvider", "vm"); got != "test:///1" || d.Word.State != plan.VMRunning {
		t.Errorf("when it is gone: VM %q, %+v", got, d.Word)
	}
	// One that needs another one waits for it.
	delete(o.Companions, "disk")
	if d = Plan(b, nil, o); d.composed() != "vm" || d.Word.State != plan.VMRunning {
		t.Errorf("without its disk: composed %q, %+v", d.composed(), d.Word)
	}
}

func TestACompanionAfterTheVMIsPinnedWhenItIsReadyAndStaysSo(t *testing.T) {
	policies := func(d Desired) []string {
		p, _, _ := unstructured.NestedStringSlice(d.Companions["attachment"].Object, "spec", "managementPolicies")
		return p
	}
	b, o := created(t)
	a := Plan(b, nil, o).Companions["attachment"]
	observes("attachment", o, a, nil)
	// From now on, a change of the class does not change it.
	o.Class.Spec.Companions["attachment"] = machinev1alpha1.Companion{ForProvider: &runtime.RawExtension{Raw: []byte(`{"slot": 4}`)}}
	d := Plan(b, nil, o)
	if diff := cmp.Diff(a.Object["spec"], d.Companions["attachment"].Object["spec"]); diff != "" || policies(d) != nil {
		t.Errorf("before it is ready: policies %v, -want +got:\n%s", policies(d), diff)
	}
	observes("attachment", o, a, nil, isReady)
	d = Plan(b, nil, o)
	if got := policies(d); !cmp.Equal(got, []string{"Observe", "Delete"}) {
		t.Errorf("when it is ready: policies %v", got)
	}
	observes("attachment", o, d.Companions["attachment"], nil, condition("Ready", "False", "Unavailable", ""))
	if got := policies(Plan(b, nil, o)); !cmp.Equal(got, []string{"Observe", "Delete"}) {
		t.Errorf("when it is ready no more: policies %v", got)
	}
	observes("attachment", o, a, nil, isReady)
	o.Machine.Status.ProviderID = "test:///1"
	if got := policies(Plan(nil, &plan.Problem{Reason: "Any"}, o)); !cmp.Equal(got, []string{"Observe", "Delete"}) {
		t.Errorf("without a binding: policies %v", got)
	}
}

func TestACompanionAfterTheVMIsCheckedBeforeThereIsAnything(t *testing.T) {
	b, o := created(t)
	before := o
	before.VM, before.Companions = nil, map[string]plan.Object{}
	before.Class.Spec.Companions["attachment"] = machinev1alpha1.Companion{ForProvider: &runtime.RawExtension{Raw: []byte(`[]`)}}
	d := Plan(b, nil, before)
	if d.composed() != "" || d.Word.Problem == nil || !strings.Contains(d.Word.Problem.Message, "companions.attachment.forProvider: must be an object") {
		t.Errorf("composed %q, problem %+v", d.composed(), d.Word.Problem)
	}
}

func TestABindingWithCompanionsAfterTheVMSaysWhatIsWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*fn.Infrastructure)
		want   string
	}{
		"OneBeforeTheVMUsesTheVM": {
			func(in *fn.Infrastructure) {
				in.Companions[0].Fields = []fn.FieldBinding{{Path: "spec.forProvider.vm", Value: "vm.status.id"}}
			}, `companions[0].fields[0].value (of spec.forProvider.vm): "vm.status.id": line 1, column 1: undeclared reference to 'vm'`,
		},
		"TheVMUsesItself": {
			func(in *fn.Infrastructure) {
				in.VirtualMachine.Fields = []fn.FieldBinding{{Path: "spec.forProvider.vm", Value: "vm.status.id"}}
			}, `virtualMachine.fields[0].value (of spec.forProvider.vm): "vm.status.id": line 1, column 1: undeclared reference to 'vm'`,
		},
		"OneBeforeTheVMIsBehindOneAfterIt": {
			func(in *fn.Infrastructure) { in.Companions[2].AfterVM = false },
			`companions[2].afterVM: companion "backend" is created before the VM, and must be before "attachment", which is created after the VM`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Bind(input(withDependents, tc.change)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want %q in %v", tc.want, err)
			}
		})
	}
}

// TestInAnyHistoryCompanionsAfterTheVMKeepTheirRules plays a provider that lags and flaps, a user who
// deletes companions and the class, and a Machine that runs at some time.
func TestInAnyHistoryCompanionsAfterTheVMKeepTheirRules(t *testing.T) {
	dependents := []string{"attachment", "backend"}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		b, o := created(t)
		class, status := o.Class, o.VM.Object["status"]
		for step := range 60 {
			switch r.IntN(8) {
			case 0:
				o.VM.Object["status"] = map[string]any{}
			case 1:
				o.VM.Object["status"] = status
			case 2:
				o.Class, o.ClassProblem = nil, &plan.Problem{Reason: "ClassNotFound"}
			case 3:
				o.Class, o.ClassProblem = class, nil
			case 4:
				delete(o.Companions, dependents[r.IntN(2)])
			}
			was := o.Machine.Status.Phase
			d := Plan(b, nil, o)
			for i, name := range dependents {
				there, exists := o.Companions[name]
				made := d.Companions[name]
				switch {
				case exists && made == nil:
					t.Fatalf("seed %d, step %d: %s is forgotten", seed, step, name)
				case !exists && made != nil && (!d.Word.Confirmed || o.Class == nil):
					t.Fatalf("seed %d, step %d: %s is made without a VM or a class", seed, step, name)
				case !exists && made != nil && i > 0 && !isReadyNow(o.Companions[dependents[i-1]]):
					t.Fatalf("seed %d, step %d: %s is made before the one that it needs", seed, step, name)
				case exists && !cmp.Equal(there.Object["spec"].(map[string]any)["forProvider"], made.Object["spec"].(map[string]any)["forProvider"]):
					t.Fatalf("seed %d, step %d: %s changed after its creation began", seed, step, name)
				}
			}
			complete := isReadyNow(o.Companions["attachment"]) && isIdentified(o.Companions["backend"])
			switch {
			case plan.HasRun(o.Machine.Status) && (d.Word.AwaitsCompanion || d.Word.Message != ""):
				t.Fatalf("seed %d, step %d: a Machine that has run is held: %+v", seed, step, d.Word)
			case !plan.HasRun(o.Machine.Status) && d.Word.ProviderID != "" && d.Word.State == plan.VMRunning && !complete:
				t.Fatalf("seed %d, step %d: a VM runs without its companions: %+v", seed, step, d.Word)
			}
			for _, name := range dependents {
				if made := d.Companions[name]; made != nil && r.IntN(2) == 0 {
					var conditions []map[string]any
					if r.IntN(2) == 0 {
						conditions = append(conditions, isReady)
					}
					observes(name, o, made, map[string]any{"id": []string{"", "x"}[r.IntN(2)]}, conditions...)
				}
			}
			if d.Word.State == plan.VMRunning && was != machinev1alpha1.MachineRunning && r.IntN(4) == 0 {
				o.Machine.Status.Phase = machinev1alpha1.MachineRunning
			}
		}
		// When the disturbances end, the VM is complete.
		o.VM.Object["status"], o.Class, o.ClassProblem = status, class, nil
		for range 3 {
			for name, made := range Plan(b, nil, o).Companions {
				if name != "disk" {
					observes(name, o, made, map[string]any{"id": "x"}, isReady)
				}
			}
		}
		if d := Plan(b, nil, o); d.composed() != "attachment backend disk vm" || d.Word.State != plan.VMRunning {
			t.Fatalf("seed %d: in the end: composed %q, %+v", seed, d.composed(), d.Word)
		}
	}
}

func isReadyNow(o plan.Object) bool { return o.Unstructured != nil && IsReady(o) }

func isIdentified(o plan.Object) bool {
	if o.Unstructured == nil {
		return false
	}
	id, _, _ := unstructured.NestedString(o.Object, "status", "id")
	return id != ""
}
