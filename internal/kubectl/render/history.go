package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/drover-dev/drover/internal/kubectl/action"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

// History of revisions as a table, or all of each.
func (s Screen) History(entries []action.HistoryEntry, full bool) string {
	out := &strings.Builder{}
	if full {
		for _, e := range entries {
			s.revision(out, e)
		}
		return out.String()
	}
	if len(entries) == 0 {
		return "There is no revision yet.\n"
	}
	t := table{rows: [][]string{{"REVISION", "VERSION", "CLASS", "OUTCOME", "STARTED", "TOOK", "CHANGE-CAUSE"}}, drop: []int{4, 5}}
	isOfPool := slices.ContainsFunc(entries, func(e action.HistoryEntry) bool { return e.Of != "" })
	if isOfPool {
		t = table{rows: [][]string{append([]string{"MACHINEDEPLOYMENT"}, t.rows[0]...)}, drop: []int{5, 6}}
	}
	for _, e := range entries {
		number := fmt.Sprint(e.Revision.Revision)
		if e.Current {
			number += " *"
		}
		started, took := "", ""
		if e.StartTime != nil {
			started = e.StartTime.UTC().Format(time.RFC3339)
			if e.CompletionTime != nil {
				took = duration.HumanDuration(e.CompletionTime.Sub(e.StartTime.Time))
			}
		}
		row := []string{number, e.Version, e.ClassRef.Name, string(e.Outcome), started, took, clean(e.ChangeCause)}
		if isOfPool {
			row = append([]string{e.Of}, row...)
		}
		t.rows = append(t.rows, row)
	}
	s.table(out, t)
	return out.String()
}

func (s Screen) revision(out *strings.Builder, e action.HistoryEntry) {
	of := ""
	if e.Of != "" {
		of = " of " + view.Ref{Kind: view.MachineDeployment, Name: e.Of}.String()
	}
	fmt.Fprintf(out, "%s\n", s.bold(fmt.Sprintf("revision %d%s", e.Revision.Revision, of)))
	lines := [][2]string{
		{"Class", e.ClassRef.Kind + " " + e.ClassRef.Name}, {"Version", e.Version}, {"Cluster", e.ClusterRef.Kind + " " + e.ClusterRef.Name},
		{"Outcome", string(e.Outcome)}, {"Change cause", clean(e.ChangeCause)},
	}
	if e.FailureDomain != nil {
		lines = append(lines, [2]string{"Failure domain", *e.FailureDomain})
	}
	if e.StartTime != nil {
		lines = append(lines, [2]string{"Started", e.StartTime.UTC().Format(time.RFC3339)})
	}
	if e.CompletionTime != nil {
		lines = append(lines, [2]string{"Completed", e.CompletionTime.UTC().Format(time.RFC3339)})
	}
	for _, k := range slices.Sorted(maps.Keys(e.Labels)) {
		lines = append(lines, [2]string{"Label", k + "=" + string(e.Labels[k])})
	}
	for _, k := range slices.Sorted(maps.Keys(e.Annotations)) {
		lines = append(lines, [2]string{"Annotation", k + "=" + clean(e.Annotations[k])})
	}
	for _, l := range lines {
		if v := strings.TrimSpace(l[1]); v != "" {
			fmt.Fprintf(out, "  %-15s %s\n", l[0]+":", v)
		}
	}
}
