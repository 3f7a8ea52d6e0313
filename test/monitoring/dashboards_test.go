// Package monitoring tests examples/monitoring with the programs that read these files.
package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

const examples = "../../examples/monitoring/"

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// dashboards by file, as Grafana's schema decodes them.
func dashboards(t *testing.T) map[string]dashboard.Dashboard {
	t.Helper()
	plugins.RegisterDefaultPlugins()
	files, err := filepath.Glob(examples + "dashboards/*.json")
	if err != nil || len(files) != 2 {
		t.Fatalf("dashboards %v, %v", files, err)
	}
	out := map[string]dashboard.Dashboard{}
	for _, f := range files {
		d := dashboard.Dashboard{}
		if err := json.Unmarshal([]byte(read(t, f)), &d); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		out[filepath.Base(f)] = d
	}
	return out
}

// queries of a dashboard, by the titles of their panels.
func queries(t *testing.T, d dashboard.Dashboard) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	add := func(p dashboard.Panel) {
		for _, target := range p.Targets {
			q, ok := target.(*prometheus.Dataquery)
			if !ok || q.Expr == "" {
				t.Errorf("panel %q: the query is a %T", *p.Title, target)
				continue
			}
			out[*p.Title] = append(out[*p.Title], q.Expr)
		}
	}
	for _, p := range d.Panels {
		if p.Panel != nil {
			add(*p.Panel)
		}
		if p.RowPanel != nil {
			for _, inRow := range p.RowPanel.Panels {
				add(inRow)
			}
		}
	}
	return out
}

func TestADashboardIsOneOfGrafanasSchema(t *testing.T) {
	uids := map[string]bool{}
	for file, d := range dashboards(t) {
		// Grafana would drop fields that the schema does not have.
		again, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(read(t, examples+"dashboards/"+file), string(again)+"\n"); diff != "" {
			t.Errorf("%s: -file +as the schema has it\n%s", file, diff)
		}
		if d.Uid == nil || uids[*d.Uid] {
			t.Errorf("%s: the uid %v is not its own", file, d.Uid)
			continue
		}
		uids[*d.Uid] = true
		if n := len(queries(t, d)); n < 10 {
			t.Errorf("%s: has %d panels with queries", file, n)
		}
		for _, p := range d.Panels {
			if p.Panel != nil && (p.Panel.Datasource == nil || *p.Panel.Datasource.Uid != "${datasource}") {
				t.Errorf("%s: panel %q: the data source is not the user's", file, *p.Panel.Title)
			}
		}
	}
}

var metric = regexp.MustCompile(`\bdrover_[a-z_]+`)

// TestADashboardShowsMetricsThatThereAre checks that each metric exists in the configuration of
// kube-state-metrics or in the documentation. A test of provider-drover and function-drover
// checks that documentation.
func TestADashboardShowsMetricsThatThereAre(t *testing.T) {
	doc := read(t, "../../docs/operations.md")
	reported := metricsOfObjects(t)
	for file, d := range dashboards(t) {
		for panel, exprs := range queries(t, d) {
			for _, expr := range exprs {
				for _, name := range metric.FindAllString(expr, -1) {
					if !strings.Contains(doc, "`"+strings.TrimSuffix(name, "_bucket")+"`") && !reported[name] {
						t.Errorf("%s: panel %q: there is no metric %s", file, panel, name)
					}
				}
			}
		}
	}
}
