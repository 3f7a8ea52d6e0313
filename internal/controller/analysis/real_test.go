package analysis

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit/prometheus"
	"github.com/drover-dev/drover/test/patience"
)

// TestARealPrometheusDecidesACanary has the errors of the Nodes in a Prometheus that scrapes them. A canary without errors
// passes, and one with errors fails with their number. Before the server answers, the analysis is inconclusive.
func TestARealPrometheusDecidesACanary(t *testing.T) {
	server := prometheus.New(t)
	errorRate := atomic.Int64{}
	verdictOf := func() machinev1alpha1.AnalysisResult {
		w := newWorld(t, run("errors"), ofPrometheus(server.URL(), func(p *machinev1alpha1.PrometheusAnalysis) {
			p.Query, p.Condition = `sum by (node) (app_errors{node=~"${newNodes}"})`, `result.all(r, r.value <= 5.0)`
		}))
		w.networks = loopback()
		w.now = time.Now
		w.join(t, "new", 1, 0)
		w.join(t, "old", 1, 0)
		s, _ := w.reconcile(t)
		return s.Results[0]
	}
	if r := verdictOf(); r.Verdict != machinev1alpha1.AnalysisInconclusive || r.Message != "the query to "+server.URL()+" failed: connection refused" {
		t.Errorf("without a server: %+v", r)
	}
	server.Scrape(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "app_errors{node=\"new-0\"} %d\napp_errors{node=\"old-0\"} 7\n", errorRate.Load())
	})
	await := func(want machinev1alpha1.AnalysisVerdict, value string) {
		t.Helper()
		patience.Eventually(t, func(context.Context) string {
			if r := verdictOf(); r.Verdict != want || len(r.Numbers) != 1 || r.Numbers[0].Name != `{node="new-0"}` || r.Numbers[0].New != value {
				return fmt.Sprintf("%+v is not %s with %s", r, want, value)
			}
			return ""
		})
	}
	await(machinev1alpha1.AnalysisPass, "0")
	errorRate.Store(6)
	await(machinev1alpha1.AnalysisFail, "6")
}
