package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// excess is the multiple of its budget above which a package fails. CPU seconds vary from run to run and from
// computer to computer, so that the budget itself is no limit.
const excess = 2

// notable are the CPU seconds from which the report has a line for a package.
const notable = 10

// A total is the cost of a stage or package in all of its runs.
type total struct {
	Spent
	runs int
}

// totals adds up the records of the same stage or package, in the order in which they were first seen.
func totals(records []Spent) []total {
	var all []total
	for _, r := range records {
		i := slices.IndexFunc(all, func(t total) bool { return t.Kind == r.Kind && t.Name == r.Name })
		if i < 0 {
			all = append(all, total{Spent: r, runs: 1})
			continue
		}
		t := &all[i]
		t.CPU += r.CPU
		t.Wall += r.Wall
		t.MemoryMB = max(t.MemoryMB, r.MemoryMB)
		t.Failed = t.Failed || r.Failed
		t.runs++
	}
	return all
}

// report writes the cost beside the budget. It returns the packages that spent more than they may. A stage may spend more,
// because it also compiles, unless Go's cache has the packages.
func report(w io.Writer, b Budget, records []Spent) ([]string, error) {
	var over []string
	all := totals(records)
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, kind := range []string{kindStage, kindPackage} {
		_, _ = fmt.Fprintf(out, "%s\twall s\tCPU s\tbudget\tMB\t\t\n", kind)
		of := slices.DeleteFunc(slices.Clone(all), func(t total) bool { return t.Kind != kind })
		if kind == kindPackage {
			slices.SortStableFunc(of, func(a, b total) int { return cmp.Compare(b.CPU, a.CPU) })
		}
		sum, rest := Spent{}, 0
		for _, t := range of {
			sum.CPU += t.CPU
			budget := b.of(kind, t.Name)
			note := ""
			if t.CPU > excess*budget {
				note = "OVER"
				if kind == kindPackage {
					over = append(over, fmt.Sprintf("%s spent %.0f CPU seconds, its budget is %.0f", t.Name, t.CPU, budget))
				}
			}
			if t.Failed {
				note += " failed"
			}
			if kind == kindPackage && t.CPU < notable && note == "" {
				rest++
				continue
			}
			_, _ = fmt.Fprintf(out, "%s\t%.0f\t%.0f\t%.0f\t%d\t%s\t\n", t.Name, t.Wall, t.CPU, budget, t.MemoryMB, note)
		}
		if rest > 0 {
			_, _ = fmt.Fprintf(out, "%d others below %d s\t\t\t\t\t\t\n", rest, notable)
		}
		_, _ = fmt.Fprintf(out, "sum\t\t%.0f\t\t\t\t\n\t\t\t\t\t\t\n", sum.CPU)
	}
	return over, out.Flush()
}
