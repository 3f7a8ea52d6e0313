package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

// subjectsShown is how many subjects of a finding are named. The rest is counted.
const subjectsShown = 3

// barWidth of the progress.
const barWidth = 20

// Status of pools, on a screen.
func (s Screen) Status(r diagnosis.Report) string {
	out := &strings.Builder{}
	for i, g := range r.Groups {
		if i > 0 {
			fmt.Fprintln(out)
		}
		s.group(out, g, len(r.Groups))
	}
	if len(r.Groups) == 0 {
		fmt.Fprintln(out, "There are no NodePools, MachineDeployments, MachineSets or Machines.")
	}
	s.unread(out, r.Unread)
	return out.String()
}

func (s Screen) unread(out *strings.Builder, unread []string) {
	for _, u := range unread {
		fmt.Fprintln(out, s.labeled(0, "Not read:", clean(u), s.dim))
	}
}

func (s Screen) group(out *strings.Builder, g diagnosis.Group, of int) {
	s.head(out, g.Ref, g.State, g.Deleting)
	c := g.Counts
	text := fmt.Sprintf("%s %d of %d available, %d updated", s.bar(c), c.Available, c.Desired, c.Updated)
	for _, n := range []struct {
		n    int32
		what string
	}{{c.Unhealthy, "unhealthy"}, {c.Terminating, "terminating"}} {
		if n.n > 0 {
			text += fmt.Sprintf(", %d %s", n.n, n.what)
		}
	}
	if about := strings.TrimSpace(g.Strategy + " " + g.Version); about != "" {
		text += "; " + about
	}
	fmt.Fprintln(out, s.wrap(2, text))
	if g.Owner != "" {
		fmt.Fprintln(out, s.labeled(2, "Owner:", clean(g.Owner), s.bold))
	}
	if g.Doing != "" && !slices.ContainsFunc(g.Findings, func(f diagnosis.Finding) bool { return f.Cause == g.Doing }) {
		fmt.Fprintln(out, s.labeled(2, "Now:", clean(g.Doing), s.bold))
	}
	if next := g.NextByAge; next != nil {
		fmt.Fprintln(out, s.labeled(2, "Next by age:", fmt.Sprintf("%s, from %s on", clean(next.Machine), next.From.UTC().Format(time.RFC3339)), s.bold))
	}
	s.findings(out, g.Findings)
	s.members(out, g.Members)
	s.machines(out, g.Machines, of)
}

func (s Screen) head(out *strings.Builder, ref view.Ref, state diagnosis.State, deleting bool) {
	text := map[diagnosis.State]string{diagnosis.Complete: "complete", diagnosis.InProgress: "in progress", diagnosis.NeedsUser: "needs a user"}[state]
	if deleting {
		text = "being deleted, " + text
	}
	fmt.Fprintf(out, "%s  %s  %s\n", s.bold(ref.String()), s.dim("namespace "+ref.Namespace), s.state(state, text))
}

// bar of the Machines that are updated and available, and of those that are only updated.
func (s Screen) bar(c diagnosis.Counts) string {
	if c.Desired <= 0 {
		return "[" + strings.Repeat("-", barWidth) + "]"
	}
	part := func(n int32) int { return int(min(n, c.Desired)) * barWidth / int(c.Desired) }
	full := part(min(c.Available, c.Updated))
	half := max(0, part(c.Updated)-full)
	return "[" + s.colour(green, strings.Repeat("#", full)) + s.colour(yellow, strings.Repeat("+", half)) + strings.Repeat("-", barWidth-full-half) + "]"
}

func (s Screen) findings(out *strings.Builder, findings []diagnosis.Finding) {
	for _, f := range findings {
		state := diagnosis.InProgress
		if f.NeedsUser {
			state = diagnosis.NeedsUser
		}
		line := fmt.Sprintf("%s  %s", s.state(state, clean(f.Reason)), subjects(f.Subjects))
		if age := s.age(f.Since.Time); age != "" {
			line += s.dim(", since " + age)
		}
		if f.Until != nil {
			line += s.dim(", until " + f.Until.UTC().Format(time.RFC3339))
		}
		fmt.Fprintln(out, s.wrap(2, line))
		fmt.Fprintln(out, s.labeled(4, "Cause:", clean(cmp.Or(f.Cause, f.Meaning)), s.bold))
		if f.Do != "" {
			fmt.Fprintln(out, s.labeled(4, "Do:", f.Do, s.bold))
		}
		for _, c := range f.Commands {
			// A command is never wrapped: it is to be copied.
			fmt.Fprintf(out, "        %s\n", s.colour(cyan, c))
		}
	}
}

func subjects(all []view.Ref) string {
	texts := []string{}
	for _, ref := range all[:min(len(all), subjectsShown)] {
		texts = append(texts, ref.String())
	}
	if more := len(all) - subjectsShown; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}

func (s Screen) members(out *strings.Builder, members []diagnosis.Member) {
	if len(members) < 2 {
		return
	}
	what := "REVISION"
	if members[0].Kind == view.MachineDeployment {
		what = "ZONE"
	}
	t := table{indent: 2, rows: [][]string{{"PART", "VERSION", what, "DESIRED", "UPDATED", "AVAILABLE"}}, drop: []int{4, 2}}
	for _, m := range members {
		c := m.Counts
		t.rows = append(t.rows, []string{m.Ref.String(), m.Version, strings.TrimPrefix(m.Note, "revision "), fmt.Sprint(c.Desired), fmt.Sprint(c.Updated), fmt.Sprint(c.Available)})
	}
	s.table(out, t)
}

// machines of a group. If they do not fit, those that run are left out first.
func (s Screen) machines(out *strings.Builder, rows []diagnosis.Row, groups int) {
	if len(rows) == 0 {
		return
	}
	shown := slices.Clone(rows)
	if s.Height > 0 {
		slices.SortStableFunc(shown, func(a, b diagnosis.Row) int { return runs(a) - runs(b) })
		shown = shown[:min(len(shown), max(3, s.Height/max(1, groups)-8))]
	}
	s.table(out, s.machineTable(shown, 2))
	if left := len(rows) - len(shown); left > 0 {
		fmt.Fprintf(out, "  and %d more Machines\n", left)
	}
}

func runs(r diagnosis.Row) int {
	if r.Phase == "Running" {
		return 1
	}
	return 0
}

// Machines as a table.
func (s Screen) Machines(rows []diagnosis.Row) string {
	out := &strings.Builder{}
	s.table(out, s.machineTable(rows, 0))
	return out.String()
}

func (s Screen) machineTable(rows []diagnosis.Row, indent int) table {
	head := []string{"MACHINE", "PHASE", "WAITS FOR", "NODE", "VERSION"}
	if !s.Now.IsZero() {
		head = append(head, "AGE")
	}
	t := table{indent: indent, rows: [][]string{head}, drop: []int{3, 4}, styles: map[int]func(string) string{1: s.phase}}
	for _, r := range rows {
		row := []string{r.Name, r.Phase, clean(cmp.Or(r.Waits, "-")), cmp.Or(r.Node, "-"), r.Version}
		if !s.Now.IsZero() {
			row = append(row, s.age(r.Created.Time))
		}
		t.rows = append(t.rows, row)
	}
	return t
}

func (s Screen) phase(phase string) string {
	switch phase {
	case "Running":
		return s.colour(green, phase)
	case "Failed", "Unknown":
		return s.colour(red, phase)
	}
	return s.colour(yellow, phase)
}
