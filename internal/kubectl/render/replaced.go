package render

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
)

// Replacements as a table, oldest first.
func (s Screen) Replacements(all []diagnosis.Replacement) string {
	if len(all) == 0 {
		return "No Machine with a Node was replaced. Scale-downs are not listed.\n"
	}
	t := table{rows: [][]string{{"NODE", "TIME", "REASON", "BY", "DRAIN", "MACHINE", "OF", "MESSAGE"}}, drop: []int{7, 6, 5}}
	orDash := func(text string) string { return cmp.Or(clean(text), "-") }
	for _, r := range all {
		drain := ""
		if r.DrainDuration != nil {
			drain = duration.HumanDuration(r.DrainDuration.Duration)
		}
		t.rows = append(t.rows, []string{
			orDash(r.Node), r.Time.UTC().Format(time.RFC3339), orDash(r.Why()), orDash(r.By()), orDash(drain), r.Machine, r.Of.String(), orDash(r.Message),
		})
	}
	out := &strings.Builder{}
	s.table(out, t)
	return out.String()
}
