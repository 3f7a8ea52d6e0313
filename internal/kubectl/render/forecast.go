package render

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
	"github.com/drover-dev/drover/internal/kubectl/forecast"
)

// namesShown is how many Machines a line names. The rest is counted.
const namesShown = 10

// Forecasts of changes.
func (s Screen) Forecasts(all []forecast.Forecast) string {
	out := &strings.Builder{}
	for i, f := range all {
		if i > 0 {
			fmt.Fprintln(out)
		}
		s.forecast(out, f)
	}
	return out.String()
}

func (s Screen) forecast(out *strings.Builder, f forecast.Forecast) {
	fmt.Fprintf(out, "%s  %s\n", s.bold(f.Ref.String()), s.dim("namespace "+f.Namespace))
	if len(f.Fields) == 0 {
		fmt.Fprintln(out, "  Nothing changes in the spec.")
	}
	for _, c := range f.Fields {
		text := fmt.Sprintf("%s: %s -> %s", c.Path, orNone(c.From), orNone(c.To))
		fmt.Fprintln(out, s.hanging(2, clean(text)+"  "+s.effect(c.Effect)))
	}
	s.blocked(out, f.Blocks)
	for _, line := range lines(f) {
		fmt.Fprintln(out, s.hanging(2, line))
	}
	if f.Aging != "" {
		fmt.Fprintln(out, s.hanging(2, f.Aging+"."))
	}
	s.health(out, f.Health)
	if f.AtLeast.Duration > 0 {
		fmt.Fprintln(out, s.hanging(2, fmt.Sprintf("It takes at least %s: %s.", f.AtLeast.Duration, f.Basis)))
	}
}

// health as a table of conditions and their actions.
func (s Screen) health(out *strings.Builder, rules []forecast.HealthRule) {
	if len(rules) == 0 {
		return
	}
	fmt.Fprintln(out, "  Conditions of its Nodes lead to:")
	t := table{rows: [][]string{{"  CONDITION", "STATUS", "ACTION", "AFTER", "PROFILE"}}}
	for _, r := range rules {
		after := "at once"
		if r.After != nil {
			after = r.After.Duration.String()
		}
		t.rows = append(t.rows, []string{"  " + clean(r.Condition), clean(r.Status), string(r.Action), after, cmp.Or(clean(r.Profile), "-")})
	}
	s.table(out, t)
}

func orNone(v string) string {
	if v == "" {
		return "(none)"
	}
	return v
}

func (s Screen) effect(e forecast.Effect) string {
	text := "(" + string(e) + ")"
	if e == forecast.Rolls {
		return s.colour(yellow, text)
	}
	return s.dim(text)
}

func (s Screen) blocked(out *strings.Builder, blocks []forecast.Block) {
	for _, b := range blocks {
		state := diagnosis.InProgress
		if b.All {
			state = diagnosis.NeedsUser
		}
		fmt.Fprintln(out, s.labeled(2, "Blocked, "+b.Reason+":", clean(strings.TrimSpace(b.Message+". "+b.Do)), func(l string) string { return s.state(state, l) }))
	}
}

// lines returns the lines about the affected Machines.
func lines(f forecast.Forecast) []string {
	var out []string
	add := func(names []string, format string) {
		if len(names) > 0 {
			out = append(out, fmt.Sprintf(format, machines(len(names)))+": "+shown(names)+".")
		}
	}
	pace := ""
	switch {
	case f.Strategy == "Recreate":
		pace = ", all at once: none is available in between"
	case f.AtATime > 0:
		pace = fmt.Sprintf(", at most %d at a time", f.AtATime)
	}
	add(f.Replaced, "%s replaced"+pace+", in this order")
	add(f.Updated, "%s updated in place"+pace+", in this order")
	add(f.Deleted, "%s deleted without a replacement, in this order")
	add(f.Waiting, "%s of an old template and not replaced by this change")
	if f.Created > 0 {
		out = append(out, machines(int(f.Created))+" created.")
	}
	if f.Follows != "" {
		out = append(out, "It begins when the rollout of md/"+f.Follows+" is complete.")
	}
	for _, w := range f.Waves {
		out = append(out, w+".")
	}
	if f.Window != "" {
		out = append(out, f.Window+".")
	}
	for i, step := range f.Steps {
		var until []string
		if step.Soak.Duration > 0 {
			until = append(until, fmt.Sprintf("all of them are available for %s", step.Soak.Duration))
		}
		if len(step.Analyses) > 0 {
			until = append(until, "its analyses pass ("+strings.Join(step.Analyses, ", ")+")")
		}
		if step.Approval != "" {
			until = append(until, "a user approves it (kubectl drover rollout approve)")
		}
		out = append(out, fmt.Sprintf("Step %d of %d: %d updated, until %s.", i+1, len(f.Steps), step.Updated, strings.Join(until, " and ")))
	}
	if len(out) == 0 {
		return []string{"No Machine is created, replaced, updated or deleted."}
	}
	return append(out, fmt.Sprintf("There are at most %d Machines, those that are being deleted included, and at least %d of them are available.", f.Most, f.Least))
}

func machines(n int) string {
	if n == 1 {
		return "1 Machine is"
	}
	return fmt.Sprintf("%d Machines are", n)
}

func shown(names []string) string {
	if len(names) <= namesShown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:namesShown], ", "), len(names)-namesShown)
}
