package render_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
	"github.com/drover-dev/drover/internal/kubectl/render"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func report(machines int) diagnosis.Report {
	g := diagnosis.Group{Ref: view.Ref{Kind: view.MachineDeployment, Namespace: "team", Name: "workers"}, State: diagnosis.NeedsUser, Counts: diagnosis.Counts{Desired: 4, Updated: 3, Available: 2}}
	g.Findings = []diagnosis.Finding{{
		Subjects: []view.Ref{g.Ref}, Reason: "ClassNotFound", Cause: "there is no class \x1b[2J\x1b]0;owned\x07\u202e" + strings.Repeat("and a long text ", 12),
		Do: "Create the class.", Commands: []string{"kubectl drover why md/workers -n team"},
	}}
	for i := range machines {
		g.Machines = append(g.Machines, diagnosis.Row{
			Ref: view.Ref{Kind: view.Machine, Namespace: "team", Name: "workers-" + strings.Repeat("x", 40) + string(rune('a'+i%26))}, Phase: "Running", Node: "node-" + strings.Repeat("y", 40),
			Version: "v1.35.4", Created: metav1.NewTime(now.Add(-time.Hour)),
		})
	}
	return diagnosis.Report{State: diagnosis.NeedsUser, Groups: []diagnosis.Group{g}}
}

func TestNoLineIsWiderThanTheScreen(t *testing.T) {
	for _, width := range []int{80, 120} {
		for _, line := range strings.Split(render.Plain(width, now).Status(report(3)), "\n") {
			if w := ansi.StringWidth(line); w > width {
				t.Errorf("width %d: %d columns: %s", width, w, line)
			}
		}
	}
}

func TestOutputThatIsNoTerminalHasNoEscapeSequence(t *testing.T) {
	out := render.NewScreen(&bytes.Buffer{}, 0, 0, now).Status(report(2))
	if strings.ContainsAny(out, "\x1b\x07\u202e") {
		t.Errorf("%q", out)
	}
}

func TestTextOfOthersCannotWriteEscapeSequences(t *testing.T) {
	a := diagnosis.Answer{
		Ref: view.Ref{Kind: view.Machine, Namespace: "team", Name: "w"}, Console: []string{"boot \x1b[31mred"}, Facts: []diagnosis.Fact{{Name: "Node", Value: "\x1b[2Jn"}},
		Conditions: []metav1.Condition{{Type: "Valid", Status: "False", Reason: "R", Message: "\x1b]8;;http://x\x07link"}},
		Timeline:   []diagnosis.Entry{{Time: metav1.NewTime(now), Ref: view.Ref{Kind: "Node", Name: "n"}, Reason: "R", Message: "a\u009b31mb"}},
	}
	if out := render.Plain(100, now).Why(a); strings.ContainsAny(out, "\x1b\x07\u009b") {
		t.Errorf("%q", out)
	}
}

func TestOneScreenLeavesOutMachinesThatRun(t *testing.T) {
	r := report(60)
	r.Groups[0].Machines[59].Phase = "Failed"
	out := render.NewScreen(&bytes.Buffer{}, 100, 24, now).Status(r)
	if n := strings.Count(out, "\n"); n > 30 {
		t.Errorf("%d lines", n)
	}
	if !strings.Contains(out, "Failed") || !strings.Contains(out, "more Machines") {
		t.Errorf("the Machine that failed is not shown:\n%s", out)
	}
}
