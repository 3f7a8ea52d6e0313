package main

import (
	"fmt"
	"os"
	"text/tabwriter"
)

// printTable prints one table: a column per scenario, a row per counter. Counts and CPU seconds are per
// Machine. Those of a rest, of held rollouts and of circuit breakers are totals, in parentheses.
func printTable(limits string, results []result) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer func() { _ = w.Flush() }()
	row := func(name string, cell func(result) string) {
		fmt.Fprint(w, name)
		for _, r := range results {
			fmt.Fprint(w, "\t", cell(r))
		}
		fmt.Fprintln(w, "\t")
	}
	row("limits: "+limits, result.String)
	row("wall seconds", func(r result) string { return fmt.Sprintf("%.1f", r.wall.Seconds()) })
	for _, group := range []string{groupWrites, groupVerbs, groupCPU, groupReconciles, groupEvents, groupBreakers, groupCalls, groupBytes} {
		row(group+", total", func(r result) string { return r.cell(group, sum(r.counts[group])) })
		names := map[string]bool{}
		for _, r := range results {
			for name := range r.counts[group] {
				names[name] = true
			}
		}
		for _, name := range sortedKeys(names) {
			row("  "+name, func(r result) string { return r.cell(group, r.counts[group][name]) })
		}
	}
}

func (r result) cell(group string, n float64) string {
	if r.isRest() || group == groupBreakers {
		return fmt.Sprintf("(%.1f)", n)
	}
	return fmt.Sprintf("%.2f", n/float64(r.machines))
}

func sum(m map[string]float64) float64 {
	total := 0.0
	for _, n := range m {
		total += n
	}
	return total
}
