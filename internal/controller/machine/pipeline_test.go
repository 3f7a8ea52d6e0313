package machine

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper/nodetest"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

type (
	fnRequest  = fnv1.RunFunctionRequest
	fnResponse = fnv1.RunFunctionResponse
)

// answered is the response of a scripted step.
type answered struct {
	join       *plan.JoinRequest
	vm         plan.VM
	node       *workernode.Parameters
	status     v1alpha1.MachineStatus
	resources  map[string]map[string]any
	ready      bool
	conditions []*fnv1.Condition
	results    []*fnv1.Result
	requires   map[string]*fnv1.ResourceSelector
}

func structOf(t *testing.T, v any) *structpb.Struct {
	t.Helper()
	b, err := json.Marshal(v)
	s := &structpb.Struct{}
	if err == nil {
		err = s.UnmarshalJSON(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// into decodes the input of a step.
func into(t *testing.T, s *structpb.Struct, v any) {
	t.Helper()
	b, err := s.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func machineIn(t *testing.T, req *fnRequest) *v1alpha1.Machine {
	t.Helper()
	m := &v1alpha1.Machine{}
	into(t, req.GetObserved().GetComposite().GetResource(), m)
	return m
}

func nodeIn(t *testing.T, req *fnRequest) workernode.WorkerNode {
	t.Helper()
	wn := workernode.WorkerNode{}
	if v, ok := req.GetContext().GetFields()[step.ContextNode]; ok {
		into(t, v.GetStructValue(), &wn)
	}
	return wn
}

func answer(t *testing.T, req *fnRequest, a answered) *fnResponse {
	t.Helper()
	rsp := response.To(req, 10*time.Minute)
	set := func(key string, v any) { response.SetContextKey(rsp, key, structpb.NewStructValue(structOf(t, v))) }
	set(step.ContextBootstrap, plan.Bootstrap{Join: a.join})
	set(step.ContextVM, a.vm)
	if a.node != nil {
		set(step.ContextNode, workernode.WorkerNode{Parameters: *a.node, Observation: nodeIn(t, req).Observation})
	}
	rsp.Desired = &fnv1.State{Composite: &fnv1.Resource{Resource: structOf(t, map[string]any{"status": a.status})}, Resources: map[string]*fnv1.Resource{}}
	if a.ready {
		rsp.Desired.Composite.Ready = fnv1.Ready_READY_TRUE
	}
	for role, obj := range a.resources {
		rsp.Desired.Resources[role] = &fnv1.Resource{Resource: structOf(t, obj)}
	}
	rsp.Conditions, rsp.Results = a.conditions, a.results
	if a.requires != nil {
		rsp.Requirements = &fnv1.Requirements{Resources: a.requires}
	}
	return rsp
}

// desiredVM of a Machine.
func desiredVM(m *v1alpha1.Machine, size string) map[string]any {
	return map[string]any{
		"apiVersion": vmKind.GroupVersion().String(), "kind": vmKind.Kind,
		"metadata": map[string]any{
			"name":       names.OfMachine(m.Name, m.UID),
			"labels":     map[string]any{v1alpha1.LabelMachine: m.Name},
			"finalizers": []any{v1alpha1.FinalizerDrain},
		},
		"spec": map[string]any{"forProvider": map[string]any{"size": size, "disk": 20}},
	}
}

func condition(kind string, status fnv1.Status, reason string) *fnv1.Condition {
	return &fnv1.Condition{Type: kind, Status: status, Reason: reason}
}

func normalResult(reason, message string) *fnv1.Result {
	return &fnv1.Result{Severity: fnv1.Severity_SEVERITY_NORMAL, Message: message, Reason: &reason}
}

// drover decides as Drover's own steps do, in short: a VM as soon as the user data is
// published, and a Node as soon as the VM reports its providerID.
func drover(t *testing.T) func(context.Context, *fnRequest) (*fnResponse, error) {
	t.Helper()
	return func(ctx context.Context, req *fnRequest) (*fnResponse, error) {
		m := machineIn(t, req)
		a := answered{
			join:      &plan.JoinRequest{UserData: "join with $(token)", TTL: metav1.Duration{Duration: time.Hour}, MaxLife: metav1.Duration{Duration: 2 * time.Hour}},
			status:    v1alpha1.MachineStatus{Phase: v1alpha1.MachinePending, ProviderID: m.Status.ProviderID, NodeRef: m.Status.NodeRef},
			resources: map[string]map[string]any{},
		}
		join := plan.JoinState{}
		into(t, req.GetContext().GetFields()[step.ContextJoin].GetStructValue(), &join)
		vm, isThere := req.GetObserved().GetResources()[v1alpha1.ResourceVM]
		a.join.Frozen = isThere
		if join.Published || isThere {
			a.resources[v1alpha1.ResourceVM] = desiredVM(m, "small")
		}
		if isThere { // It stays as it is, whatever its name.
			has := vm.GetResource().AsMap()["metadata"].(map[string]any)
			wants := a.resources[v1alpha1.ResourceVM]["metadata"].(map[string]any)
			wants["name"] = has["name"]
		}
		atProvider := vm.GetResource().GetFields()["status"].GetStructValue().GetFields()["atProvider"].GetStructValue().GetFields()
		if pid := atProvider["id"].GetStringValue(); pid != "" {
			a.vm = plan.VM{State: plan.VMRunning, ProviderID: pid, Confirmed: true}
			a.node = &workernode.Parameters{ProviderID: pid, Labels: map[string]string{"pool": "a"}}
			a.node.Drain.Drain = m.Spec.Drain
			a.status.ProviderID, a.status.Phase = pid, v1alpha1.MachineJoining
		}
		if code := atProvider["error"].GetStringValue(); code != "" {
			a.vm.ErrorCode = code
		}
		vmReady := condition("InfrastructureReady", fnv1.Status_STATUS_CONDITION_FALSE, "VMCreating")
		if state := atProvider["state"].GetStringValue(); state != "" {
			vmReady = condition("InfrastructureReady", fnv1.Status_STATUS_CONDITION_TRUE, state)
		}
		a.conditions = append(a.conditions, vmReady)
		if o := nodeIn(t, req).Observation; o.Present {
			a.status.NodeRef = &v1alpha1.NodeReference{Name: o.NodeName, UID: string(o.NodeUID)}
			a.status.Phase, a.ready = v1alpha1.MachineRunning, true
			if o.Synced && m.Status.Phase != v1alpha1.MachineRunning {
				a.results = append(a.results, normalResult("Running", "The Machine runs"))
			}
		}
		return answer(t, req, a), ctx.Err()
	}
}

// joinedNode is the Node of a Machine whose name Drover chose.
func joinedNode(m *v1alpha1.Machine) *corev1.Node {
	n := nodetest.Joined(names.OfMachine(m.Name, m.UID), "uid-1", string(m.UID), "")
	return n
}
