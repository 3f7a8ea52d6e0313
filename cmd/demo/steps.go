package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/drover-dev/drover/internal/kubectl/render"
)

// barWidth of the installation, in columns.
const barWidth = 20

// ANSI colors. lipgloss leaves them out if NO_COLOR is set or the output is no terminal.
const (
	green = lipgloss.Color("2")
	cyan  = lipgloss.Color("6")
)

// steps are the steps of the installation. On a terminal they are one line with a bar, which is updated.
// Elsewhere each is a line.
type steps struct {
	out    io.Writer
	styles *lipgloss.Renderer
	// width of the terminal in columns, 0 for an output that is none.
	width       int
	total, done int
	// text of the step that runs.
	text string
}

func newSteps(out io.Writer, total int) *steps {
	return &steps{out: out, styles: lipgloss.NewRenderer(out), width: widthOf(out), total: total}
}

// next shows a step that begins. The one before is done.
func (s *steps) next(format string, args ...any) {
	s.text = fmt.Sprintf(format, args...)
	if s.width == 0 {
		fmt.Fprintln(s.out, s.text)
	}
	s.done++
	s.draw(s.text)
}

// draw the bar with a text, on a terminal.
func (s *steps) draw(text string) {
	if s.width == 0 {
		return
	}
	full := min(s.done-1, s.total) * barWidth / max(1, s.total)
	done := ""
	if full > 0 {
		done = s.styles.NewStyle().Foreground(green).Render(strings.Repeat("#", full))
	}
	fmt.Fprint(s.out, "\r\x1b[K"+ansi.Truncate("["+done+strings.Repeat("-", barWidth-full)+"] "+text, s.width-1, ""))
}

// waits returns a writer for the progress of the step that runs. It shows the lines about the cause of a wait.
func (s *steps) waits() io.Writer { return &waits{steps: s} }

type waits struct {
	steps *steps
	// rest is the part of a line that was written so far.
	rest string
}

func (w *waits) Write(b []byte) (int, error) {
	w.rest += string(b)
	for {
		line, rest, complete := strings.Cut(w.rest, "\n")
		if !complete {
			return len(b), nil
		}
		w.rest = rest
		_, what, isWait := strings.Cut(line, "waits for ")
		switch {
		case !isWait:
		case w.steps.width == 0:
			fmt.Fprintln(w.steps.out, "  waits for "+what)
		default:
			w.steps.draw(w.steps.text + ": waits for " + what)
		}
	}
}

// end removes the bar. It may be called twice.
func (s *steps) end() {
	if s.width > 0 && s.done > 0 {
		fmt.Fprint(s.out, "\r\x1b[K")
		s.done = 0
	}
}

// widthOf a terminal in columns, 0 for any other output.
func widthOf(out io.Writer) int {
	f, ok := out.(*os.File)
	if !ok || !render.IsTerminal(f) {
		return 0
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		return width
	}
	return 80
}

// rows counts the rows of a terminal that a text takes, each line of which ends with a newline. width is 0 if lines are
// not wrapped.
func rows(text string, width int) int {
	n := 0
	for line := range strings.Lines(text) {
		n++
		if w := ansi.StringWidth(line); width > 0 && w > width {
			n += (w - 1) / width
		}
	}
	return n
}
