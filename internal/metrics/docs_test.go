package metrics

import (
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/undecoded"
)

var (
	metricName = regexp.MustCompile(`\bdrover_[a-z_]+`)
	descName   = regexp.MustCompile(`fqName: "([a-z_]+)"`)
)

// described are the names of all metrics.
func described(t *testing.T) map[string]bool {
	t.Helper()
	c, _ := newCollector(t)
	descs := make(chan *prometheus.Desc, 100)
	c.Describe(descs)
	(&orphans{}).Describe(descs)
	undecoded.Describe(descs)
	close(descs)
	out := map[string]bool{}
	for d := range descs {
		out[descName.FindStringSubmatch(d.String())[1]] = true
	}
	return out
}

// ofObjects are the names of the metrics of kube-state-metrics with the example of its configuration.
func ofObjects(t *testing.T) map[string]bool {
	t.Helper()
	config := struct {
		Spec struct {
			Resources []struct {
				MetricNamePrefix string
				Metrics          []struct{ Name string }
			} `json:"resources"`
		} `json:"spec"`
	}{}
	if err := yaml.Unmarshal([]byte(read(t, "examples/monitoring/kube-state-metrics.yaml")), &config); err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, r := range config.Spec.Resources {
		for _, m := range r.Metrics {
			out[r.MetricNamePrefix+"_"+m.Name] = true
		}
	}
	return out
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestEveryMetricIsDocumented(t *testing.T) {
	doc := read(t, "docs/operations.md")
	for name := range described(t) {
		if !strings.Contains(doc, "`"+name+"`") {
			t.Errorf("docs/operations.md does not say what %s is", name)
		}
	}
}

func TestTheExampleAlertsAreRulesAboutMetricsThatThereAre(t *testing.T) {
	rules := struct {
		Kind string `json:"kind"`
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr, For    string
					Labels, Annotations map[string]string
				} `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}{}
	if err := yaml.Unmarshal([]byte(read(t, "examples/monitoring/prometheusrule.yaml")), &rules); err != nil {
		t.Fatal(err)
	}
	if rules.Kind != "PrometheusRule" || len(rules.Spec.Groups) != 1 || len(rules.Spec.Groups[0].Rules) == 0 {
		t.Fatalf("read %+v", rules)
	}
	there := described(t)
	maps.Copy(there, ofObjects(t))
	const runbook = "https://github.com/drover-dev/drover/blob/main/docs/runbook.md#"
	sections := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^## (Drover\w+)$`).FindAllStringSubmatch(read(t, "docs/runbook.md"), -1) {
		sections[m[1]] = true
	}
	alerts := map[string]bool{}
	for _, r := range rules.Spec.Groups[0].Rules {
		if alerts[r.Alert] {
			t.Errorf("there are two alerts %s", r.Alert)
		}
		alerts[r.Alert] = true
		if !sections[r.Alert] || r.Annotations["runbook_url"] != runbook+strings.ToLower(r.Alert) {
			t.Errorf("alert %s: docs/runbook.md has its section: %t, and runbook_url is %q, want %s%s", r.Alert, sections[r.Alert], r.Annotations["runbook_url"], runbook, strings.ToLower(r.Alert))
		}
	}
	for s := range sections {
		if !alerts[s] {
			t.Errorf("docs/runbook.md has a section for %s, which is no alert", s)
		}
	}
	for _, r := range rules.Spec.Groups[0].Rules {
		names := metricName.FindAllString(r.Expr, -1)
		// Prometheus itself reports whether a controller can be scraped.
		if r.Alert == "" || len(names) == 0 && r.Alert != "DroverDown" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" {
			t.Errorf("rule %+v", r)
		}
		for _, name := range names {
			if !there[strings.TrimSuffix(name, "_bucket")] {
				t.Errorf("alert %s is about %s, which nobody shows", r.Alert, name)
			}
		}
	}
}
