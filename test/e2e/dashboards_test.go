package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/tools"
	"github.com/drover-dev/drover/test/patience"
)

// TestADashboardShowsThePoolThatRuns has a real Prometheus, which scrapes provider-drover and
// function-drover like the shipped PodMonitors. It runs the queries of the panels. Each query
// must be valid, and return values if a healthy pool has them.
func TestADashboardShowsThePoolThatRuns(t *testing.T) {
	t.Parallel()
	prometheus := tools.Path(t, "prometheus", "prometheus", "the dashboards' queries")
	f := plane.NewFleet(t)
	md := f.Deployment("web", 2, 1, 0)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	server := startPrometheus(t, prometheus)

	values := strings.NewReplacer("$namespace", f.Namespace, "$deployment", md.Name)
	for _, tc := range []struct {
		dashboard string
		// shown are the panels that must have values for a healthy pool.
		shown []string
	}{
		{"fleet", []string{"Machines", "Running", "Machines by phase", "Machines by pool", "From creation to running", "Reconciles a second", "Errors of reconciles a second",
			"Duration of reconciles, 99 %", "Waiting in queues", "Calls of function-drover a second", "Requests to API servers a second", "Memory", "CPU"}},
		{"pool", []string{"Running", "Machines by phase", "Machines by MachineSet", "From creation to running"}},
	} {
		step(t, tc.dashboard, func(t *testing.T) {
			panels := panelsOf(t, tc.dashboard)
			for _, title := range tc.shown {
				if panels[title] == nil {
					t.Fatalf("there is no panel %q", title)
				}
				for _, expr := range panels[title] {
					patience.Eventually(t, func(ctx context.Context) string {
						found, err := ask(ctx, server, values.Replace(expr))
						if err != nil {
							return err.Error()
						}
						if len(found) == 0 {
							return fmt.Sprintf("panel %q shows nothing: %s", title, expr)
						}
						return ""
					}, f.Describe)
				}
			}
			for title, exprs := range panels {
				for _, expr := range exprs {
					if _, err := ask(t.Context(), server, values.Replace(expr)); err != nil {
						t.Errorf("panel %q: %v", title, err)
					}
				}
			}
		})
	}
	step(t, "TheMachinesAreThoseOfThePool", func(t *testing.T) {
		found, err := ask(t.Context(), server, fmt.Sprintf(`sum(drover_machines{namespace=%q, deployment="web", phase="Running"})`, f.Namespace))
		must(t, err)
		if len(found) != 1 || found[0] != "2" {
			t.Errorf("%v Machines run, want 2", found)
		}
	})
	f.DeleteDeployment(t, md.Name)
}

// panelsOf a shipped dashboard: the queries by title.
func panelsOf(t *testing.T, name string) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(kit.Root(), "examples/monitoring/dashboards", name+".json"))
	must(t, err)
	dashboard := struct {
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}{}
	must(t, json.Unmarshal(raw, &dashboard))
	out := map[string][]string{}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			out[p.Title] = append(out[p.Title], target.Expr)
		}
	}
	return out
}

// startPrometheus that scrapes the controllers each second, and return its address.
func startPrometheus(t *testing.T, program string) string {
	t.Helper()
	s, err := plane.Status(t.Context())
	must(t, err)
	config := "global: {scrape_interval: 1s}\nscrape_configs:\n"
	for _, c := range s.Components {
		if c.Name != "provider-drover" && c.Name != "function-drover" {
			continue
		}
		u, err := url.Parse(c.Metrics)
		must(t, err)
		// The Prometheus operator uses these names for the job of a PodMonitor and its pods.
		config += fmt.Sprintf("- job_name: crossplane-system/%[1]s\n  honor_labels: true\n  metrics_path: %[2]s\n  static_configs:\n"+
			"  - {targets: [%[3]q], labels: {namespace: crossplane-system, pod: drover-%[1]s-0}}\n", c.Name, u.Path, u.Host)
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "prometheus.yaml"), []byte(config), 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := l.Addr().String()
	must(t, l.Close())
	cmd := exec.Command(program, "--config.file="+filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	log, err := os.Create(filepath.Join(dir, "log"))
	must(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	})
	return address
}

// ask runs a query in Prometheus, and returns the current values.
func ask(ctx context.Context, server, expr string) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+server+"/api/v1/query?query="+url.QueryEscape(expr), nil)
	if err != nil {
		return nil, err
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rsp.Body.Close() }()
	answer := struct {
		Status, Error string
		Data          struct {
			Result []struct{ Value [2]any }
		}
	}{}
	if err := json.NewDecoder(rsp.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", expr, rsp.Status, err)
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("%s: %s", expr, answer.Error)
	}
	var out []string
	for _, r := range answer.Data.Result {
		out = append(out, fmt.Sprint(r.Value[1]))
	}
	return out, nil
}
