package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/internal/localplane"
	"github.com/drover-dev/drover/test/kit"
)

// A result of a scenario: how long it took, and how much each counter rose.
type result struct {
	scenario
	wall time.Duration
	// counts by group and name.
	counts map[string]map[string]float64
}

// Groups of counters.
const (
	groupWrites     = "API writes by component"
	groupVerbs      = "API writes by verb and resource"
	groupCPU        = "CPU seconds by process"
	groupReconciles = "XR reconciles"
	groupEvents     = "tokens of circuit breakers"
	groupBreakers   = "circuit breakers opened"
	groupCalls      = "function calls by step"
	groupBytes      = "function KB by step"
)

// Rows of groupWrites that are not of a component.
const (
	rowEvents  = "events (of all)"
	rowRefused = "refused (of all)"
)

// measure the cost of do.
func (r *result) measure(ctx context.Context, p *kit.Plane, boot time.Duration, do func() error) error {
	if _, err := p.Cloud.SetSettings(ctx, localcloud.Settings{BootTime: localcloud.Duration(boot)}); err != nil {
		return err
	}
	status, err := p.Status(ctx)
	if err != nil {
		return err
	}
	log, err := os.Open(status.Control.AuditLog)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	if err := kit.SkipWrites(log); err != nil {
		return err
	}
	before, err := sample(ctx, status)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := do(); err != nil {
		return err
	}
	r.wall = time.Since(began)
	after, err := sample(ctx, status)
	if err != nil {
		return err
	}
	r.counts = rise(before, after)
	return count(log, r.add)
}

func (r *result) add(group, name string, n float64) {
	if r.counts[group] == nil {
		r.counts[group] = map[string]float64{}
	}
	r.counts[group][name] += n
}

func rise(before, after map[string]map[string]float64) map[string]map[string]float64 {
	out := map[string]map[string]float64{}
	for group, names := range after {
		out[group] = map[string]float64{}
		for name, n := range names {
			if d := n - before[group][name]; d > 0 {
				out[group][name] = d
			}
		}
	}
	return out
}

// sample all counters except those of the audit log.
func sample(ctx context.Context, s *localplane.Status) (map[string]map[string]float64, error) {
	out := map[string]map[string]float64{groupCPU: {}, groupReconciles: {}, groupEvents: {}, groupBreakers: {}, groupCalls: {}, groupBytes: {}}
	for _, c := range s.Components {
		cpu, err := cpuSeconds(c.PID)
		if err != nil {
			return nil, err
		}
		out[groupCPU][c.Name] = cpu
		if c.Metrics == "" {
			continue
		}
		families, err := kit.Scrape(ctx, c.Metrics)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		each(families["controller_runtime_reconcile_total"], func(labels map[string]string, n float64) {
			if xr, ok := strings.CutPrefix(labels["controller"], "composite/"); ok {
				out[groupReconciles][xr] += n
			}
		})
		// Each change of an object that an XR watches counts twice: with the old and the new
		// object.
		each(families["circuit_breaker_events_total"], func(labels map[string]string, n float64) {
			out[groupEvents][strings.TrimPrefix(labels["controller"], "composite/")] += n
		})
		each(families["circuit_breaker_opens_total"], func(labels map[string]string, n float64) {
			out[groupBreakers][strings.TrimPrefix(labels["controller"], "composite/")] += n
		})
		each(families["drover_function_calls_total"], func(labels map[string]string, n float64) {
			out[groupCalls][labels["step"]] += n
		})
		each(families["drover_function_request_bytes_total"], func(labels map[string]string, n float64) {
			out[groupBytes][labels["step"]+" in"] += n / 1024
		})
		each(families["drover_function_response_bytes_total"], func(labels map[string]string, n float64) {
			out[groupBytes][labels["step"]+" out"] += n / 1024
		})
	}
	return out, nil
}

// ticks per second in /proc, the same on every Linux.
const ticks = 100

func cpuSeconds(pid int) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is a name in parentheses, which may have any characters.
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	total := 0.0
	for _, f := range fields[11:13] {
		n, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return 0, err
		}
		total += n / ticks
	}
	return total, nil
}

func each(f *dto.MetricFamily, do func(labels map[string]string, n float64)) {
	for _, m := range f.GetMetric() {
		do(kit.LabelsOf(m), m.GetCounter().GetValue())
	}
}

// count the writes that follow in an audit log. A refused request, such as one with an old
// resource version, counts as refused.
func count(log io.Reader, add func(group, name string, n float64)) error {
	return kit.ReadWrites(log, func(w kit.Write) {
		by := component(w)
		if by == "" {
			return
		}
		add(groupWrites, by, 1)
		add(groupVerbs, strings.Join([]string{by, w.Verb, w.Path()}, " "), 1)
	})
}

// component that wrote, empty for the load test itself.
func component(w kit.Write) string {
	user, isAccount := strings.CutPrefix(w.User.Username, "system:serviceaccount:crossplane-system:")
	switch {
	case w.User.Username == "drover-admin":
		return ""
	case w.ResponseStatus.Code >= http.StatusBadRequest:
		return rowRefused
	case w.ObjectRef.Resource == "events":
		return rowEvents
	case strings.HasPrefix(user, "provider-drover"):
		switch w.ObjectRef.Resource {
		case "machines", "virtualmachines":
			return "provider-drover: machines"
		case "secrets":
			return "provider-drover: join tokens"
		case "nodes", "certificatesigningrequests":
			return "provider-drover: nodes"
		}
		return "provider-drover: sets"
	case isAccount:
		for _, name := range []string{"provider-local", "crossplane"} {
			// The account of a provider has the name of the provider's revision.
			if strings.Contains(user, name) {
				return name
			}
		}
		return user
	case strings.HasPrefix(user, "system:node:"), strings.HasPrefix(user, "system:bootstrap:"):
		return "kubelets"
	}
	return "kubernetes"
}

// keep a copy of the audit log for analysis.
func keep(ctx context.Context, p *kit.Plane, folder, limits string) error {
	status, err := p.Status(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	b, err := os.ReadFile(status.Control.AuditLog)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "audit-"+limits+".log"), b, 0o600)
}

func sortedKeys(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }
