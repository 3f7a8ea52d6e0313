package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

// entriesShown of a timeline, the newest.
const entriesShown = 40

// Why explains one object: cause and cure first.
func (s Screen) Why(a diagnosis.Answer) string {
	out := &strings.Builder{}
	s.head(out, a.Ref, a.State, false)
	switch {
	case len(a.Findings) > 0:
		s.findings(out, a.Findings)
	case a.State == diagnosis.Complete:
		fmt.Fprintln(out, "  Nothing is wrong.")
	case a.Doing == "":
		fmt.Fprintln(out, "  Nothing is wrong: it is on its way.")
	}
	if a.Doing != "" {
		fmt.Fprintln(out, s.labeled(2, "Now:", clean(a.Doing), s.bold))
	}
	s.facts(out, a.Facts)
	s.conditions(out, a.Conditions)
	s.timeline(out, a.Timeline)
	s.console(out, a.Console)
	s.unread(out, a.Unread)
	return out.String()
}

func (s Screen) section(out *strings.Builder, name string) {
	fmt.Fprintf(out, "\n%s\n", s.bold(name))
}

func (s Screen) facts(out *strings.Builder, facts []diagnosis.Fact) {
	if len(facts) == 0 {
		return
	}
	s.section(out, "Facts")
	width := 0
	for _, f := range facts {
		width = max(width, len(f.Name))
	}
	for _, f := range facts {
		fmt.Fprintln(out, s.labeled(2, fmt.Sprintf("%-*s", width+1, f.Name+":"), clean(f.Value), s.dim))
	}
}

// conditions, the ones with a message with it.
func (s Screen) conditions(out *strings.Builder, conditions []metav1.Condition) {
	if len(conditions) == 0 {
		return
	}
	s.section(out, "Conditions")
	sorted := slices.Clone(conditions)
	slices.SortFunc(sorted, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	for _, c := range sorted {
		line := view.ConditionText(c)
		if c.Message != "" {
			line += ": " + c.Message
		}
		fmt.Fprintln(out, s.hanging(2, clean(line)))
	}
}

// hanging wraps text with its further lines deeper.
func (s Screen) hanging(indent int, text string) string {
	lines := strings.Split(s.wrap(indent+4, text), "\n")
	lines[0] = lines[0][4:]
	return strings.Join(lines, "\n")
}

func (s Screen) timeline(out *strings.Builder, entries []diagnosis.Entry) {
	if len(entries) == 0 {
		return
	}
	s.section(out, "Timeline")
	if left := len(entries) - entriesShown; left > 0 {
		fmt.Fprintf(out, "  %d older entries; -o json has all\n", left)
		entries = entries[left:]
	}
	for _, e := range entries {
		text := fmt.Sprintf("%s  %s  %s", e.Time.UTC().Format(time.TimeOnly), e.Ref, e.Reason)
		if e.Message != "" {
			text += ": " + e.Message
		}
		if e.Count > 1 {
			text += fmt.Sprintf(" (x%d)", e.Count)
		}
		text = s.hanging(2, clean(text))
		if e.Warning {
			text = s.colourLines(yellow, text)
		}
		fmt.Fprintln(out, text)
	}
}

// colourLines one by one: lipgloss pads the lines of one text to the same width.
func (s Screen) colourLines(c, text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = s.colour(c, lines[i])
	}
	return strings.Join(lines, "\n")
}

func (s Screen) console(out *strings.Builder, lines []string) {
	if len(lines) == 0 {
		return
	}
	s.section(out, "Console of the VM (end)")
	for _, l := range lines {
		fmt.Fprintf(out, "  | %s\n", clean(l))
	}
}

// Tree of objects.
func (s Screen) Tree(branches []diagnosis.Branch) string {
	out := &strings.Builder{}
	for _, b := range branches {
		s.branch(out, b, "", "")
	}
	return out.String()
}

func (s Screen) branch(out *strings.Builder, b diagnosis.Branch, first, rest string) {
	line := first + s.state(b.State, b.Ref.String())
	if b.Note != "" {
		line += "  " + s.dim(clean(b.Note))
	}
	fmt.Fprintln(out, s.clip(line))
	for i, below := range b.Branches {
		if i == len(b.Branches)-1 {
			s.branch(out, below, rest+"`- ", rest+"   ")
		} else {
			s.branch(out, below, rest+"|- ", rest+"|  ")
		}
	}
}
