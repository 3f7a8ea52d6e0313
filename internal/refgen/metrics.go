package main

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// A metric that a process serves.
type metric struct {
	name, kind, help string
	labels           []string
}

// metricProcesses are the packages with the metrics of a process.
var metricProcesses = []struct{ process, folder, intro string }{
	{"provider-drover", "internal/metrics", "Only the leader of several instances reports them. They are computed from its caches, or count since it started."},
	{"All providers", "internal/undecoded", "Each instance reports the objects of its caches."},
	{"function-drover", "cmd/function-drover", "Each instance counts its own calls."},
}

const metricsIntro = `# Metrics

<!-- Generated from the code by "make generate". Do not edit. -->

Prometheus metrics of Drover, under ` + "`/metrics`" + `. [Operations](../operations.md#metrics) explains what they count, and
[examples/monitoring](../../examples/monitoring) has alerts and dashboards for them. All providers also serve the metrics of
controller-runtime (` + "`controller_runtime_*`, `workqueue_*`, `rest_client_*`" + `), and the function those of gRPC (` + "`grpc_server_*`" + `).
`

func renderMetrics(s *source) (string, error) {
	var out strings.Builder
	out.WriteString(metricsIntro)
	for _, of := range metricProcesses {
		p, err := s.load(of.folder)
		if err != nil {
			return "", err
		}
		metrics, err := metricsOf(p)
		if err != nil {
			return "", fmt.Errorf("%s: %w", of.folder, err)
		}
		fmt.Fprintf(&out, "\n## %s\n\n%s\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n", of.process, of.intro)
		for _, m := range metrics {
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", m.name, m.kind, codes(m.labels), cell(m.help))
		}
	}
	return out.String(), nil
}

func codes(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "`" + strings.Join(words, "`, `") + "`"
}

// metricsOf a package: descriptions of gauges, and the options of counters and histograms.
func metricsOf(p *pkg) ([]metric, error) {
	var out []metric
	var problem error
	add := func(m metric, labels ast.Expr) {
		var ok bool
		if m.labels, ok = p.strings(labels); !ok || m.name == "" || m.help == "" {
			problem = fmt.Errorf("metric %q: name, help and labels must be constant", m.name)
		}
		out = append(out, m)
	}
	for _, f := range p.syntax {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !isNamed(f.X, "prometheus") {
				return true
			}
			switch f.Sel.Name {
			case "NewDesc":
				add(metric{name: p.text(call.Args[0]), kind: "gauge", help: p.text(call.Args[1])}, call.Args[2])
			case "NewCounterVec", "NewHistogramVec", "NewGaugeVec":
				m := p.options(call.Args[0])
				m.kind = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(f.Sel.Name, "New"), "Vec"))
				add(m, call.Args[1])
			}
			return true
		})
	}
	slices.SortFunc(out, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	return out, problem
}

// options of a counter or a histogram.
func (p *pkg) options(e ast.Expr) metric {
	m := metric{}
	literal, ok := e.(*ast.CompositeLit)
	if !ok {
		return m
	}
	for _, field := range literal.Elts {
		if kv, ok := field.(*ast.KeyValueExpr); ok && isNamed(kv.Key, "Name") {
			m.name = p.text(kv.Value)
		} else if ok && isNamed(kv.Key, "Help") {
			m.help = p.text(kv.Value)
		}
	}
	return m
}

// strings of a slice: a literal, a variable that is defined by one, or either with more appended.
func (p *pkg) strings(e ast.Expr) ([]string, bool) {
	switch e := e.(type) {
	case *ast.CompositeLit:
		var out []string
		for _, element := range e.Elts {
			text := p.text(element)
			if text == "" {
				return nil, false
			}
			out = append(out, text)
		}
		return out, true
	case *ast.SliceExpr:
		return p.strings(e.X)
	case *ast.CallExpr:
		if !isNamed(e.Fun, "append") {
			return nil, false
		}
		out, ok := p.strings(e.Args[0])
		for _, more := range e.Args[1:] {
			out = append(out, p.text(more))
		}
		return slices.Clone(out), ok
	case *ast.Ident:
		if d := p.definition(e); d != nil {
			return p.strings(d)
		}
	}
	return nil, false
}

// definition of a variable by a statement of its own, nil if there is none.
func (p *pkg) definition(variable *ast.Ident) ast.Expr {
	var out ast.Expr
	for _, f := range p.syntax {
		ast.Inspect(f, func(n ast.Node) bool {
			a, ok := n.(*ast.AssignStmt)
			if !ok || len(a.Lhs) != 1 || len(a.Rhs) != 1 {
				return true
			}
			if i, ok := a.Lhs[0].(*ast.Ident); ok && p.info.Defs[i] != nil && p.info.Defs[i] == p.info.Uses[variable] {
				out = a.Rhs[0]
			}
			return true
		})
	}
	return out
}

func isNamed(e ast.Expr, name string) bool {
	i, ok := e.(*ast.Ident)
	return ok && i.Name == name
}
