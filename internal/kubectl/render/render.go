// Package render writes the results of the other packages of kubectl drover as text for a terminal. Colors
// only repeat the text, and are left out if NO_COLOR is set or the output is no terminal.
package render

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
)

// A Screen is the output of a command.
type Screen struct {
	// Width of the lines, 0 for no limit.
	Width int
	// Height is how many lines fit, 0 for no limit: status leaves out Machines that run.
	Height int
	// Now is the time that ages count to. The zero time leaves ages out.
	Now    time.Time
	styles *lipgloss.Renderer
}

// NewScreen of an output. The renderer of lipgloss finds out which colors the output has.
func NewScreen(out io.Writer, width, height int, now time.Time) Screen {
	return Screen{Width: width, Height: height, Now: now, styles: lipgloss.NewRenderer(out)}
}

// IsTerminal reports whether a stream is a terminal that knows escape sequences, so that text can be replaced in place.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// Plain is a screen without colors.
func Plain(width int, now time.Time) Screen { return NewScreen(io.Discard, width, 0, now) }

func (s Screen) bold(text string) string { return s.styles.NewStyle().Bold(true).Render(text) }

func (s Screen) dim(text string) string { return s.styles.NewStyle().Faint(true).Render(text) }

func (s Screen) colour(c, text string) string {
	return s.styles.NewStyle().Foreground(lipgloss.Color(c)).Render(text)
}

// ANSI colors.
const (
	red    = "1"
	green  = "2"
	yellow = "3"
	cyan   = "6"
)

func (s Screen) state(st diagnosis.State, text string) string {
	switch st {
	case diagnosis.Complete:
		return s.colour(green, text)
	case diagnosis.InProgress:
		return s.colour(yellow, text)
	case diagnosis.NeedsUser:
		return s.colour(red, text)
	}
	return text
}

// age of a time, "" without a clock.
func (s Screen) age(t time.Time) string {
	if s.Now.IsZero() || t.IsZero() {
		return ""
	}
	return duration.HumanDuration(s.Now.Sub(t))
}

// wrap text at the width, each line behind an indent. It breaks at spaces alone: a name that is cut
// cannot be copied.
func (s Screen) wrap(indent int, text string) string {
	pad := strings.Repeat(" ", indent)
	if s.Width <= indent+20 {
		return pad + text
	}
	var lines []string
	line := ""
	for _, word := range strings.Split(text, " ") {
		switch {
		case line == "":
			line = word
		case ansi.StringWidth(line)+1+ansi.StringWidth(word) <= s.Width-indent:
			line += " " + word
		default:
			lines = append(lines, pad+line)
			line = word
		}
	}
	return strings.Join(append(lines, pad+line), "\n")
}

// labeled wraps text behind a label, which stands in front of its first line.
func (s Screen) labeled(indent int, label, text string, style func(string) string) string {
	out := strings.TrimLeft(s.wrap(indent+len(label)+1, text), " ")
	return strings.Repeat(" ", indent) + style(label) + " " + out
}

// A table of rows. The first row is the head.
type table struct {
	indent int
	rows   [][]string
	// styles of the cells of a column, applied after their width is known.
	styles map[int]func(string) string
	// drop are columns that are left out, in this order, if the table is too wide.
	drop []int
}

func (s Screen) table(out *strings.Builder, t table) {
	hidden := map[int]bool{}
	widths := t.widths()
	for _, c := range t.drop {
		if s.Width == 0 || t.indent+total(widths, hidden) <= s.Width {
			break
		}
		hidden[c] = true
	}
	// If the table is still too wide, the first column is cut, which has names: their ends differ.
	if over := t.indent + total(widths, hidden) - s.Width; s.Width > 0 && over > 0 && len(widths) > 0 {
		widths[0] = max(12, widths[0]-over)
	}
	for i, row := range t.rows {
		line := ""
		for c, cell := range row {
			if hidden[c] {
				continue
			}
			cell = cut(cell, widths[c])
			padded := fmt.Sprintf("%-*s", widths[c]+2, cell)
			if style := t.styles[c]; style != nil && i > 0 {
				padded = style(cell) + padded[len(cell):]
			}
			line += padded
		}
		fmt.Fprintln(out, strings.Repeat(" ", t.indent)+strings.TrimRight(line, " "))
	}
}

func (t table) widths() []int {
	var out []int
	for _, row := range t.rows {
		for c, cell := range row {
			if c == len(out) {
				out = append(out, 0)
			}
			out[c] = max(out[c], len(cell))
		}
	}
	return out
}

// total width of the columns that are shown, without the gap behind the last one.
func total(widths []int, hidden map[int]bool) int {
	n := -2
	for c, w := range widths {
		if !hidden[c] {
			n += w + 2
		}
	}
	return n
}

// cut a name in the middle: its begin has the pool, and its end sets Machines apart.
func cut(cell string, width int) string {
	if len(cell) <= width || width < 8 {
		return cell
	}
	keep := width - 2
	return cell[:keep/2] + ".." + cell[len(cell)-(keep-keep/2):]
}

// clip a line at the width.
func (s Screen) clip(line string) string {
	if s.Width == 0 {
		return line
	}
	return ansi.Truncate(line, s.Width, "..")
}

// clean removes control characters from text: users, Nodes and target clusters write parts of it, and an escape
// sequence could change the output of the terminal.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return ' '
		case unicode.IsControl(r), r == '\u2028', r == '\u2029', unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, text)
}
