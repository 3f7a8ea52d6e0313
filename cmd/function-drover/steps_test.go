package main

import (
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestCallsAndBytesAreCountedByStep(t *testing.T) {
	m := newStepMetrics()
	for _, kind := range []string{"Rollout", "Replicas", "Replicas"} {
		ctx := m.TagRPC(t.Context(), nil)
		req := &fnv1.RunFunctionRequest{Input: &structpb.Struct{Fields: map[string]*structpb.Value{"kind": structpb.NewStringValue(kind)}}}
		m.HandleRPC(ctx, &stats.InPayload{Payload: req, Length: 100})
		m.HandleRPC(ctx, &stats.OutPayload{Length: 10})
	}
	// A health check is not a step.
	m.HandleRPC(m.TagRPC(t.Context(), nil), &stats.OutPayload{Length: 1000})

	for step, calls := range map[string]float64{"Rollout": 1, "Replicas": 2} {
		if got := testutil.ToFloat64(m.calls.WithLabelValues(step)); got != calls {
			t.Errorf("%s: %v calls, want %v", step, got, calls)
		}
		if got := testutil.ToFloat64(m.received.WithLabelValues(step)); got != 100*calls {
			t.Errorf("%s: %v bytes in", step, got)
		}
		if got := testutil.ToFloat64(m.sent.WithLabelValues(step)); got != 10*calls {
			t.Errorf("%s: %v bytes out", step, got)
		}
	}
	if n := testutil.CollectAndCount(m.sent); n != 2 {
		t.Errorf("%d steps, want 2", n)
	}
}
