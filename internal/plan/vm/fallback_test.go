package vm

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// listed returns a Machine of a class with the instance types a, b and c, at a cloud whose VMs have their instance type in
// the field type.
func listed(t *testing.T, change ...func(*fn.Infrastructure)) (*Binding, Observed) {
	t.Helper()
	b, o := single(t, append([]func(*fn.Infrastructure){func(in *fn.Infrastructure) {
		in.VirtualMachine.InstanceTypePath = "spec.forProvider.type"
		in.NodeCapacity = `{"a": {"cpu": 8, "memory": "16Gi"}, "b": {"cpu": 4, "memory": "32Gi"}}[?class.spec.forProvider.?type.orValue("")].optMap(c, {"capacity": c})`
		in.Status.Failed = `vm.status.?failed.orValue("")`
		in.Status.ErrorClasses = []fn.ErrorClass{{Code: fn.ErrorQuotaExceeded, Match: "quota"}, {Code: fn.ErrorCapacityExhausted, Match: "capacity"}, {Code: fn.ErrorInvalidRequest, Match: "invalid"}}
	}}, change...)...)
	o.Now, o.Machine.UID = noon, "uid"
	o.Class.Spec.InstanceTypes = []machinev1alpha1.InstanceType{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	return b, o
}

// requested returns the VM resource of an instance type that a provider tried to create at noon, with the error that it
// reports.
func requested(name, said string, change ...func(plan.Object)) *plan.Object {
	annotations := map[string]string{machinev1alpha1.AnnotationInstanceType: name, "crossplane.io/external-create-pending": "2030-01-01T11:59:58Z", "crossplane.io/external-create-failed": "2030-01-01T11:59:59Z"}
	made := vm(annotations, nil, condition("Synced", "False", "ReconcileError", said))
	if said == "" {
		made = vm(annotations, nil)
	}
	made.SetUID(types.UID("vm-" + name))
	made.Object["spec"] = map[string]any{"forProvider": map[string]any{"type": name}}
	for _, c := range change {
		c(made)
	}
	return &made
}

// refused returns the status after refusals in round 1, each a second after the one before, the last one at noon.
func refused(round int32, names ...string) *machinev1alpha1.InstanceTypeStatus {
	s := &machinev1alpha1.InstanceTypeStatus{Round: round}
	for i, name := range names {
		s.Refused = append(s.Refused, machinev1alpha1.RefusedInstanceType{
			Name: name, ErrorCode: "CapacityExhausted", Message: "no capacity", Round: 1, VMUID: types.UID("vm-" + name),
			Time: metav1.NewTime(noon.Add(time.Duration(i+1-len(names)) * time.Second)),
		})
	}
	return s
}

// TestWhichInstanceTypeIsTried plans for a Machine without a VM resource.
func TestWhichInstanceTypeIsTried(t *testing.T) {
	type want struct{ name, typ, code, exhausted, message string }
	const all = "the cloud has no room for a (CapacityExhausted: no capacity), b (CapacityExhausted: no capacity), c (CapacityExhausted: no capacity)"
	for name, tc := range map[string]struct {
		change func(*Observed)
		want   want
		again  time.Duration
	}{
		"TheFirstOneAtFirst": {want: want{name: "a", typ: "a"}},
		"TheNextOneAfterARefusal": {
			change: func(o *Observed) { o.Machine.Status.InstanceType = refused(1, "a") },
			want:   want{name: "b", typ: "b", message: "instance type b is tried: the cloud has no room for a (CapacityExhausted: no capacity)"},
		},
		"NoneAfterAllWereRefused": {
			change: func(o *Observed) { o.Machine.Status.InstanceType = refused(1, "a", "b", "c") },
			want:   want{code: "CapacityExhausted", exhausted: "CapacityExhausted", message: all + ". All are tried again from 2030-01-01T12:01:00Z"},
			again:  time.Minute,
		},
		"TheFirstOneAgainAfterAPause": {
			change: func(o *Observed) {
				o.Machine.Status.InstanceType, o.Now = refused(1, "a", "b", "c"), noon.Add(time.Minute)
			},
			want: want{name: "a", typ: "a", code: "CapacityExhausted", exhausted: "CapacityExhausted", message: "instance type a is tried: " + all},
		},
		"ThePauseGrows": {
			change: func(o *Observed) {
				o.Machine.Status.InstanceType, o.Now = refused(3, "a", "b", "c"), noon.Add(time.Minute)
				for i := range o.Machine.Status.InstanceType.Refused {
					o.Machine.Status.InstanceType.Refused[i].Round = 3
				}
			},
			want:  want{code: "CapacityExhausted", exhausted: "CapacityExhausted", message: all + ". All are tried again from 2030-01-01T12:04:00Z"},
			again: 3 * time.Minute,
		},
		"QuotaAloneIsNoCapacity": {
			change: func(o *Observed) {
				o.Machine.Status.InstanceType = refused(1, "a", "b", "c")
				for i := range o.Machine.Status.InstanceType.Refused {
					o.Machine.Status.InstanceType.Refused[i].ErrorCode = "QuotaExceeded"
				}
			},
			want:  want{code: "QuotaExceeded", exhausted: "QuotaExceeded", message: strings.ReplaceAll(all, "CapacityExhausted", "QuotaExceeded") + ". All are tried again from 2030-01-01T12:01:00Z"},
			again: time.Minute,
		},
		"ARefusalAheadOfTheClockCountsAsNow": {
			change: func(o *Observed) {
				o.Machine.Status.InstanceType = refused(1, "a", "b", "c")
				o.Machine.Status.InstanceType.Refused[2].Time = metav1.NewTime(noon.Add(time.Hour))
			},
			want:  want{code: "CapacityExhausted", exhausted: "CapacityExhausted", message: all + ". All are tried again from 2030-01-01T12:01:00Z"},
			again: time.Minute,
		},
		"TheCheapestFirst": {
			change: func(o *Observed) {
				o.Class.Spec.AllocationStrategy = machinev1alpha1.AllocationLowestPrice
				o.Class.Spec.InstanceTypes = []machinev1alpha1.InstanceType{{Name: "a", Price: "10"}, {Name: "b", Price: "9.5"}, {Name: "c", Price: "9.50"}}
			},
			want: want{name: "b", typ: "b"},
		},
		"PricesDoNotCountWithoutTheStrategy": {
			change: func(o *Observed) {
				o.Class.Spec.InstanceTypes = []machinev1alpha1.InstanceType{{Name: "a", Price: "10"}, {Name: "b", Price: "9.5"}}
			},
			want: want{name: "a", typ: "a"},
		},
		"AnEntryMayHaveAnotherNameThanItsInstanceType": {
			change: func(o *Observed) {
				o.Class.Spec.InstanceTypes = []machinev1alpha1.InstanceType{{Name: "subnet-1", InstanceType: "a"}}
			},
			want: want{name: "subnet-1", typ: "a"},
		},
		"ARefusalOfAnEntryThatTheClassDoesNotHaveIsForgotten": {
			change: func(o *Observed) { o.Machine.Status.InstanceType = refused(1, "x") },
			want:   want{name: "a", typ: "a"},
		},
		"AFailedMachineTriesNone": {
			change: func(o *Observed) { o.Machine.Status.Phase = machinev1alpha1.MachineFailed },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, o := listed(t)
			if tc.change != nil {
				tc.change(&o)
			}
			d := Plan(b, nil, o)
			var got want
			if d.Word.InstanceType != nil {
				got.name, got.typ = d.Word.InstanceType.Name, d.Word.InstanceType.InstanceType
			}
			got.code, got.exhausted, got.message = d.Word.ErrorCode, d.Word.Exhausted, d.Word.Message
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if d.Word.LookAgain != tc.again || d.Word.Problem != nil {
				t.Errorf("again in %s, want %s; problem %v", d.Word.LookAgain, tc.again, d.Word.Problem)
			}
			if (d.VM != nil) != (tc.want.name != "") {
				t.Fatalf("VM: %v", d.VM)
			}
			if d.VM == nil {
				return
			}
			if is, _ := valueAt(d.VM.Object["spec"].(map[string]any)["forProvider"].(map[string]any), "spec.forProvider.type"); is != tc.want.typ || d.VM.GetAnnotations()[machinev1alpha1.AnnotationInstanceType] != tc.want.name {
				t.Errorf("the VM resource has the type %v and the annotations %v", is, d.VM.GetAnnotations())
			}
		})
	}
}

// TestWhenAVMResourceIsDiscarded plans for the VM resource of the instance type a.
func TestWhenAVMResourceIsDiscarded(t *testing.T) {
	id := func(v plan.Object) { v.Object["status"].(map[string]any)["id"] = "test:///1" }
	failed := func(v plan.Object) { v.Object["status"].(map[string]any)["failed"] = "there is no capacity" }
	named := func(name string) func(plan.Object) {
		return func(v plan.Object) { meta.SetExternalName(v, name) }
	}
	reports := func(state, text string, node workernode.Observation) func(*Observed) {
		return func(o *Observed) {
			o.Inventory, o.Node = &plan.InventoryReport{Inventory: "VirtualMachineInventory ns/aws", ExternalName: "i-1", State: state, Text: text}, node
		}
	}
	type want struct {
		state   plan.VMState
		discard bool
		code    string
		id      string
		refused []string
	}
	for name, tc := range map[string]struct {
		vm     *plan.Object
		change func(*Observed)
		want   want
	}{
		"WithoutCapacity":             {vm: requested("a", "no capacity"), want: want{state: plan.VMCreating, discard: true, refused: []string{"a"}}},
		"WithoutQuota":                {vm: requested("a", "the quota is used up"), want: want{state: plan.VMCreating, discard: true, refused: []string{"a"}}},
		"ThatFailedForLackOfCapacity": {vm: requested("a", "", id, failed), want: want{state: plan.VMCreating, discard: true, refused: []string{"a"}}},
		"ThatAnInventorySeesFailForLackOfCapacity": {
			vm: requested("a", "", id, named("i-1")), change: reports(plan.InventoryFailed, "no capacity", workernode.Observation{}),
			want: want{state: plan.VMCreating, discard: true, refused: []string{"a"}},
		},
		"NotThatWhichAnInventorySeesFailForAnotherReason": {
			vm: requested("a", "", id, named("i-1")), change: reports(plan.InventoryFailed, "invalid image", workernode.Observation{}),
			want: want{state: plan.VMCreating, id: "test:///1"},
		},
		"NotThatWhichAnInventorySeesStop": {
			vm: requested("a", "", id, named("i-1")), change: reports(plan.InventoryStopped, "no capacity", workernode.Observation{}),
			want: want{state: plan.VMCreating, id: "test:///1"},
		},
		"NotThatOfANodeWhichAnInventorySeesFail": {
			vm: requested("a", "", id, named("i-1")), change: reports(plan.InventoryFailed, "no capacity", workernode.Observation{NodeName: "web-0"}),
			want: want{state: plan.VMCreating, id: "test:///1"},
		},
		"NotWithAnErrorThatAUserMustMend":  {vm: requested("a", "invalid name"), want: want{state: plan.VMCreating, code: "InvalidRequest"}},
		"NotWithAnErrorThatPasses":         {vm: requested("a", "out of order"), want: want{state: plan.VMCreating, code: "Transient"}},
		"NotWithoutAnError":                {vm: requested("a", ""), want: want{state: plan.VMCreating}},
		"NotWhileItIsRunning":              {vm: requested("a", "", id, func(v plan.Object) { setConditions(v, condition("Ready", "True", "", "")); id(v) }), want: want{state: plan.VMRunning, id: "test:///1"}},
		"TheProviderIDIsNotKnownUntilThen": {vm: requested("a", "", id), want: want{state: plan.VMCreating}},
		"NotThatOfAMachineWithAProviderID": {
			vm: requested("a", "no capacity"), change: func(o *Observed) { o.Machine.Spec.ProviderID = ptr.To("test:///1") },
			want: want{state: plan.VMCreating, code: "CapacityExhausted"},
		},
		"NotThatOfAMachineThatHadAVM": {
			vm: requested("a", "no capacity"), change: func(o *Observed) { o.Machine.Status.ProviderID = "test:///1" },
			want: want{state: plan.VMCreating, code: "CapacityExhausted", id: "test:///1"},
		},
		"NotThatOfAFailedMachine": {
			vm: requested("a", "no capacity"), change: func(o *Observed) { o.Machine.Status.Phase = machinev1alpha1.MachineFailed },
			want: want{state: plan.VMCreating, code: "CapacityExhausted"},
		},
		"NotThatOfAClassWithoutAList": {
			vm: requested("", "no capacity"), want: want{state: plan.VMCreating, code: "CapacityExhausted"},
		},
		"NotWhileACreationIsUnderWay": {
			vm: requested("a", "no capacity", func(v plan.Object) {
				annotations := maps.Clone(v.GetAnnotations())
				annotations["crossplane.io/external-create-pending"] = "2030-01-01T12:00:00Z"
				v.SetAnnotations(annotations)
			}),
			want: want{state: plan.VMCreating},
		},
		"NotWhileAnAsynchronousCreationIsUnderWay": {
			vm: requested("a", "", func(v plan.Object) {
				setConditions(v, condition("LastAsyncOperation", "False", "AsyncCreateFailure", "no capacity"), condition("AsyncOperation", "False", "Ongoing", ""))
			}),
			want: want{state: plan.VMCreating},
		},
		"NotWithACreationOfUnknownResult": {
			vm: requested("a", "cannot determine creation result: no capacity", func(v plan.Object) {
				annotations := maps.Clone(v.GetAnnotations())
				annotations["crossplane.io/external-create-pending"] = "2030-01-01T12:00:00Z"
				v.SetAnnotations(annotations)
			}),
			want: want{state: plan.VMCreateUnknown},
		},
		"UntilItIsGone": {
			vm:     ptr.To(deleted(*requested("a", "no capacity"))),
			change: func(o *Observed) { o.Machine.Status.InstanceType = refused(1, "a") },
			want:   want{state: plan.VMCreating, discard: true, refused: []string{"a"}},
		},
		"NotThatWhichAUserDeletes": {
			vm:   ptr.To(deleted(*requested("a", "no capacity"))),
			want: want{state: plan.VMLost},
		},
		"ThatOfTheLastInstanceType": {
			vm:     requested("c", "no capacity"),
			change: func(o *Observed) { o.Machine.Status.InstanceType = refused(1, "a", "b") },
			want:   want{state: plan.VMCreating, discard: true, code: "CapacityExhausted", refused: []string{"a", "b", "c"}},
		},
		"WithoutItsClass": {
			vm: requested("c", "no capacity"),
			change: func(o *Observed) {
				o.Machine.Status.InstanceType, o.Class, o.ClassProblem = refused(1, "a", "b"), nil, &plan.Problem{Reason: "ClassNotFound"}
			},
			want: want{state: plan.VMCreating, discard: true, refused: []string{"a", "b", "c"}},
		},
		"ThatWasRefusedInTheRoundBefore": {
			vm:     requested("a", "no capacity", func(v plan.Object) { v.SetUID("vm-a2") }),
			change: func(o *Observed) { o.Machine.Status.InstanceType = refused(2, "a", "b", "c") },
			want:   want{state: plan.VMCreating, discard: true, code: "CapacityExhausted", refused: []string{"b", "c", "a"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, o := listed(t)
			o.VM = tc.vm
			if tc.change != nil {
				tc.change(&o)
			}
			d := Plan(b, nil, o)
			got := want{state: d.Word.State, discard: d.Word.Discard != "", code: d.Word.ErrorCode, id: d.Word.ProviderID}
			if got.discard {
				if d.Word.Discard != o.VM.GetUID() {
					t.Errorf("discards %q", d.Word.Discard)
				}
				for _, r := range d.Word.InstanceType.Refused {
					got.refused = append(got.refused, r.Name)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("-want +got:\n%s\n%s", diff, d.Word.Message)
			}
			if d.VM == nil {
				t.Fatal("the VM resource is not desired any more")
			}
		})
	}
}

// TestAnExistingVMIsDesiredAsItWasRequested plans for a VM that exists: what Drover stops to desire of it, the API server removes.
func TestAnExistingVMIsDesiredAsItWasRequested(t *testing.T) {
	b, o := listed(t, func(in *fn.Infrastructure) { in.VirtualMachine.PollInterval = `"1m"` })
	made := Plan(b, nil, o).VM
	if len(made.GetAnnotations()) < 5 {
		t.Fatalf("the VM is requested with the annotations %v", made.GetAnnotations())
	}
	there := plan.Object{Unstructured: made.DeepCopy()}
	meta.AddAnnotations(there, map[string]string{meta.AnnotationKeyExternalCreatePending: "2030-01-01T11:59:58Z", meta.AnnotationKeyExternalCreateSucceeded: "2030-01-01T11:59:59Z"})
	o.VM = &there
	if diff := cmp.Diff(made.GetAnnotations(), Plan(b, nil, o).VM.GetAnnotations()); diff != "" {
		t.Errorf("-requested +desired once it exists:\n%s", diff)
	}
}

// TestARefusalIsRecordedOnce plans again with the recorded refusal, as after a crash before the deletion of the resource.
func TestARefusalIsRecordedOnce(t *testing.T) {
	b, o := listed(t)
	o.VM = requested("a", "no capacity, request id: 0123456789")
	first := Plan(b, nil, o)
	want := []machinev1alpha1.RefusedInstanceType{{Name: "a", ErrorCode: "CapacityExhausted", Message: "no capacity, ...", Time: metav1.NewTime(noon), Round: 1, VMUID: "vm-a"}}
	if diff := cmp.Diff(want, first.Word.InstanceType.Refused); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if want := "the cloud has no room for a (CapacityExhausted: no capacity, ...); VM vm is deleted, and the next instance type is tried"; first.Word.Message != want {
		t.Errorf("message %q", first.Word.Message)
	}
	o.Machine.Status.InstanceType, o.Now = first.Word.InstanceType, noon.Add(time.Hour)
	if again := Plan(b, nil, o); !cmp.Equal(first.Word, again.Word) {
		t.Errorf("-first +again:\n%s", cmp.Diff(first.Word, again.Word))
	}
}

func TestInstanceTypesOfAClass(t *testing.T) {
	entry := func(name, forProvider string) machinev1alpha1.InstanceType {
		return machinev1alpha1.InstanceType{Name: name, ForProvider: &runtime.RawExtension{Raw: []byte(forProvider)}}
	}
	for name, tc := range map[string]struct {
		class  string // forProvider of the class
		list   []machinev1alpha1.InstanceType
		noPath bool
		want   []string // forProvider of the variants
		err    string
	}{
		"AnEntryIsMergedOverTheClass": {
			class: `{"zone": "a", "net": {"id": 1, "tags": ["x"]}}`, list: []machinev1alpha1.InstanceType{entry("b", `{"zone": "z", "net": {"tags": ["y"]}}`)},
			want: []string{`{"net":{"id":1,"tags":["y"]},"type":"b","zone":"z"}`},
		},
		"TheClassMustNotHaveAnInstanceType": {
			class: `{"type": "a"}`, list: []machinev1alpha1.InstanceType{{Name: "b"}},
			err: `MachineClass "a": forProvider.type: is a: must be absent, because instanceTypes lists the instance types: add it there`,
		},
		"NorMustTheFieldsOfAnEntry": {
			list: []machinev1alpha1.InstanceType{{Name: "a"}, entry("b", `{"type": "c"}`)},
			err:  `MachineClass "a": instanceTypes[1].forProvider.type: is c: must be absent: set instanceTypes[1].instanceType`,
		},
		"TwoEntriesMustNotRequestTheSameVM": {
			list: []machinev1alpha1.InstanceType{{Name: "a"}, {Name: "b", InstanceType: "a"}},
			err:  `MachineClass "a": instanceTypes[1]: "b" requests the same VM as "a": remove one, or set another instanceType or forProvider`,
		},
		"OneInstanceTypeInTwoSubnets": {
			list: []machinev1alpha1.InstanceType{{Name: "x", InstanceType: "a", ForProvider: &runtime.RawExtension{Raw: []byte(`{"subnet": 1}`)}}, {Name: "y", InstanceType: "a", ForProvider: &runtime.RawExtension{Raw: []byte(`{"subnet": 2}`)}}},
			want: []string{`{"subnet":1,"type":"a"}`, `{"subnet":2,"type":"a"}`},
		},
		"SizesOfACloudWithoutInstanceTypes": {
			noPath: true, list: []machinev1alpha1.InstanceType{entry("big", `{"cores": 8}`), entry("small", `{"cores": 4}`)},
			want: []string{`{"cores":8}`, `{"cores":4}`},
		},
		"SuchACloudNeedsTheSize": {
			noPath: true, list: []machinev1alpha1.InstanceType{{Name: "big"}},
			err: `MachineClass "a": instanceTypes[0].forProvider: must have the size, because VMs of provider "test" have no field for an instance type`,
		},
		"AndTakesNoInstanceType": {
			noPath: true, list: []machinev1alpha1.InstanceType{{Name: "big", InstanceType: "a"}},
			err: `MachineClass "a": instanceTypes[0].instanceType: is "a": must be absent, because VMs of provider "test" have no field for an instance type: set the size in instanceTypes[0].forProvider`,
		},
		"FieldsThatAreNoObject": {
			list: []machinev1alpha1.InstanceType{entry("a", `[]`)},
			err:  `MachineClass "a": instanceTypes[0].forProvider: must be an object: json: cannot unmarshal array into Go value of type map[string]interface {}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, o := listed(t, func(in *fn.Infrastructure) {
				if tc.noPath {
					in.VirtualMachine.InstanceTypePath = ""
				}
			})
			o.Class.Spec.ForProvider = nil
			if tc.class != "" {
				o.Class.Spec.ForProvider = &runtime.RawExtension{Raw: []byte(tc.class)}
			}
			o.Class.Spec.InstanceTypes = tc.list
			variants, problem := b.variantsOf(o.Class)
			if problem != nil && problem.Message != tc.err || problem == nil && tc.err != "" {
				t.Fatalf("problem %v, want %q", problem, tc.err)
			}
			var got []string
			for _, v := range variants {
				got = append(got, string(v.class.Spec.ForProvider.Raw))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if tc.err == "" {
				return
			}
			if checked := Check(b, o); checked == nil || checked.Message != tc.err || checked.Reason != machinev1alpha1.ReasonForProviderInvalid {
				t.Errorf("the check of the class returns %v", checked)
			}
			if d := Plan(b, nil, o); d.VM != nil || d.Word.Problem == nil || d.Word.Problem.Message != tc.err {
				t.Errorf("VM %v, problem %v", d.VM, d.Word.Problem)
			}
		})
	}
}

func TestThePathOfTheInstanceType(t *testing.T) {
	for path, want := range map[string]string{
		"spec.forProvider.a.b": "",
		"spec.other":           `virtualMachine.instanceTypePath: "spec.other": must be below spec.forProvider`,
		"status.a":             `virtualMachine.instanceTypePath: "status.a": must be below spec`,
		"spec.forProvider[*]":  `virtualMachine.instanceTypePath: "spec.forProvider[*]": must name one field, without wildcards`,
	} {
		_, err := compileBinding(input(func(in *fn.Infrastructure) { in.VirtualMachine.InstanceTypePath = path }))
		if got := fmt.Sprint(err); want != "" && got != want || want == "" && err != nil {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

func TestTheCapacityOfInstanceTypes(t *testing.T) {
	b, o := listed(t)
	o.Class.Spec.InstanceTypes = []machinev1alpha1.InstanceType{
		{Name: "a"},
		{Name: "b", NodeCapacity: &machinev1alpha1.NodeCapacity{Capacity: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("20Gi")}, Architecture: "arm64"}},
		{Name: "unknown"},
	}
	nodes, err := b.NodesOf(o.Class)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range nodes {
		text := n.Name
		if n.Capacity != nil {
			text += fmt.Sprintf(" %s %s %s", n.Capacity.Capacity.Cpu(), n.Capacity.Capacity.Memory(), n.Capacity.Architecture)
		}
		got = append(got, text)
	}
	if diff := cmp.Diff([]string{"a 8 15155Mi ", "b 4 20Gi arm64", "unknown"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if d := Plan(b, nil, o); d.Word.InstanceType.NodeCapacity.Capacity.Cpu().String() != "8" {
		t.Errorf("the status has %v", d.Word.InstanceType)
	}
}

// TestTheInstanceTypeOfAVMIsThatOfItsResource plans for a Machine whose status is lost, as after a restore.
func TestTheInstanceTypeOfAVMIsThatOfItsResource(t *testing.T) {
	b, o := listed(t)
	o.VM = requested("b", "", func(v plan.Object) {
		setConditions(v, condition("Ready", "True", "", ""))
		v.Object["status"].(map[string]any)["id"] = "test:///1"
		v.Object["spec"] = map[string]any{"forProvider": map[string]any{"type": "b.large"}}
	})
	want := &machinev1alpha1.InstanceTypeStatus{Name: "b", InstanceType: "b.large", Round: 1}
	if got := Plan(b, nil, o).Word.InstanceType; !cmp.Equal(got, want) {
		t.Errorf("-want +got:\n%s", cmp.Diff(want, got))
	}
	if got := Plan(nil, &plan.Problem{}, o).Word.InstanceType; got == nil || got.Name != "b" {
		t.Errorf("without a binding: %v", got)
	}
}
