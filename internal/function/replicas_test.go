package function

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/resource"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/group"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const setJSON = `{
	"apiVersion": "machine.drover.dev/v1alpha1", "kind": "MachineSet",
	"metadata": {
		"name": "workers-x7k2p", "namespace": "default", "uid": "5f1e0c0a-0000-4000-8000-000000000001", "generation": 3, "resourceVersion": "77",
		"labels": {"machine.drover.dev/deployment": "workers", "crossplane.io/composite": "workers"}
	},
	"spec": {
		"replicas": %d,
		"selector": {"matchLabels": {"pool": "workers", "machine.drover.dev/template-hash": "776sbch24k"}},
		"template": {
			"metadata": {"labels": {"pool": "workers", "machine.drover.dev/template-hash": "776sbch24k", "machine.drover.dev/deployment": "workers"}},
			"spec": {
				"classRef": {"name": "small"}, "version": "v1.35.4",
				"clusterRef": {"kind": "ClusterProviderConfig", "name": "default"},
				"metadata": {"labels": {"example.com/pool": "workers", "example.com/team": "a"}},
				"taints": [{"key": "example.com/dedicated", "value": "workers", "effect": "NoSchedule"}],
				"drain": {"timeout": "2h"}, "creationTimeout": "20m"
			}
		}
	},
	"status": {"created": %d, "replicas": 0, "readyReplicas": 0, "availableReplicas": 0, "terminatingReplicas": 0, "observedGeneration": 3,
		"conditions": [{"type": "Ready", "status": "False", "reason": "Creating", "observedGeneration": 3, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
}`

const compositionJSON = `{
	"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
	"metadata": {"name": "machine-local", "labels": {"provider": "local"}},
	"spec": {"compositeTypeRef": {"apiVersion": "machine.drover.dev/v1alpha1", "kind": "Machine"}}
}`

const classJSON = `{
	"apiVersion": "machine.drover.dev/v1alpha1", "kind": "MachineClass",
	"metadata": {"name": "small", "namespace": "default"},
	"spec": {"provider": "local"}
}`

const machineJSON = `{
	"apiVersion": "machine.drover.dev/v1alpha1", "kind": "Machine",
	"metadata": {
		"name": %[1]q, "namespace": "default", "uid": "uid-of-%[1]s", "creationTimestamp": "2026-01-01T11:00:00Z",
		"labels": {"machine.drover.dev/set": "workers-x7k2p"},
		"annotations": {"machine.drover.dev/template": "another", "somebody.example.com/note": "keep"},
		"ownerReferences": [{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "MachineSet", "name": "workers-x7k2p", "uid": "5f1e0c0a-0000-4000-8000-000000000001", "controller": true}]
	},
	"spec": {
		"crossplane": {"compositionUpdatePolicy": "Manual", "compositionRevisionRef": {"name": "machine-pinned-ccc"}},
		"classRef": {"name": "small"}, "version": "v1.35.3",
		"clusterRef": {"kind": "ClusterProviderConfig", "name": "default"}, "drain": {"timeout": "2h"}, "creationTimeout": "20m"
	},
	"status": {
		"phase": "Running", "readySince": "2026-01-01T11:30:00Z", "providerID": "local:///zone-a/vm-0123456789",
		"nodeRef": {"apiVersion": "v1", "kind": "Node", "name": %[1]q}
	}
}`

func setRequest(replicas int, created int, machines ...string) *fnv1.RunFunctionRequest {
	req := &fnv1.RunFunctionRequest{
		Input:    resource.MustStructJSON(`{"apiVersion": "fn.drover.dev/v1alpha1", "kind": "Replicas"}`),
		Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: resource.MustStructJSON(fmt.Sprintf(setJSON, replicas, created))}},
		RequiredResources: map[string]*fnv1.Resources{
			"class":        {Items: []*fnv1.Resource{{Resource: resource.MustStructJSON(classJSON)}}},
			"compositions": {Items: []*fnv1.Resource{{Resource: resource.MustStructJSON(compositionJSON)}}},
			"machines":     {},
		},
	}
	for _, m := range machines {
		s := resource.MustStructJSON(fmt.Sprintf(machineJSON, m))
		req.RequiredResources["machines"].Items = append(req.RequiredResources["machines"].Items, &fnv1.Resource{Resource: s})
	}
	return req
}

func TestRunAsksForWhatItNeedsFirst(t *testing.T) {
	req := setRequest(3, 0)
	req.RequiredResources = nil
	req.Desired = &fnv1.State{Resources: map[string]*fnv1.Resource{"somebody-else's": {}}}

	rsp, err := runReplicas(now, req)
	if err != nil {
		t.Fatal(err)
	}
	want := &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{
		"class": {
			ApiVersion: "machine.drover.dev/v1alpha1", Kind: "MachineClass", Namespace: proto.String("default"),
			Match: &fnv1.ResourceSelector_MatchName{MatchName: "small"},
		},
		"machines": {
			ApiVersion: "machine.drover.dev/v1alpha1", Kind: "Machine", Namespace: proto.String("default"),
			Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: map[string]string{"pool": "workers", "machine.drover.dev/template-hash": "776sbch24k"}}},
		},
	}}
	if diff := cmp.Diff(want, rsp.GetRequirements(), protocmp.Transform()); diff != "" {
		t.Errorf("requirements: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(req.GetDesired(), rsp.GetDesired(), protocmp.Transform()); diff != "" {
		t.Errorf("desired: -want +got:\n%s", diff)
	}
}

// groupOf returns the MachineGroup that a response composes. It fails if the response composes
// anything else.
func groupOf(t *testing.T, rsp *fnv1.RunFunctionResponse) *machinev1alpha1.MachineGroup {
	t.Helper()
	all := rsp.GetDesired().GetResources()
	r := all[machinev1alpha1.ResourceMachines]
	if len(all) != 1 || r == nil {
		t.Fatalf("composes %d resources, want one MachineGroup", len(all))
	}
	g := &machinev1alpha1.MachineGroup{}
	if err := resource.AsObject(r.GetResource(), g); err != nil {
		t.Fatal(err)
	}
	return g
}

// membersOf returns the members of a group. Those that the group creates have a plus.
func membersOf(g *machinev1alpha1.MachineGroup) []string {
	var out []string
	for _, m := range g.Spec.Machines {
		if m.Create {
			m.Name = "+" + m.Name
		}
		out = append(out, m.Name)
	}
	return out
}

// templateOf returns the template of a member of a group.
func templateOf(t *testing.T, g *machinev1alpha1.MachineGroup, name string) map[string]any {
	t.Helper()
	for _, m := range g.Spec.Machines {
		for _, tm := range g.Spec.Templates {
			if m.Name == name && tm.Name == m.Template {
				u, err := resource.AsStruct(g)
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range u.AsMap()["spec"].(map[string]any)["templates"].([]any) {
					if v := v.(map[string]any); v["name"] == tm.Name {
						delete(v, "name")
						return v
					}
				}
			}
		}
	}
	t.Fatalf("no template for %s in %+v", name, g.Spec)
	return nil
}

func TestRunComposesAMachineGroup(t *testing.T) {
	req := setRequest(2, 0, "workers-x7k2p-old")
	rsp, err := runReplicas(now, req)
	if err != nil {
		t.Fatal(err)
	}
	g := groupOf(t, rsp)
	if g.Name != "workers-x7k2p" || g.Namespace != "default" {
		t.Errorf("is called %s/%s", g.Namespace, g.Name)
	}
	fresh := names.Machine("workers-x7k2p", "5f1e0c0a-0000-4000-8000-000000000001", 0)
	if diff := cmp.Diff([]string{"+" + fresh, "workers-x7k2p-old"}, membersOf(g)); diff != "" {
		t.Errorf("Machines: -want +got:\n%s", diff)
	}
	want := resource.MustStructJSON(`{
		"metadata": {
			"labels": {
				"pool": "workers", "machine.drover.dev/template-hash": "776sbch24k",
				"machine.drover.dev/deployment": "workers", "machine.drover.dev/set": "workers-x7k2p"
			},
			"finalizers": ["machine.drover.dev/terminator"]
		},
		"spec": {
			"classRef": {"name": "small"}, "version": "v1.35.3",
			"clusterRef": {"kind": "ClusterProviderConfig", "name": "default"},
			"metadata": {"labels": {"example.com/pool": "workers", "example.com/team": "a"}},
			"taints": [{"key": "example.com/dedicated", "value": "workers", "effect": "NoSchedule"}],
			"drain": {"timeout": "2h0m0s"}, "creationTimeout": "20m0s"
		}
	}`).AsMap()
	if diff := cmp.Diff(want, templateOf(t, g, "workers-x7k2p-old")); diff != "" {
		t.Errorf("existing Machine: -want +got:\n%s", diff)
	}
	if got, is := templateOf(t, g, fresh)["spec"].(map[string]any)["crossplane"]; is {
		t.Errorf("new Machine: the Machine's controller selects its Composition, not the set: %v", got)
	}

	status := resource.MustStructJSON(`{
		"apiVersion": "machine.drover.dev/v1alpha1", "kind": "MachineSet", "metadata": {"resourceVersion": "77"},
		"status": {
			"observedGeneration": 3, "decidedGeneration": 3, "selector": "machine.drover.dev/template-hash=776sbch24k,pool=workers",
			"replicas": 2, "readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 1, "terminatingReplicas": 0,
			"startingReplicas": 1, "created": 1, "creating": ["workers-x7k2p-cmb22"]
		}
	}`)
	if diff := cmp.Diff(&fnv1.Resource{Resource: status, Ready: fnv1.Ready_READY_FALSE}, rsp.GetDesired().GetComposite(), protocmp.Transform()); diff != "" {
		t.Errorf("composite: -want +got:\n%s", diff)
	}
	if got := rsp.GetMeta().GetTtl().AsDuration(); got != plan.InFlight {
		t.Errorf("got TTL %s, want %s", got, plan.InFlight)
	}
}

func TestRunHeedsAFreeze(t *testing.T) {
	req := setRequest(2, 0)
	req.Context = resource.MustStructJSON(`{"drover.dev/safety": {"frozen": true}}`)
	rsp, err := runReplicas(now, req)
	if err != nil {
		t.Fatal(err)
	}
	if g := groupOf(t, rsp); len(g.Spec.Machines) != 0 {
		t.Errorf("has %v made", membersOf(g))
	}
}

// TestRunMakesNoMachineForAClusterThatIsNotThere has a set whose step safety found no configuration of its cluster.
func TestRunMakesNoMachineForAClusterThatIsNotThere(t *testing.T) {
	req := setRequest(2, 0)
	req.Context = resource.MustStructJSON(`{"drover.dev/safety": {"frozen": false, "problem": {"reason": "ClusterNotFound", "message": "there is no ClusterProviderConfig"}}}`)
	rsp, err := runReplicas(now, req)
	if err != nil {
		t.Fatal(err)
	}
	if g := groupOf(t, rsp); len(g.Spec.Machines) != 0 {
		t.Errorf("has %v made", membersOf(g))
	}
	if c := conditionOf(rsp, "Valid"); c.GetReason() != "ClusterNotFound" {
		t.Errorf("condition %v", c)
	}
}

// standalone returns a request of a set without a MachineDeployment. Besides its own Machine there is
// one without a controller, and one of another set.
func standalone(adopting ...any) *fnv1.RunFunctionRequest {
	req := setRequest(2, 5, "own")
	set := req.GetObserved().GetComposite().GetResource()
	delete(set.GetFields()["metadata"].GetStructValue().GetFields(), "labels")
	list, _ := structpb.NewList(adopting)
	set.GetFields()["status"].GetStructValue().GetFields()["adopting"] = structpb.NewListValue(list)

	orphan, foreign := resource.MustStructJSON(fmt.Sprintf(machineJSON, "orphan")), resource.MustStructJSON(fmt.Sprintf(machineJSON, "foreign"))
	delete(orphan.GetFields()["metadata"].GetStructValue().GetFields(), "ownerReferences")
	owner := foreign.GetFields()["metadata"].GetStructValue().GetFields()["ownerReferences"].GetListValue().GetValues()[0].GetStructValue()
	owner.Fields["name"], owner.Fields["uid"] = structpb.NewStringValue("other"), structpb.NewStringValue("uid-of-other")
	machines := req.GetRequiredResources()["machines"]
	machines.Items = append(machines.Items, &fnv1.Resource{Resource: orphan}, &fnv1.Resource{Resource: foreign})
	return req
}

func TestAStandaloneSetAdoptsWhatNobodyControls(t *testing.T) {
	rsp, err := runReplicas(now, standalone())
	if err != nil {
		t.Fatal(err)
	}
	if got := membersOf(groupOf(t, rsp)); !slices.Equal(got, []string{"own"}) {
		t.Errorf("has %v before that is written down", got)
	}
	status := rsp.GetDesired().GetComposite().GetResource().AsMap()["status"].(map[string]any)
	if diff := cmp.Diff([]any{"orphan"}, status["adopting"]); diff != "" {
		t.Errorf("adopting: -want +got:\n%s", diff)
	}
	if got := rsp.GetMeta().GetTtl().AsDuration(); got != plan.Soonest {
		t.Errorf("calls again after %s", got)
	}

	rsp, err = runReplicas(now, standalone("orphan"))
	if err != nil {
		t.Fatal(err)
	}
	g := groupOf(t, rsp)
	if got := membersOf(g); !slices.Equal(got, []string{"orphan", "own"}) {
		t.Fatalf("has %v", got)
	}
	if diff := cmp.Diff(templateOf(t, g, "own"), templateOf(t, g, "orphan")); diff != "" {
		t.Errorf("its template: -others +its:\n%s", diff)
	}
	if reported := conditionOf(rsp, "SelectorExclusive").GetMessage(); reported != "Machines that spec.selector matches are controlled by MachineSet other, and left alone" {
		t.Errorf("condition %q", reported)
	}
}

func TestRunAnswersTheSameViewTheSameWay(t *testing.T) {
	req := setRequest(5, 2, "a", "b", "c")
	first, err := runReplicas(now, proto.Clone(req).(*fnv1.RunFunctionRequest))
	if err != nil {
		t.Fatal(err)
	}
	second, err := runReplicas(now, req)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second, protocmp.Transform()); diff != "" {
		t.Errorf("-first +second:\n%s", diff)
	}
}

func TestTheGroupSaysWhatBecameOfItsMachines(t *testing.T) {
	req := setRequest(2, 5, "a")
	creating, _ := structpb.NewList([]any{"b"})
	req.GetObserved().GetComposite().GetResource().GetFields()["status"].GetStructValue().GetFields()["creating"] = structpb.NewListValue(creating)
	machines, _ := step.Required(req, requirementMachines)
	a, err := step.As[machinev1alpha1.Machine](machines[0])
	if err != nil {
		t.Fatal(err)
	}
	digest, err := group.Digest(a.OwnerReferences[0].UID, []*machinev1alpha1.Machine{a})
	if err != nil {
		t.Fatal(err)
	}
	withGroup := func(status string) *fnv1.RunFunctionRequest {
		r := proto.Clone(req).(*fnv1.RunFunctionRequest)
		r.Observed.Resources = map[string]*fnv1.Resource{"machines": {Resource: resource.MustStructJSON(
			`{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "MachineGroup", "metadata": {"name": "workers-x7k2p"}, "status": ` + status + `}`)}}
		return r
	}
	run := func(r *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		rsp, err := runReplicas(now, r)
		if err != nil {
			t.Fatal(err)
		}
		return rsp
	}

	rsp := run(withGroup(fmt.Sprintf(`{"digest": %q, "created": ["b"]}`, digest)))
	if got := membersOf(groupOf(t, rsp)); !slices.Equal(got, []string{"a", "+b"}) {
		t.Errorf("has %v while b is not seen", got)
	}
	if got := rsp.GetMeta().GetTtl().AsDuration(); got != plan.InFlight {
		t.Errorf("calls again after %s though it sees what the group's controller sees", got)
	}
	if got := run(withGroup(`{"digest": "other"}`)).GetMeta().GetTtl().AsDuration(); got != group.NotifyEvery {
		t.Errorf("calls again after %s though it sees something else", got)
	}
	for _, name := range membersOf(groupOf(t, run(withGroup(`{"gone": ["b"]}`)))) {
		if strings.TrimPrefix(name, "+") == "b" {
			t.Error("creates again what is gone")
		}
	}
}

func TestAProviderWithoutACompositionGetsNoMachines(t *testing.T) {
	cases := map[string]*fnv1.Resources{
		"NoComposition": {},
		"OnlyOneOfAnotherKind": {Items: []*fnv1.Resource{{Resource: resource.MustStructJSON(
			strings.Replace(compositionJSON, `"kind": "Machine"`, `"kind": "Bucket"`, 1))}}},
	}
	for name, found := range cases {
		t.Run(name, func(t *testing.T) {
			req := setRequest(2, 1, "a")
			req.RequiredResources["compositions"] = found
			rsp, err := runReplicas(now, req)
			if err != nil {
				t.Fatal(err)
			}
			if got := membersOf(groupOf(t, rsp)); !slices.Equal(got, []string{"a"}) {
				t.Errorf("has %v, want the one that exists", got)
			}
			for _, c := range rsp.GetConditions() {
				if c.GetType() != "Valid" {
					continue
				}
				want := `MachineClass "small" has spec.provider "local", for which there is no Composition of Machines: one must have the label provider: local; no Machines are created until that is mended`
				if c.GetReason() != machinev1alpha1.ReasonCompositionNotFound || c.GetMessage() != want {
					t.Errorf("got %s: %s", c.GetReason(), c.GetMessage())
				}
			}
		})
	}
}

func TestAMachineThatCannotBeDecodedDoesNotCountAsGone(t *testing.T) {
	req := setRequest(1, 1, "a")
	req.RequiredResources["machines"].Items[0].Resource.Fields["spec"] = structpb.NewStringValue("no spec")
	rsp, err := runReplicas(now, req)
	if err != nil {
		t.Fatal(err)
	}
	if got := membersOf(groupOf(t, rsp)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("has %v, want the one that exists", got)
	}
}

// large returns a request with n Machines of the longest possible names.
func large(tb testing.TB, n int) *fnv1.RunFunctionRequest {
	var machines []string
	for i := range n {
		machines = append(machines, fmt.Sprintf("a-name-as-long-as-those-of-larger-deployments-x7k2p-%05d", i))
	}
	req := setRequest(n, n, machines...)
	for _, m := range req.GetRequiredResources()["machines"].GetItems() {
		fields := m.GetResource().GetFields()
		entry := func(of string) any {
			return map[string]any{"fieldsV1": map[string]any{"f:" + of: fieldSet(fields[of].GetStructValue())}}
		}
		managed, err := structpb.NewValue([]any{entry("metadata"), entry("spec"), entry("status")})
		if err != nil {
			tb.Fatal(err)
		}
		fields["metadata"].GetStructValue().Fields["managedFields"] = managed
	}
	if _, err := protojson.Marshal(req); err != nil {
		tb.Fatal(err)
	}
	return req
}

// fieldSet returns the managed fields of s as the API server encodes them.
func fieldSet(s *structpb.Struct) map[string]any {
	set := map[string]any{}
	for name, v := range s.GetFields() {
		set["f:"+name] = fieldSet(v.GetStructValue())
	}
	return set
}

func TestAResponseForAThousandMachinesIsFarBelowCrossplanesLimit(t *testing.T) {
	rsp, err := runReplicas(now, large(t, 1000))
	if err != nil {
		t.Fatal(err)
	}
	g := groupOf(t, rsp)
	if n := len(g.Spec.Machines); n != 1000 || len(g.Spec.Templates) != 1 {
		t.Fatalf("got %d Machines of %d templates", n, len(g.Spec.Templates))
	}
	// Crossplane accepts 4 MiB, and etcd 1.5 MiB per object.
	if size := proto.Size(rsp); size > 1<<18 {
		t.Errorf("%d bytes are more than 256 KiB", size)
	}
}

func BenchmarkReplicas(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("%dMachines", n), func(b *testing.B) {
			wire, err := proto.Marshal(large(b, n))
			if err != nil {
				b.Fatal(err)
			}
			size := 0
			for b.Loop() {
				req := &fnv1.RunFunctionRequest{}
				if err := proto.Unmarshal(wire, req); err != nil {
					b.Fatal(err)
				}
				rsp, err := runReplicas(now, req)
				if err != nil {
					b.Fatal(err)
				}
				out, err := proto.Marshal(rsp)
				if err != nil {
					b.Fatal(err)
				}
				size = len(out)
			}
			b.ReportMetric(float64(size), "B/response")
			b.ReportMetric(float64(len(wire)), "B/request")
		})
	}
}

// TestASetWaitsForNoTimeThatIsFarAhead has times that were recorded while a clock was years ahead.
func TestASetWaitsForNoTimeThatIsFarAhead(t *testing.T) {
	statusOf := func(r *fnv1.Resource) map[string]*structpb.Value {
		return r.GetResource().GetFields()["status"].GetStructValue().GetFields()
	}
	t.Run("ABackoffIsOver", func(t *testing.T) {
		req := setRequest(1, 0)
		hash := names.Hash(machinev1alpha1.ClassReference{Name: "small"}.Key(), "v1.35.4", "ClusterProviderConfig", "default", "any")
		statusOf(req.GetObserved().GetComposite())["backoff"] = structpb.NewStructValue(resource.MustStructJSON(fmt.Sprintf(
			`{"template": %q, "failures": 1, "reason": "JoinTimeout", "message": "late", "until": "2031-01-01T00:00:00Z"}`, hash)))
		rsp, err := runReplicas(now, req)
		if err != nil {
			t.Fatal(err)
		}
		if got := statusOf(rsp.GetDesired().GetComposite()); got["created"].GetNumberValue() != 1 {
			t.Errorf("no Machine is created: status %v", got)
		}
	})
	t.Run("AReadyMachineIsAvailable", func(t *testing.T) {
		req := setRequest(1, 0, "workers-x7k2p-aaaaa")
		statusOf(req.GetRequiredResources()["machines"].GetItems()[0])["readySince"] = structpb.NewStringValue("2031-01-01T00:00:00Z")
		rsp, err := runReplicas(now, req)
		if err != nil {
			t.Fatal(err)
		}
		if got := statusOf(rsp.GetDesired().GetComposite()); got["availableReplicas"].GetNumberValue() != 1 {
			t.Errorf("it does not count as available: status %v", got)
		}
	})
}
