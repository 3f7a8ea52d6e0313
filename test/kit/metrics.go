package kit

import (
	"context"
	"fmt"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics of a component that serves metrics, by name.
func (p *Plane) Metrics(ctx context.Context, component string) (map[string]*dto.MetricFamily, error) {
	s, err := p.Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range s.Components {
		if c.Name == component && c.Metrics != "" {
			return Scrape(ctx, c.Metrics)
		}
	}
	return nil, fmt.Errorf("no component %s serves metrics", component)
}

// Scrape the metrics that a URL serves for Prometheus.
func Scrape(ctx context.Context, url string) (map[string]*dto.MetricFamily, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rsp.Body.Close() }()
	if rsp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, rsp.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(rsp.Body)
}

// LabelsOf a series of a metric.
func LabelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}
