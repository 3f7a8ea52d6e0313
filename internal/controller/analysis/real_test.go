package analysis

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit/tools"
	"github.com/drover-dev/drover/test/patience"
)

// TestARealPrometheusDecidesACanary has the errors of the Nodes in a Prometheus that scrapes them. A canary without errors
// passes, and one with errors fails with their number. Before the server answers, the analysis is inconclusive.
func TestARealPrometheusDecidesACanary(t *testing.T) {
	program := tools.Path(t, "prometheus", "prometheus", "queries of analyses")
	errorRate := atomic.Int64{}
	metrics := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "app_errors{node=\"new-0\"} %d\napp_errors{node=\"old-0\"} 7\n", errorRate.Load())
	}))
	t.Cleanup(metrics.Close)
	address := freeAddress(t)
	verdictOf := func() machinev1alpha1.AnalysisResult {
		w := newWorld(t, run("errors"), ofPrometheus("http://"+address, func(p *machinev1alpha1.PrometheusAnalysis) {
			p.Query, p.Condition = `sum by (node) (app_errors{node=~"${newNodes}"})`, `result.all(r, r.value <= 5.0)`
		}))
		w.networks = loopback()
		w.now = time.Now
		w.join(t, "new", 1, 0)
		w.join(t, "old", 1, 0)
		s, _ := w.reconcile(t)
		return s.Results[0]
	}
	if r := verdictOf(); r.Verdict != machinev1alpha1.AnalysisInconclusive || r.Message != "the query to http://"+address+" failed: connection refused" {
		t.Errorf("without a server: %+v", r)
	}
	startPrometheus(t, program, address, metrics.URL)
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

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// startPrometheus that scrapes a URL each second.
func startPrometheus(t *testing.T, program, address, target string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yaml")
	config := fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: app\n  static_configs: [{targets: [%q]}]\n", u.Host)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}
