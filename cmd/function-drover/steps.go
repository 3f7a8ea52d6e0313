package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/types/known/structpb"
)

// stepMetrics counts calls and bytes per step. gRPC's own metrics cannot distinguish steps, because
// there is one method for all of them.
type stepMetrics struct {
	calls, received, sent *prometheus.CounterVec
}

func newStepMetrics() *stepMetrics {
	by := []string{"step"}
	return &stepMetrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "drover_function_calls_total", Help: "Calls by the kind of the step's input.",
		}, by),
		received: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "drover_function_request_bytes_total", Help: "Bytes of requests, by the kind of the step's input.",
		}, by),
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "drover_function_response_bytes_total", Help: "Bytes of responses, by the kind of the step's input.",
		}, by),
	}
}

// Describe and Collect implement prometheus.Collector for all counters together.
func (m *stepMetrics) Describe(c chan<- *prometheus.Desc) {
	for _, v := range []*prometheus.CounterVec{m.calls, m.received, m.sent} {
		v.Describe(c)
	}
}

func (m *stepMetrics) Collect(c chan<- prometheus.Metric) {
	for _, v := range []*prometheus.CounterVec{m.calls, m.received, m.sent} {
		v.Collect(c)
	}
}

// stepKey is the context key of the name of the step that a call is for.
type stepKey struct{}

// TagRPC reserves a place for the name of the step, which is known only when the request arrives.
func (m *stepMetrics) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, stepKey{}, new(string))
}

// HandleRPC counts calls and bytes that gRPC measures anyway.
func (m *stepMetrics) HandleRPC(ctx context.Context, s stats.RPCStats) {
	step, ok := ctx.Value(stepKey{}).(*string)
	if !ok {
		return
	}
	switch s := s.(type) {
	case *stats.InPayload:
		req, ok := s.Payload.(interface{ GetInput() *structpb.Struct })
		if !ok {
			return
		}
		*step = req.GetInput().GetFields()["kind"].GetStringValue()
		m.calls.WithLabelValues(*step).Inc()
		m.received.WithLabelValues(*step).Add(float64(s.Length))
	case *stats.OutPayload:
		if *step != "" {
			m.sent.WithLabelValues(*step).Add(float64(s.Length))
		}
	}
}

// TagConn and HandleConn do nothing: connections are not counted.
func (m *stepMetrics) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (m *stepMetrics) HandleConn(context.Context, stats.ConnStats) {}
