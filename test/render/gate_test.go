package render

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/request"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
)

// A gate is a Function of a user's own. It sets its value as the gate of rollouts, for the MachineDeployments of a pool.
type gate struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
	value *structpb.Value
	asked []string
}

func (g *gate) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := response.To(req, response.DefaultTTL)
	xr, err := request.GetObservedCompositeResource(req)
	if err != nil {
		return nil, err
	}
	g.asked = append(g.asked, xr.Resource.GetName())
	if g.value != nil {
		response.SetContextKey(rsp, step.ContextRolloutGate, g.value)
	}
	return rsp, nil
}

// serve the gate over gRPC, and return its address.
func (g *gate) serve(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	fnv1.RegisterFunctionRunnerServiceServer(s, g)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

// withGate returns a Composition of MachineDeployments with a step before the rollout, as docs/rollouts.md describes it.
func withGate(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(composition(machineDeployment))
	if err != nil {
		t.Fatal(err)
	}
	const rollout = "    - step: rollout\n"
	if strings.Count(string(b), rollout) != 1 {
		t.Fatalf("%s has no step rollout", machineDeployment)
	}
	file := filepath.Join(t.TempDir(), "composition.yaml")
	content := strings.Replace(string(b), rollout, "    - step: gate\n      functionRef: {name: example-gate}\n"+rollout, 1)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestAGateOfAUsersOwnIsCalledOverGRPC has a rollout in which a Machine of the new template is available.
func TestAGateOfAUsersOwnIsCalledOverGRPC(t *testing.T) {
	for name, tc := range map[string]struct {
		gate           map[string]any
		events, reason string
		message        string
	}{
		"WithoutAnAnswerTheRolloutGoesOn": {events: "ScalingMachineSet", reason: machinev1alpha1.ReasonMachineSetUpdated},
		"OpenItGoesOn":                    {gate: map[string]any{"hold": false}, events: "ScalingMachineSet", reason: machinev1alpha1.ReasonMachineSetUpdated},
		"ItHoldsUntilATime": {
			gate:   map[string]any{"hold": true, "reason": "EtcdUpgrade", "message": "etcd is being upgraded", "until": "2126-01-10T04:00:00Z"},
			events: "GateHolds", reason: machinev1alpha1.ReasonGateHolds, message: "EtcdUpgrade: etcd is being upgraded; until 2126-01-10T04:00:00Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := &gate{}
			if tc.gate != nil {
				v, err := structpb.NewValue(tc.gate)
				if err != nil {
					t.Fatal(err)
				}
				g.value = v
			}
			c := golden{t, "machinedeployment-rollout"}
			got := c.render(withGate(t), c.observed(), append(plane(true), "--function", "example-gate="+g.serve(t))...)
			if len(g.asked) == 0 || g.asked[0] != "workers" {
				t.Errorf("the gate was asked about %q", g.asked)
			}
			if is := got.reasons(); is != tc.events {
				t.Errorf("events %q, want %q", is, tc.events)
			}
			conditions, _, _ := unstructured.NestedSlice(got.Composite, "status", "conditions")
			reason, message := "", ""
			for _, c := range conditions {
				if c := c.(map[string]any); c["type"] == machinev1alpha1.ConditionProgressing {
					reason, _ = c["reason"].(string)
					message, _ = c["message"].(string)
				}
			}
			if reason != tc.reason || !strings.Contains(message, tc.message) {
				t.Errorf("Progressing has the reason %s and the message %q", reason, message)
			}
		})
	}
}
