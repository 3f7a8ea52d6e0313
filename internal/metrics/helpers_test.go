package metrics

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// A sample of a histogram.
type sample struct {
	count int
	sum   float64
}

// samples of all series of a histogram.
func samples(t *testing.T, c *collector, name string) sample {
	t.Helper()
	var out sample
	for _, m := range gather(t, c, name) {
		out.count += int(m.GetHistogram().GetSampleCount())
		out.sum += m.GetHistogram().GetSampleSum()
	}
	return out
}

func gather(t *testing.T, c *collector, name string) []*dto.Metric {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()
		}
	}
	return nil
}

func (c *collector) collectAll(t *testing.T) {
	t.Helper()
	gather(t, c, "")
}
