package machinetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

const (
	root        = "../../../"
	composition = root + "apis/machine/compositions/machine-local.yaml"
	vmCRD       = root + "package/provider-local/crds/local.drover.dev_virtualmachines.yaml"
)

const class = `
apiVersion: machine.drover.dev/v1alpha1
kind: MachineClass
metadata: {namespace: ns, name: small}
spec:
  provider: local
  forProvider: {image: ubuntu-24.04, size: small, tags: {team: a}}
  providerConfigRef: {kind: ClusterProviderConfig, name: default}
  operatingSystem: {provisioning: CloudInit, kubeletDownloadURL: "https://dl.k8s.io/release"}
  kubelet: {clusterDomain: cluster.local}
`

func run(now time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	f := function.New(logging.NewNopLogger(), func() time.Time { return now })
	return f.RunStep(context.Background(), req)
}

func newPlane(t testing.TB) *Plane {
	t.Helper()
	p := New(t, run, composition)
	p.AddSchema(vmCRD)
	p.Others = append(p.Others, Object(t, class), Object(t, Installation))
	return p
}

func TestAMachineGoesFromNothingToRunning(t *testing.T) {
	p := newPlane(t)
	stages := []struct {
		name    string
		world   func()
		phase   string
		desired []string
		// node reports whether there are parameters for the Node.
		node bool
		// conditions as type=reason
		conditions []string
		events     []string
		ttl        time.Duration
	}{
		{
			name: "TheJoinTokenIsAwaited", world: func() { p.TargetError = "connect failed: timeout" },
			phase: "Pending", desired: nil,
			conditions: []string{"InfrastructureReady=Waiting", "NodeReady=NodeNotJoined", "Valid=Valid"},
			ttl:        plan.InFlight,
		},
		{
			name: "TheUserDataIsPublishedAndTheVMIsRequestedAtOnce", world: p.TokenIsThere,
			phase: "Provisioning", desired: []string{"vm"},
			conditions: []string{"InfrastructureReady=VMCreating", "NodeReady=NodeNotJoined", "Valid=Valid"},
			events:     []string{"VMRequested"},
			ttl:        plan.InFlight,
		},
		{
			name: "TheVMIsCreatedAndItsNodeIsAwaited", world: p.VMIsCreated,
			phase: "Provisioning", desired: []string{"vm"}, node: true,
			conditions: []string{"InfrastructureReady=VMCreating", "NodeReady=NodeNotJoined", "Valid=Valid"},
			ttl:        7 * time.Second, // Then the provider is asked to look again.
		},
		{
			name: "TheVMRuns", world: p.VMRuns,
			phase: "Joining", desired: []string{"vm"}, node: true,
			conditions: []string{"InfrastructureReady=VMRunning", "NodeReady=NodeNotJoined", "Valid=Valid"},
			events:     []string{"VMRunning"},
			ttl:        plan.InFlight,
		},
		{
			name: "TheNodeIsThereAndTheTokenIsRevoked", world: func() { p.NodeIs("False", p.Now) },
			phase: "Joining", desired: []string{"vm"}, node: true,
			conditions: []string{"InfrastructureReady=VMRunning", "NodeReady=NodeNotReady", "Valid=Valid"},
			ttl:        plan.InFlight,
		},
		{
			name: "TheNodeIsReady", world: func() { p.NodeIs("True", p.Now) },
			phase: "Running", desired: []string{"vm"}, node: true,
			conditions: []string{"InfrastructureReady=VMRunning", "NodeReady=NodeReady", "Valid=Valid"},
			events:     []string{"NodeReady"},
			ttl:        plan.AtRest,
		},
		{
			name: "TheNodeStopsToBeReady", world: func() { p.NodeIs("False", p.Now) },
			phase: "Unknown", desired: []string{"vm"}, node: true,
			conditions: []string{"InfrastructureReady=VMRunning", "NodeHealthy=NodeUnhealthy", "NodeReady=NodeNotReady", "Valid=Valid"},
			events:     []string{"NodeNotReady"},
			ttl:        30 * time.Second, // As above.
		},
		{
			name: "TheNodeIsGone", world: func() { p.NodeIs("", p.Now) },
			phase: "Unknown", desired: []string{"vm"}, node: true,
			conditions: []string{"InfrastructureReady=VMRunning", "NodeHealthy=NodeGone", "NodeReady=NodeGone", "Valid=Valid"},
			ttl:        30 * time.Second,
		},
		{
			name: "TheNodeIsReadyAgain", world: func() { p.NodeIs("True", p.Now) },
			phase: "Running", desired: []string{"vm"}, node: true,
			conditions: []string{"InfrastructureReady=VMRunning", "NodeHealthy=NodeHealthy", "NodeReady=NodeReady", "Valid=Valid"},
			events:     []string{"NodeReady"},
			ttl:        plan.AtRest,
		},
		{
			name: "TheVMVanishes", world: func() {
				Condition(p.Composed["vm"], "Ready", "False", "Missing", "vm-0123456789 is no longer there")
			},
			phase: "Failed", desired: []string{"vm"}, node: true,
			conditions: []string{"InfrastructureReady=VMLost", "NodeHealthy=NodeHealthy", "NodeReady=NodeReady", "Valid=Valid"},
			events:     []string{"VMLost"},
			ttl:        plan.AtRest,
		},
	}
	for _, s := range stages {
		s.world()
		p.Now = p.Now.Add(3 * time.Second)
		r := p.Reconcile()
		got := []any{phase(p), desired(r), r.Node != nil, reasons(r), eventReasons(r), r.TTL}
		want := []any{s.phase, s.desired, s.node, s.conditions, s.events, s.ttl}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", s.name, diff)
		}
		if want := s.phase != "Pending" && s.phase != "Provisioning" && s.name != "TheVMRuns"; p.Revoked != want {
			t.Errorf("%s: the token is revoked: %v", s.name, p.Revoked)
		}
		if isReady := r.Desired.GetComposite().GetReady() == fnv1.Ready_READY_TRUE; isReady != (s.phase == "Running") {
			t.Errorf("%s: the Machine's readiness is %v in phase %s", s.name, isReady, s.phase)
		}
		// A second run in the same world reports and changes nothing.
		before := p.Machine.DeepCopy().Object["status"].(map[string]any)
		delete(before, "conditions")
		p.Now = p.Now.Add(3 * time.Second)
		again, err := p.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, again.Desired.GetComposite().GetResource().AsMap()["status"]); diff != "" {
			t.Errorf("%s: the status changes though nothing did:\n%s", s.name, diff)
		}
		if len(again.Events) > 0 {
			t.Errorf("%s: reported again: %v", s.name, again.Events)
		}
	}
}

func TestWhatIsComposedIsAsTheContractSays(t *testing.T) {
	p := newPlane(t)
	p.ToRunning()
	name := p.Composed["vm"].GetName()

	if diff := cmp.Diff(map[string]any{
		"forProvider": map[string]any{
			"image": "ubuntu-24.04", "size": "small", "name": name,
			"userDataSecretRef": map[string]any{"name": name + "-user-data", "key": "userData"},
			"tags": map[string]any{
				"team": "a", "drover-cluster": "target", "drover-namespace": "ns",
				"drover-installation": "0a1b2c3d-0000-4000-8000-000000000001",
				"drover-machine":      "workers-x7k2p", "drover-machine-uid": string(p.Machine.GetUID()),
			},
		},
		"providerConfigRef":  map[string]any{"kind": "ClusterProviderConfig", "name": "default"},
		"managementPolicies": []any{"Observe", "Delete"},
	}, p.Composed["vm"].Object["spec"]); diff != "" {
		t.Errorf("VM: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{plan.FinalizerManaged, machinev1alpha1.FinalizerDrain}, p.Composed["vm"].GetFinalizers()); diff != "" {
		t.Errorf("finalizers of the VM: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(&workernode.Parameters{
		ProviderID: "local:///zone-a/vm-0123456789",
		Addresses:  []workernode.Address{{Type: "InternalIP", Address: "10.0.0.7"}},
		Labels:     map[string]string{"pool": "a", "node-role.kubernetes.io/worker": ""},
		Annotations: map[string]string{
			"example.org/note":                     "hello",
			"machine.drover.dev/machine":           "workers-x7k2p",
			"machine.drover.dev/cluster-namespace": "ns",
			"machine.drover.dev/cluster-name":      "target",
		},
		Taints: []workernode.Taint{{Key: "dedicated", Value: "batch", Effect: "NoSchedule"}},
		Drain:  workernode.Drain{Drain: machinev1alpha1.Drain{Timeout: metav1.Duration{Duration: 10 * time.Minute}}},
	}, p.Reconcile().Node); diff != "" {
		t.Errorf("Node: -want +got:\n%s", diff)
	}
	for resource, o := range p.Composed {
		if o.GetLabels()[machinev1alpha1.LabelMachine] != "workers-x7k2p" {
			t.Errorf("%s: has not the label of its Machine: %v", resource, o.GetLabels())
		}
	}
	if id, _, _ := unstructured.NestedString(p.Machine.Object, "spec", "providerID"); id != "local:///zone-a/vm-0123456789" {
		t.Errorf("the spec has the providerID %q", id)
	}
	status := p.Machine.Object["status"].(map[string]any)
	delete(status, "conditions")
	if diff := cmp.Diff(map[string]any{
		"observedGeneration": float64(1),
		"phase":              "Running",
		"providerID":         "local:///zone-a/vm-0123456789",
		"nodeRef":            map[string]any{"apiVersion": "v1", "kind": "Node", "name": name, "uid": "uid-of-node"},
		"readySince":         "2030-01-01T12:00:00Z",
		"addresses":          []any{map[string]any{"type": "InternalIP", "address": "10.0.0.7"}},
		"nodeInfo":           map[string]any{"kubeletVersion": "v1.35.4"},
		"join": map[string]any{"milestones": []any{
			map[string]any{"name": "VMRunning", "time": "2030-01-01T12:00:00Z"},
			map[string]any{"name": "NodeRegistered", "time": "2030-01-01T12:00:00Z"},
			map[string]any{"name": "NodeReady", "time": "2030-01-01T12:00:00Z"},
		}},
		"lastOperation": map[string]any{
			"type": "Join", "state": "Successful", "description": "Node " + name + " joined", "lastUpdateTime": "2030-01-01T12:00:00Z",
		},
	}, any(status)); diff != "" {
		t.Errorf("status: -want +got:\n%s", diff)
	}
}

func TestAJoinTokenOfTheMachineIsAskedFor(t *testing.T) {
	p := newPlane(t)
	r := p.Reconcile()
	template := r.Bootstrap.Join.UserData
	if diff := cmp.Diff(plan.Bootstrap{
		Join: &plan.JoinRequest{
			UserData: template, MaxBytes: 65536, TTL: metav1.Duration{Duration: time.Hour}, MaxLife: metav1.Duration{Duration: 20*time.Minute + time.Hour},
			Groups: []string{"system:bootstrappers:kubeadm:default-node-token"},
		},
		SecretName: p.Composed["vm"].GetName() + "-user-data", Key: "userData",
	}, r.Bootstrap); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.Contains(template, "$(token)") || !strings.Contains(userDataOf(p), token) {
		t.Errorf("the token is not filled in:\n%s\n%s", template, userDataOf(p))
	}
}

func TestAVMOfWhichUserDataIsAPartIsAskedForWhenThatIsPublished(t *testing.T) {
	p := newPlane(t)
	fields := p.Pipeline[1].Fields["virtualMachine"].GetStructValue().Fields["fields"].GetListValue()
	fields.Values[2].GetStructValue().Fields["value"] = structpb.NewStringValue(`{"text": userData.value}`)
	p.TargetError = "connect failed: timeout"
	p.Reconcile()
	if len(p.Composed) > 0 {
		t.Fatalf("there are already %v", slices.Sorted(maps.Keys(p.Composed)))
	}
	p.TokenIsThere()
	p.Reconcile()
	if p.Composed["vm"] == nil {
		t.Fatal("there is no VM")
	}
	text, _, _ := unstructured.NestedString(p.Composed["vm"].Object, "spec", "forProvider", "tags", "text")
	if !strings.HasPrefix(text, "#cloud-config") || !strings.Contains(text, token) || strings.Contains(text, "$(token)") {
		t.Errorf("got %s", text)
	}
}

func TestAMachineAtRestAsksForNothingThatThereIs(t *testing.T) {
	p := newPlane(t)
	p.ToRunning()
	r := p.Reconcile()
	if len(r.Requirements) > 0 || len(r.Requests) != len(p.Pipeline) {
		t.Errorf("requirements: %v, calls of the function: %d", r.Requirements, len(r.Requests))
	}
}

func TestAVMThatIsThereIsTouchedByNothing(t *testing.T) {
	cases := map[string]func(p *Plane){
		"ItsClassIsGone":               func(p *Plane) { p.Others = nil },
		"ItsClassIsOfAnotherProvider":  func(p *Plane) { Set(p.Others[0], "nimbus", "spec", "provider") },
		"ItsClassAsksForSomethingElse": func(p *Plane) { Set(p.Others[0], "large", "spec", "forProvider", "size") },
		"ItsKindIsGone":                func(p *Plane) { p.Schemas = nil },
		"ItsUserDataIsGone":            func(p *Plane) { p.Connection, p.join = map[string]map[string][]byte{}, plan.JoinState{} },
		"TheLabelsOfItsNodeChange":     func(p *Plane) { Set(p.Machine, "b", "spec", "metadata", "labels", "pool") },
		"ItWasUpdatedInPlaceToAnotherVersionAndClass": func(p *Plane) {
			Set(p.Machine, "v1.36.0", "spec", "version")
			Set(p.Machine, "large", "spec", "classRef", "name")
		},
		"ItIsNotObserved":          func(p *Plane) { p.Forgotten = []string{"vm"} },
		"TheControllerIsRestarted": func(p *Plane) { p.Node, p.Revoked = nil, false },
		"ItsClusterIsNotReachable": func(p *Plane) { p.TargetError = "connect failed: timeout" },
		"TheBindingIsBroken": func(p *Plane) {
			p.Pipeline[1].Fields["status"].GetStructValue().Fields["providerID"] = asStruct(p.t, map[string]any{"v": "vm.("}).Fields["v"]
		},
		"TheBindingReadsWhatIsNotThere": func(p *Plane) {
			p.Pipeline[1].Fields["status"].GetStructValue().Fields["providerID"] = asStruct(p.t, map[string]any{"v": "vm.status.nothing.here"}).Fields["v"]
		},
		"TheStatusIsGarbage": func(p *Plane) {
			Set(p.Machine, map[string]any{"phase": []any{"Running"}, "nodeRef": "x", "addresses": int64(3)}, "status")
		},
		"TheStatusIsEmpty": func(p *Plane) { Set(p.Machine, map[string]any{}, "status") },
		"TheStatusOfTheVMIsGarbage": func(p *Plane) {
			Set(p.Composed["vm"], map[string]any{"atProvider": "x", "conditions": "y"}, "status")
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t)
			p.ToRunning()
			vm := p.Composed["vm"].DeepCopy()
			change(p)
			p.Reconcile()
			if r := p.Reconcile(); r.Desired.GetResources()["vm"] == nil || r.Node == nil {
				t.Fatalf("VM or Node is not desired any more: %v, %v", desired(r), r.Node)
			}
			if diff := cmp.Diff(vm.Object["spec"], p.Composed["vm"].Object["spec"]); diff != "" {
				t.Errorf("VM: -before +after:\n%s", diff)
			}
			if diff := cmp.Diff(vm.GetFinalizers(), p.Composed["vm"].GetFinalizers()); diff != "" {
				t.Errorf("finalizers: -before +after:\n%s", diff)
			}
		})
	}
}

func TestAVMWhoseCreationBeganIsAskedForAsItWas(t *testing.T) {
	p := newPlane(t)
	p.Reconcile()
	p.Composed["vm"].SetAnnotations(map[string]string{"crossplane.io/external-create-pending": "2030-01-01T12:00:01Z"})
	before, userData := p.Composed["vm"].DeepCopy(), userDataOf(p)

	Set(p.Others[0], "large", "spec", "forProvider", "size")
	Set(p.Machine, "v9.9.9", "spec", "version")
	p.Reconcile()
	if diff := cmp.Diff(before.Object["spec"], p.Composed["vm"].Object["spec"]); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
	if diff := cmp.Diff(userData, userDataOf(p)); diff != "" {
		t.Errorf("the user data was rendered anew: -before +after:\n%s", diff)
	}
}

func TestUserDataFollowsItsMachineUntilTheVMIsCreated(t *testing.T) {
	p := newPlane(t)
	p.Reconcile()
	Set(p.Machine, "v9.9.9", "spec", "version")
	p.Reconcile()
	if text := userDataOf(p); !strings.Contains(text, "v9.9.9") {
		t.Errorf("the user data is old:\n%s", text)
	}
	if p.Composed["vm"] == nil {
		t.Error("the VM is gone")
	}
}

func TestAVMThatIsGoneIsNotMadeAgain(t *testing.T) {
	p := newPlane(t)
	p.ToRunning()
	delete(p.Composed, "vm")
	for range 3 {
		r := p.Reconcile()
		if p.Composed["vm"] != nil {
			t.Fatal("a VM was made under the identity of one that is gone")
		}
		if r.Node == nil {
			t.Fatal("there are no parameters for the Node any more")
		}
	}
	if reason := field(p, "failureReason"); reason != string(machinev1alpha1.FailureVMLost) {
		t.Errorf("failureReason: %q", reason)
	}
}

// TestAForgedStatusHasNoAuthority: a tenant with write access to the status of a Machine names the VM
// and the Node of another tenant.
func TestAForgedStatusHasNoAuthority(t *testing.T) {
	for name, change := range map[string]func(*Plane){
		"WithoutClass":      func(p *Plane) { p.Others = nil },
		"WithClass":         func(*Plane) {},
		"InAnotherPipeline": func(p *Plane) { p.Pipeline[1].Fields["provider"] = structpb.NewStringValue("nimbus") },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t)
			change(p)
			p.Machine.Object["status"] = map[string]any{
				"phase": "Running", "providerID": "aws:///eu-1/i-controlplane1", "drained": true,
				"nodeRef":   map[string]any{"apiVersion": "v1", "kind": "Node", "name": "cp-1", "uid": "uid-of-cp-1"},
				"addresses": []any{map[string]any{"type": "InternalIP", "address": "10.96.0.1"}},
			}
			for range 3 {
				r := p.Reconcile()
				if j := r.Bootstrap.Join; j == nil || !j.Revoked || j.UserData != "" || r.Bootstrap.SecretName != "" || len(p.Connection) > 0 {
					t.Errorf("a token or user data are given: %+v", r.Bootstrap)
				}
				if len(p.Composed) > 0 {
					t.Errorf("composed: %v", slices.Sorted(maps.Keys(p.Composed)))
				}
				if id, found, _ := unstructured.NestedString(p.Machine.Object, "spec", "providerID"); r.VM.Confirmed || found {
					t.Errorf("the providerID counts as the VM's: %+v, spec.providerID %q", r.VM, id)
				}
				if len(r.Node.Addresses) > 0 {
					t.Errorf("certificates would be approved for %v", r.Node.Addresses)
				}
			}
		})
	}
}

func TestANodeThatIsGoneIsGoneSinceOnceThroughARestart(t *testing.T) {
	p := newPlane(t)
	p.ToRunning()
	p.Now = p.Now.Add(time.Minute)
	since := p.Now.Format(time.RFC3339)
	for i, world := range []func(){
		func() { p.NodeIs("", p.Now) }, func() { p.Node = nil }, func() { p.TargetError = "timeout" }, func() { p.TargetError = "" },
	} {
		world()
		p.Reconcile()
		if got := field(p, "nodeGoneSince"); got != since || phase(p) != "Unknown" {
			t.Fatalf("stage %d: phase %s, gone since %q, want %s", i, phase(p), got, since)
		}
		p.Now = p.Now.Add(7 * time.Second)
	}
	p.Now = p.Now.Add(2 * time.Second)
	if p.Reconcile(); phase(p) != "Failed" || field(p, "failureReason") != "NodeDeleted" {
		t.Errorf("phase %s, %s", phase(p), field(p, "failureReason"))
	}
}

func TestARestartDuringAnOutageChangesNothing(t *testing.T) {
	p := newPlane(t)
	p.ToRunning()
	p.TargetError, p.Node = "connect failed: timeout", nil
	for range 3 {
		p.Now = p.Now.Add(time.Hour)
		if r := p.Reconcile(); phase(p) != "Running" || len(r.Events) > 0 {
			t.Fatalf("phase %s, events %v", phase(p), eventReasons(r))
		}
	}
}

func TestAVMThatIsBeingDeletedIsGivenNoNewFinalizer(t *testing.T) {
	p := newPlane(t)
	p.ToRunning()
	Set(p.Composed["vm"], "2030-01-01T13:00:00Z", "metadata", "deletionTimestamp")
	finalizers := func() []string {
		vm := unstructured.Unstructured{Object: p.Reconcile().Desired.GetResources()["vm"].GetResource().AsMap()}
		return vm.GetFinalizers()
	}
	if f := finalizers(); phase(p) != "Failed" || len(f) != 2 {
		t.Errorf("phase %s, finalizers %v", phase(p), f)
	}
	p.Composed["vm"].SetFinalizers(nil)
	if f := finalizers(); len(f) > 0 {
		t.Errorf("the API server would refuse finalizers %v", f)
	}
}

func TestProblemsAreReportedAndNothingIsCreated(t *testing.T) {
	setClass := func(value any, path ...string) func(*Plane) {
		return func(p *Plane) { Set(p.Others[0], value, append([]string{"spec"}, path...)...) }
	}
	setField := func(i int, value string) func(*Plane) {
		return func(p *Plane) {
			fields := p.Pipeline[1].Fields["virtualMachine"].GetStructValue().Fields["fields"].GetListValue()
			fields.Values[i].GetStructValue().Fields["value"] = asStruct(p.t, map[string]any{"v": value}).Fields["v"]
		}
	}
	cases := map[string]struct {
		world  func(*Plane)
		reason string
		want   []string
	}{
		"NoClassOfTheName": {
			func(p *Plane) { p.Others = nil }, "ClassNotFound",
			[]string{"spec.classRef.name", `"small"`, `"ns"`},
		},
		"AClassOfAnotherProvider": {
			setClass("nimbus", "provider"), "ProviderMismatch",
			[]string{`MachineClass "small"`, "spec.provider", `"nimbus"`, `"local"`, "provider: nimbus"},
		},
		"AFieldThatTheVMDoesNotHave": {
			setClass("sweet", "forProvider", "flavour"), "ForProviderInvalid",
			[]string{`MachineClass "small"`, "forProvider.flavour", "unknown field"},
		},
		"AFieldOfAnotherType": {
			setClass(int64(3), "forProvider", "size"), "ForProviderInvalid",
			[]string{`MachineClass "small"`, "forProvider.size", "string"},
		},
		"AFieldThatIsMissing": {
			func(p *Plane) {
				unstructured.RemoveNestedField(p.Others[0].Object, "spec", "forProvider", "image")
			}, "ForProviderInvalid",
			[]string{`MachineClass "small"`, "spec.forProvider.image is a required parameter"},
		},
		"NoRoomForWhatDroverSets": {
			func(p *Plane) {
				setClass("x", "forProvider", "size")(p)
				fields := p.Pipeline[1].Fields["virtualMachine"].GetStructValue().Fields["fields"].GetListValue()
				fields.Values[0].GetStructValue().Fields["path"] = asStruct(p.t, map[string]any{"v": "spec.forProvider.size.name"}).Fields["v"]
			}, "ForProviderInvalid",
			[]string{`MachineClass "small"`, "forProvider.size.name"},
		},
		"AnExpressionThatDoesNotCompile": {
			setField(1, "nme + 1"), "BindingInvalid",
			[]string{"virtualMachine.fields[1].value", "spec.forProvider.userDataSecretRef", "nme + 1", "column 1", "undeclared reference"},
		},
		"AnExpressionThatFails": {
			setField(2, `{"a": machine.spec.nothing}`), "BindingInvalid",
			[]string{"virtualMachine.fields[2].value", "spec.forProvider.tags", "column", "no such key: nothing"},
		},
		"AnExpressionOfAnotherTypeThanTheField": {
			setField(0, "[name]"), "BindingInvalid",
			[]string{"virtualMachine.fields[0]", "spec.forProvider.name", "string"},
		},
		"AProviderThatIsNotInstalled": {
			func(p *Plane) { p.Schemas = nil }, "ProviderNotInstalled",
			[]string{"VirtualMachine", "local.drover.dev/v1alpha1", "crossplane xpkg install provider $REGISTRY/provider-local:$VERSION", "ManagedResourceActivationPolicy"},
		},
		"AKubeletConfigurationThatIsNone": {
			setClass(map[string]any{"maxPodz": int64(3)}, "kubelet", "configuration"), "UserDataInvalid",
			[]string{`class "small"`, "class.spec.kubelet.configuration", "maxPodz"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t)
			tc.world(p)
			reported := eventReasons(p.Reconcile())
			for range 4 {
				p.Now = p.Now.Add(5 * time.Second)
				reported = append(reported, eventReasons(p.Reconcile())...)
				if p.Composed["vm"] != nil {
					t.Fatal("a VM was created")
				}
			}
			c := condition(p, "Valid")
			if c["status"] != "False" || c["reason"] != tc.reason {
				t.Errorf("condition Valid: %v", c)
			}
			for _, want := range tc.want {
				if message, _ := c["message"].(string); !strings.Contains(message, want) {
					t.Errorf("want %q in: %s", want, message)
				}
			}
			if diff := cmp.Diff([]string{tc.reason}, reported); diff != "" {
				t.Errorf("events: -want +got:\n%s", diff)
			}
			if phase(p) != "Pending" {
				t.Errorf("phase: %s", phase(p))
			}
		})
	}
}

func TestWrongCredentialsOfTheClusterShowAtTheMachine(t *testing.T) {
	p := newPlane(t)
	p.TargetError = "connect failed: Secret ns/target: not found"
	p.Reconcile()
	c := condition(p, "InfrastructureReady")
	want := "waiting for the join token: connect failed: Secret ns/target: not found"
	if c["message"] != want || c["reason"] != "Waiting" {
		t.Errorf("want %q, got %v", want, c)
	}
}

func TestAnErrorOfTheProviderIsClassifiedAndReportedOnce(t *testing.T) {
	p := newPlane(t)
	p.Reconcile()
	p.Composed["vm"].SetAnnotations(map[string]string{
		"crossplane.io/external-create-pending": "2030-01-01T12:00:01Z", "crossplane.io/external-create-failed": "2030-01-01T12:00:02Z",
	})
	Condition(p.Composed["vm"], "Synced", "False", "ReconcileError", "create failed: QuotaExceeded: 3 of 3 VMs are in use")
	var reported []string
	for range 3 {
		reported = append(reported, eventReasons(p.Reconcile())...)
	}
	if diff := cmp.Diff([]string{"QuotaExceeded"}, reported); diff != "" {
		t.Errorf("events: -want +got:\n%s", diff)
	}
	op, _, _ := unstructured.NestedMap(p.Machine.Object, "status", "lastOperation")
	if op["errorCode"] != "QuotaExceeded" || op["state"] != "Processing" || phase(p) != "Provisioning" {
		t.Errorf("phase %s, lastOperation %v", phase(p), op)
	}

	// The Machine waits without a limit: another Machine would be refused as well.
	p.Now = p.Now.Add(time.Hour)
	if r := p.Reconcile(); phase(p) != "Provisioning" || len(eventReasons(r)) != 0 || p.Composed["vm"] == nil || p.Revoked {
		t.Errorf("events %v, status: %v", eventReasons(r), p.Machine.Object["status"])
	}
	// After that, the whole time limit applies again.
	Condition(p.Composed["vm"], "Synced", "True", "ReconcileSuccess", "")
	p.Reconcile()
	if until, _, _ := unstructured.NestedString(p.Machine.Object, "status", "refusedUntil"); until != p.Now.UTC().Format(time.RFC3339) {
		t.Errorf("status: %v", p.Machine.Object["status"])
	}
	p.Now = p.Now.Add(20 * time.Minute)
	p.Reconcile()
	if phase(p) != "Failed" || field(p, "failureReason") != "JoinTimeout" {
		t.Errorf("status: %v", p.Machine.Object["status"])
	}
	// The pipeline no longer waits for the Node.
	if p.Reconcile(); p.Composed["vm"] == nil || !p.Revoked {
		t.Errorf("the token is revoked: %v, composed: %v", p.Revoked, slices.Sorted(maps.Keys(p.Composed)))
	}
}

func TestACreationWhoseResultNobodyKnowsIsFinal(t *testing.T) {
	p := newPlane(t)
	p.Reconcile()
	p.Composed["vm"].SetAnnotations(map[string]string{"crossplane.io/external-create-pending": "2030-01-01T12:00:01Z"})
	if p.Reconcile(); phase(p) != "Provisioning" {
		t.Fatalf("a creation that runs is phase %s", phase(p))
	}
	Condition(p.Composed["vm"], "Synced", "False", "ReconcileError",
		"cannot determine creation result - remove the crossplane.io/external-create-pending annotation if it is safe to proceed")
	p.Reconcile()
	if phase(p) != "Failed" || field(p, "failureReason") != "CreateResultUnknown" {
		t.Errorf("status: %v", p.Machine.Object["status"])
	}
	// Later progress does not change that.
	p.VMIsCreated()
	p.VMRuns()
	if r := p.Reconcile(); phase(p) != "Failed" || p.Composed["vm"] == nil || r.Node == nil {
		t.Errorf("phase %s, Node %v, composed: %v", phase(p), r.Node, slices.Sorted(maps.Keys(p.Composed)))
	}
}

func TestAMachineIsReconciledAgainWhenTheTimeToJoinIsOver(t *testing.T) {
	p := newPlane(t)
	p.Reconcile()
	p.Now = p.Now.Add(20*time.Minute - 3*time.Second)
	if r := p.Reconcile(); r.TTL != 3*time.Second || phase(p) != "Provisioning" {
		t.Errorf("TTL %s, phase %s", r.TTL, phase(p))
	}
	p.Now = p.Now.Add(3 * time.Second)
	if r := p.Reconcile(); phase(p) != "Failed" || field(p, "failureReason") != "JoinTimeout" || r.TTL != plan.AtRest {
		t.Errorf("TTL %s, status %v", r.TTL, p.Machine.Object["status"])
	}
}

func TestARunnerWithoutSchemasLeavesTheSchemaToTheAPIServer(t *testing.T) {
	p := newPlane(t)
	p.Capabilities, p.Schemas = nil, nil
	Set(p.Others[0], "sweet", "spec", "forProvider", "flavour")
	p.ToRunning()
}

func TestAStepOfTheUsersBetweenOursIsHeard(t *testing.T) {
	p := newPlane(t)
	p.Run = func(now time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		rsp, err := run(now, req)
		if vm := rsp.GetDesired().GetResources()["vm"]; vm != nil && req.GetInput().GetFields()["kind"].GetStringValue() == "Infrastructure" {
			vm.Resource.Fields["metadata"].GetStructValue().Fields["annotations"] = asStruct(p.t, map[string]any{"v": map[string]any{"theirs": "yes"}}).Fields["v"]
		}
		return rsp, err
	}
	p.Reconcile()
	if got := p.Composed["vm"].GetAnnotations()["theirs"]; got != "yes" {
		t.Errorf("annotations: %v", p.Composed["vm"].GetAnnotations())
	}
}

func BenchmarkMachine(b *testing.B) {
	for _, bm := range []struct {
		name  string
		world func(p *Plane)
	}{
		{"BeforeItsVM", func(p *Plane) { p.Reconcile() }},
		{"Running", func(p *Plane) { p.ToRunning() }},
	} {
		b.Run(bm.name, func(b *testing.B) {
			p := newPlane(b)
			bm.world(p)
			r, err := p.Pipe()
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				for _, req := range r.Requests {
					if _, err := run(p.Now, proto.CloneOf(req)); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(len(r.Requests)), "calls/op")
			b.ReportMetric(float64(proto.Size(r.Desired)), "response-bytes")
		})
	}
}

func phase(p *Plane) string { return field(p, "phase") }

func field(p *Plane, name string) string {
	s, _, _ := unstructured.NestedString(p.Machine.Object, "status", name)
	return s
}

func condition(p *Plane, typ string) map[string]any {
	list, _, _ := unstructured.NestedSlice(p.Machine.Object, "status", "conditions")
	for _, c := range list {
		if m := c.(map[string]any); m["type"] == typ {
			return m
		}
	}
	return nil
}

func desired(r Result) []string {
	return slices.Sorted(maps.Keys(r.Desired.GetResources()))
}

func reasons(r Result) []string {
	var out []string
	for typ, c := range r.Conditions {
		out = append(out, fmt.Sprintf("%s=%s", typ, c.GetReason()))
	}
	slices.Sort(out)
	return out
}

func eventReasons(r Result) []string {
	var out []string
	for _, e := range r.Events {
		out = append(out, e.GetReason())
	}
	return out
}

// userDataOf returns the user data of the Machine from its Secret.
func userDataOf(p *Plane) string {
	return string(p.Connection[machinev1alpha1.ResourceUserData]["userData"])
}
