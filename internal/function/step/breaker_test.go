package step

import (
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/drover-dev/drover/internal/plan"
)

func TestMindTheBreaker(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	written := func(ago time.Duration) map[string]any {
		return map[string]any{"managedFields": []any{
			map[string]any{"manager": "old", "time": now.Add(-24 * time.Hour).Format(time.RFC3339)},
			map[string]any{"manager": "new", "time": now.Add(-ago).Format(time.RFC3339)},
		}}
	}
	responsive := func(status string) map[string]any {
		return map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": "False"},
			map[string]any{"type": "Responsive", "status": status},
		}}
	}

	cases := map[string]struct {
		composite, composed, required map[string]any
		ttl, want                     time.Duration
	}{
		"AClosedBreakerMissesNothing": {
			map[string]any{"metadata": written(time.Second), "status": responsive("True")}, map[string]any{}, nil, plan.AtRest, plan.AtRest},
		"WhatIsInFlightKeepsItsPace": {
			map[string]any{"metadata": written(time.Second)}, map[string]any{}, nil, plan.InFlight, plan.InFlight},
		"AnOpenBreakerQuickensWhatIsInFlight": {
			map[string]any{"metadata": written(time.Second), "status": responsive("False")}, map[string]any{}, nil, plan.InFlight, soonest},
		"TheLongerNothingHappensTheLaterItIsCalled": {
			map[string]any{"metadata": written(20 * time.Second), "status": responsive("False")}, map[string]any{}, nil, plan.InFlight, 2500 * time.Millisecond},
		"WhatTakesForEverIsStillCalled": {
			map[string]any{"metadata": written(time.Hour), "status": responsive("False")}, map[string]any{}, nil, plan.InFlight, latest},
		"AnOpenBreakerCallsAgainWhatWasWrittenLately": {
			map[string]any{"metadata": written(30 * time.Second), "status": responsive("False")}, map[string]any{}, nil, plan.AtRest, 30 * time.Second / 8},
		"AnOpenBreakerCallsAgainWhatComposesSomethingWrittenLately": {
			map[string]any{"metadata": written(time.Hour), "status": responsive("False")}, map[string]any{"metadata": written(30 * time.Second)}, nil, plan.AtRest, 30 * time.Second / 8},
		"AnOpenBreakerCallsAgainWhatRequiresSomethingWrittenLately": {
			map[string]any{"metadata": written(time.Hour), "status": responsive("False")}, map[string]any{}, map[string]any{"metadata": written(30 * time.Second)}, plan.AtRest, 30 * time.Second / 8},
		"AnOpenBreakerLetsTheNextEventOfWhatIsQuietThrough": {
			map[string]any{"metadata": written(2 * time.Minute), "status": responsive("False")}, map[string]any{"metadata": written(2 * time.Minute)}, nil, plan.AtRest, plan.AtRest},
		"AShorterDeadlineStays": {
			map[string]any{"metadata": written(time.Second), "status": responsive("False")}, map[string]any{}, nil, 100 * time.Millisecond, 100 * time.Millisecond},
		"GarbageInManagedFieldsIsPassedOver": {
			map[string]any{"metadata": map[string]any{"managedFields": []any{"x", map[string]any{"time": "yesterday"}}}, "status": responsive("False")}, map[string]any{}, nil, plan.AtRest, plan.AtRest},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := &fnv1.RunFunctionRequest{Observed: &fnv1.State{
				Composite: &fnv1.Resource{Resource: mustStruct(t, tc.composite)},
				Resources: map[string]*fnv1.Resource{"a": {Resource: mustStruct(t, tc.composed)}},
			}, RequiredResources: map[string]*fnv1.Resources{"b": {Items: []*fnv1.Resource{{Resource: mustStruct(t, tc.required)}}}}}
			rsp := &fnv1.RunFunctionResponse{Meta: &fnv1.ResponseMeta{Ttl: durationpb.New(tc.ttl)}}
			MindTheBreaker(now, req, rsp)
			if got := rsp.GetMeta().GetTtl().AsDuration(); got != tc.want {
				t.Errorf("called again after %s, want %s", got, tc.want)
			}
		})
	}
}

func TestWhatComposesMuchIsCalledLessOften(t *testing.T) {
	for composed, want := range map[int]time.Duration{1: soonest, 100: time.Second, 5000: latest} {
		if got := deaf(0, composed); got != want {
			t.Errorf("%d composed resources: after %s, want %s", composed, got, want)
		}
	}
}

func mustStruct(t *testing.T, m map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
