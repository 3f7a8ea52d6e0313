package vm

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// withCompanions adds two companions to a binding: an optional address, and a card, which all VMs
// have and which uses the address if there is one.
func withCompanions(in *fn.Infrastructure) {
	in.Companions = []fn.CompanionBinding{
		{Name: "address", APIVersion: "test.drover.dev/v1", Kind: "Address", Optional: true},
		{
			Name: "card", APIVersion: "test.drover.dev/v1", Kind: "Card", Ready: `companion.status.?id.orValue("") != ""`,
			Fields: []fn.FieldBinding{
				{Path: "spec.forProvider.name", Value: "name"},
				{Path: "spec.forProvider.address", Value: `"address" in companions ? optional.of(companions.address.status.?id.orValue("")) : optional.none()`},
			},
		},
	}
	in.VirtualMachine.Fields = append(in.VirtualMachine.Fields, fn.FieldBinding{Path: "spec.forProvider.card", Value: `companions.card.status.?id.orValue("")`})
}

// wanted returns a Machine with published user data and with a class that has both companions.
func wanted(t *testing.T) (*Binding, Observed) {
	t.Helper()
	b, err := Bind(input(withCompanions))
	if err != nil {
		t.Fatal(err)
	}
	class := &machinev1alpha1.MachineClass{}
	class.Name, class.Spec.Provider = "a", "test"
	class.Spec.Companions = map[string]machinev1alpha1.Companion{
		"address": {},
		"card":    {ForProvider: &runtime.RawExtension{Raw: []byte(`{"speed": 10}`)}},
	}
	template := &machinev1alpha1.Machine{}
	template.Name = "set"
	o := Specimen(class, template)
	o.Companions = map[string]plan.Object{}
	return b, o
}

// composed lists the composed resources.
func (d Desired) composed() string {
	out := slices.Sorted(maps.Keys(d.Companions))
	if d.VM != nil {
		out = append(out, "vm")
	}
	return strings.Join(out, " ")
}

// says adds the observed state of a companion whose creation began.
func says(name string, o Observed, made *unstructured.Unstructured, status map[string]any, conditions ...map[string]any) {
	there := vm(map[string]string{"crossplane.io/external-name": name, machinev1alpha1.AnnotationOrder: made.GetAnnotations()[machinev1alpha1.AnnotationOrder]}, status, conditions...)
	there.SetName(made.GetName())
	there.SetKind(made.GetKind())
	there.Object["spec"] = made.Object["spec"]
	o.Companions[name] = there
}

var isReady = condition("Ready", "True", "Available", "")

func TestCompanionsComeInTheirOrderAndThenTheVM(t *testing.T) {
	b, o := wanted(t)
	d := Plan(b, nil, o)
	if d.composed() != "address" || d.Word.State != plan.VMCreating || d.Word.ErrorCode != "" || !strings.Contains(d.Word.Message, "waiting for Address ") {
		t.Fatalf("composed %q, %+v", d.composed(), d.Word)
	}
	says("address", o, d.Companions["address"], map[string]any{"id": "a-1"})
	if d = Plan(b, nil, o); d.composed() != "address" {
		t.Fatalf("composed %q before the address is ready", d.composed())
	}
	says("address", o, d.Companions["address"], map[string]any{"id": "a-1"}, isReady)
	if d = Plan(b, nil, o); d.composed() != "address card" {
		t.Fatalf("composed %q", d.composed())
	}
	want := map[string]any{"name": d.Companions["card"].GetName(), "address": "a-1", "speed": int64(10)}
	if diff := cmp.Diff(want, d.Companions["card"].Object["spec"].(map[string]any)["forProvider"]); diff != "" {
		t.Errorf("card: -want +got:\n%s", diff)
	}
	if a := d.Companions["card"].GetAnnotations()[machinev1alpha1.AnnotationOrder]; a != "1" {
		t.Errorf("its order is %q", a)
	}
	// The expression of the binding decides on readiness, and it is false here.
	says("card", o, d.Companions["card"], nil, isReady)
	if d = Plan(b, nil, o); d.composed() != "address card" {
		t.Fatalf("composed %q before the card is ready", d.composed())
	}
	says("card", o, d.Companions["card"], map[string]any{"id": "c-1"})
	if d = Plan(b, nil, o); d.composed() != "address card vm" {
		t.Fatalf("composed %q", d.composed())
	}
	if got, _, _ := unstructured.NestedString(d.VM.Object, "spec", "forProvider", "card"); got != "c-1" {
		t.Errorf("the VM has the card %q", got)
	}
	if a := d.VM.GetAnnotations()[machinev1alpha1.AnnotationCompanions]; a != "address,card" {
		t.Errorf("the VM was made with %q", a)
	}
}

func TestACompanionThatNoClassHasIsLeftOut(t *testing.T) {
	b, o := wanted(t)
	delete(o.Class.Spec.Companions, "address")
	d := Plan(b, nil, o)
	if d.composed() != "card" {
		t.Fatalf("composed %q", d.composed())
	}
	if _, ok, _ := unstructured.NestedString(d.Companions["card"].Object, "spec", "forProvider", "address"); ok {
		t.Error("the card has an address")
	}
}

func TestWhatBecomesOfACompanionIsSaidOfTheVM(t *testing.T) {
	now := metav1.Now()
	for name, tc := range map[string]struct {
		change func(plan.Object)
		want   plan.VM
	}{
		"AnErrorHasItsClass": {
			func(c plan.Object) {
				setConditions(c, condition("LastAsyncOperation", "False", "AsyncCreateFailure", "no quota left"))
			},
			plan.VM{State: plan.VMCreating, ErrorCode: "QuotaExceeded", Message: "no quota left"},
		},
		"ACreationThatTheProviderGaveUpIsUnknown": {
			func(c plan.Object) {
				c.SetAnnotations(map[string]string{"crossplane.io/external-create-pending": "2030-01-01T12:00:00Z"})
				setConditions(c, condition("Synced", "False", "ReconcileError", "cannot determine creation result - remove the annotation"))
			},
			plan.VM{State: plan.VMCreateUnknown, Message: "it is unknown whether it exists"},
		},
		"OneThatSomebodyDeletesIsLost": {
			func(c plan.Object) { c.SetDeletionTimestamp(&now) },
			plan.VM{State: plan.VMLost, Message: "is being deleted, although its Machine is not"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, o := wanted(t)
			says("address", o, Plan(b, nil, o).Companions["address"], nil)
			tc.change(o.Companions["address"])
			d := Plan(b, nil, o)
			if d.Word.State != tc.want.State || d.Word.ErrorCode != tc.want.ErrorCode || !strings.Contains(d.Word.Message, tc.want.Message) || !strings.Contains(d.Word.Message, "Address "+o.Companions["address"].GetName()) {
				t.Errorf("%+v", d.Word)
			}
			if d.composed() != "address" {
				t.Errorf("composed %q", d.composed())
			}
		})
	}
}

// TestARefusedCompanionIsTriedAgain has a companion whose creation was tried at noon and refused. upjet may wait for its
// next poll, as with a VM.
func TestARefusedCompanionIsTriedAgain(t *testing.T) {
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	refused := condition("LastAsyncOperation", "False", "AsyncCreateFailure", "no quota left")
	throttled := condition("LastAsyncOperation", "False", "AsyncCreateFailure", "rate limit")
	for name, tc := range map[string]struct {
		after, asked time.Duration
		conditions   []map[string]any
		change       func(o Observed)
		// want means that a retry is requested now, and next is the time until the following look.
		want bool
		next time.Duration
	}{
		"NotWhileItsProviderRetriesIt":        {after: 40 * time.Second, conditions: []map[string]any{refused}, next: 20 * time.Second},
		"AfterAMinuteWithoutAnAttempt":        {after: time.Minute, conditions: []map[string]any{refused}, want: true, next: 30 * time.Second},
		"NotTwiceWithin30Seconds":             {after: 80 * time.Second, asked: time.Minute, conditions: []map[string]any{refused}, next: 10 * time.Second},
		"AThrottledOneAfterTwoMinutes":        {after: 2 * time.Minute, conditions: []map[string]any{throttled}, want: true, next: 30 * time.Second},
		"NotAThrottledOneBefore":              {after: time.Minute, conditions: []map[string]any{throttled}, next: time.Minute},
		"NotOneThatIsBeingCreated":            {after: time.Hour},
		"NotOneThatIsReady":                   {after: time.Hour, conditions: []map[string]any{isReady, refused}},
		"NotThatOfAFailedMachine":             {after: time.Hour, conditions: []map[string]any{refused}, change: func(o Observed) { o.Machine.Status.Phase = machinev1alpha1.MachineFailed }},
		"NotThatOfAMachineThatIsBeingDeleted": {after: time.Hour, conditions: []map[string]any{refused}, change: func(o Observed) { now := metav1.Now(); o.Machine.DeletionTimestamp = &now }},
		"NotOneThatIsBeingDeleted":            {after: time.Hour, conditions: []map[string]any{refused}, change: func(o Observed) { now := metav1.Now(); o.Companions["address"].SetDeletionTimestamp(&now) }},
		"NotOneThatTheProviderGaveUp": {
			after: time.Hour, conditions: []map[string]any{condition("Synced", "False", "ReconcileError", "cannot determine creation result - remove the annotation")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, o := wanted(t)
			says("address", o, Plan(b, nil, o).Companions["address"], nil, tc.conditions...)
			annotations := map[string]string{"crossplane.io/external-create-pending": noon.Format(time.RFC3339)}
			asked := ""
			if tc.asked > 0 {
				asked = noon.Add(tc.asked).Format(time.RFC3339)
				annotations[meta.AnnotationKeyReconcileRequestedAt] = asked
			}
			o.Companions["address"].SetAnnotations(annotations)
			o.Now = noon.Add(tc.after)
			if tc.change != nil {
				tc.change(o)
			}
			d := Plan(b, nil, o)
			if tc.want {
				asked = o.Now.Format(time.RFC3339)
			}
			if got := d.Companions["address"].GetAnnotations()[meta.AnnotationKeyReconcileRequestedAt]; got != asked {
				t.Errorf("requested at %q, want %q", got, asked)
			}
			if d.Word.LookAgain != tc.next {
				t.Errorf("next in %s, want %s", d.Word.LookAgain, tc.next)
			}
		})
	}
}

func setConditions(o plan.Object, list ...map[string]any) {
	var all []any
	for _, c := range list {
		all = append(all, c)
	}
	o.Object["status"] = map[string]any{"conditions": all}
}

// TestNoCompanionIsEverForgotten: regardless of changes to Machine, class and binding, only the
// deletion of the Machine deletes companions.
func TestNoCompanionIsEverForgotten(t *testing.T) {
	problem := &plan.Problem{Reason: "Any", Message: "thing"}
	for name, change := range map[string]func(b **Binding, invalid **plan.Problem, o *Observed){
		"OfABindingThatIsNotValid": func(b **Binding, invalid **plan.Problem, _ *Observed) { *b, *invalid = nil, problem },
		"OfAClassThatIsGone":       func(_ **Binding, _ **plan.Problem, o *Observed) { o.Class, o.ClassProblem = nil, problem },
		"OfAMachineThatFailed": func(_ **Binding, _ **plan.Problem, o *Observed) {
			o.Machine.Status.Phase = machinev1alpha1.MachineFailed
		},
		"OfAVMThatIsGone":               func(_ **Binding, _ **plan.Problem, o *Observed) { o.Machine.Status.ProviderID = "test:///1" },
		"WhileUserDataIsAwaited":        func(_ **Binding, _ **plan.Problem, o *Observed) { o.Bootstrap = plan.Bootstrap{} },
		"OfABindingThatHasThemNoMore":   func(b **Binding, _ **plan.Problem, _ *Observed) { *b, _ = Bind(input()) },
		"WhenOneBeforeItIsReadyNoMore":  func(_ **Binding, _ **plan.Problem, o *Observed) { o.Companions["address"].Object["status"] = nil },
		"OfAnInstallationThatIsUnknown": func(_ **Binding, _ **plan.Problem, o *Observed) { o.InstallationProblem = problem },
	} {
		t.Run(name, func(t *testing.T) {
			b, o := wanted(t)
			invalid := (*plan.Problem)(nil)
			says("address", o, Plan(b, nil, o).Companions["address"], nil, isReady)
			says("card", o, Plan(b, nil, o).Companions["card"], map[string]any{"id": "c-1"})
			was := o.Companions["card"].DeepCopy()
			change(&b, &invalid, &o)
			d := Plan(b, invalid, o)
			if d.Companions["address"] == nil || d.Companions["card"] == nil {
				t.Fatalf("composed %q", d.composed())
			}
			card := d.Companions["card"]
			if o.Machine.Status.ProviderID == "" && !cmp.Equal(card.Object["spec"], was.Object["spec"]) {
				t.Errorf("the card changed:\n%s", cmp.Diff(was.Object["spec"], card.Object["spec"]))
			}
			if card.GetName() != was.GetName() || card.GetAnnotations()[machinev1alpha1.AnnotationOrder] != "1" {
				t.Errorf("the card is %s, annotations %v", card.GetName(), card.GetAnnotations())
			}
		})
	}
}

func TestACompanionStaysAsItWasAskedForAndIsPinnedWithItsVM(t *testing.T) {
	b, o := wanted(t)
	says("address", o, Plan(b, nil, o).Companions["address"], nil, isReady)
	says("card", o, Plan(b, nil, o).Companions["card"], nil)
	// A class is immutable, but the tags of a Machine and a binding may change.
	b, _ = Bind(input(withCompanions, func(in *fn.Infrastructure) { in.Companions[1].Fields[0].Value = `"another"` }))
	d := Plan(b, nil, o)
	if got, _, _ := unstructured.NestedString(d.Companions["card"].Object, "spec", "forProvider", "name"); got == "another" {
		t.Error("a card that may be there is asked for anew")
	}
	there := vm(map[string]string{"crossplane.io/external-name": "1"}, map[string]any{"id": "test:///1"}, isReady)
	o.VM = &there
	d = Plan(b, nil, o)
	for name, c := range d.Companions {
		if p, _, _ := unstructured.NestedStringSlice(c.Object, "spec", "managementPolicies"); !cmp.Equal(p, []string{"Observe", "Delete"}) {
			t.Errorf("%s of a VM that is there has the policies %v", name, p)
		}
	}
	if d.composed() != "address card vm" {
		t.Errorf("composed %q", d.composed())
	}
}

func TestAStatusReadsCompanions(t *testing.T) {
	b, err := Bind(input(withCompanions, func(in *fn.Infrastructure) {
		in.Status.Addresses = `companions.card.status.?ips.orValue([]).map(a, {"type": "InternalIP", "address": a})`
	}))
	if err != nil {
		t.Fatal(err)
	}
	there := vm(nil, map[string]any{"id": "test:///1"})
	o := Observed{Machine: &machinev1alpha1.Machine{}, VM: &there}
	if got, err := read(b, o); err != nil || len(got.Addresses) != 0 {
		t.Errorf("without the card: %+v, %v", got, err)
	}
	o.Companions = map[string]plan.Object{"card": vm(nil, map[string]any{"ips": []any{"10.0.0.7"}})}
	if got, err := read(b, o); err != nil || len(got.Addresses) != 1 || got.Addresses[0].Address != "10.0.0.7" {
		t.Errorf("with the card: %+v, %v", got, err)
	}
}

func TestACompanionThatIsNotValidSaysWhere(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*fn.Infrastructure)
		want   string
	}{
		"ANameThatIsNone":         {func(in *fn.Infrastructure) { in.Companions[0].Name = "Address-1" }, `companions[0].name: "Address-1" must be of at most 20`},
		"ANameTwice":              {func(in *fn.Infrastructure) { in.Companions[0].Name = "card" }, `companions[1].name: there is a companion "card" before it`},
		"NoKind":                  {func(in *fn.Infrastructure) { in.Companions[1].Kind = "" }, "companions[1].kind is required"},
		"AFieldOutsideOfTheSpec":  {func(in *fn.Infrastructure) { in.Companions[1].Fields[0].Path = "metadata.name" }, `companions[1].fields[0].path: "metadata.name": must be below spec`},
		"AnExpressionWithATypo":   {func(in *fn.Infrastructure) { in.Companions[1].Fields[0].Value = "nam" }, `companions[1].fields[0].value (of spec.forProvider.name): "nam": line 1, column 1`},
		"AReadyThatIsNoTruth":     {func(in *fn.Infrastructure) { in.Companions[1].Ready = `"yes"` }, "companions[1].ready"},
		"AReadyThatReadsTheClass": {func(in *fn.Infrastructure) { in.Companions[1].Ready = `class.spec.x` }, "undeclared reference to 'class'"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Bind(input(withCompanions, tc.change)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want %q in %v", tc.want, err)
			}
		})
	}
}
