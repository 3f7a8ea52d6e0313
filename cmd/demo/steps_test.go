package main

import (
	"strings"
	"testing"

	"github.com/charmbracelet/lipgloss"
)

func TestTheStepsOfTheInstallation(t *testing.T) {
	const green, end = "\x1b[32m", "\x1b[0m"
	for _, tc := range []struct {
		name  string
		width int
		// env is set to 1.
		env  string
		want string
	}{
		{"AreLinesOutsideOfATerminal", 0, "CLICOLOR_FORCE", "applying a\napplying b\n"},
		{"AreABarOnATerminal", 80, "CLICOLOR_FORCE", "\r\x1b[K[--------------------] applying a\r\x1b[K[" + green + "##########" + end + "----------] applying b\r\x1b[K"},
		{"HaveNoColourIfTheUserWantsNone", 80, "NO_COLOR", "\r\x1b[K[--------------------] applying a\r\x1b[K[##########----------] applying b\r\x1b[K"},
		{"AreCutOnANarrowTerminal", 28, "NO_COLOR", "\r\x1b[K[--------------------] appl\r\x1b[K[##########----------] appl\r\x1b[K"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("NO_COLOR", "")
			t.Setenv("CLICOLOR_FORCE", "")
			t.Setenv(tc.env, "1")
			out := &strings.Builder{}
			s := &steps{out: out, styles: lipgloss.NewRenderer(out), width: tc.width, total: 2}
			s.next("applying %s", "a")
			s.next("applying %s", "b")
			s.end()
			if got := out.String(); got != tc.want {
				t.Errorf("got\n%q\nwant\n%q", got, tc.want)
			}
		})
	}
}

func TestAStepShowsWhatItWaitsFor(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	const progress = "   0.1s  Configuration drover: drover:v0.1.0\n  15.0s  waits for a/provider-drover: not healthy: cannot pull\n"
	for _, tc := range []struct {
		name  string
		width int
		want  string
	}{
		{"AsALineOutsideOfATerminal", 0, "installing a\n  waits for a/provider-drover: not healthy: cannot pull\n"},
		{"InTheBarOnATerminal", 120, "\r\x1b[K[--------------------] installing a\r\x1b[K[--------------------] installing a: waits for a/provider-drover: not healthy: cannot pull"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := &strings.Builder{}
			s := &steps{out: out, styles: lipgloss.NewRenderer(out), width: tc.width, total: 2}
			s.next("installing %s", "a")
			w := s.waits()
			// A pipe cuts lines anywhere.
			for _, part := range []string{progress[:60], progress[60:]} {
				if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
					t.Fatal(n, err)
				}
			}
			if got := out.String(); got != tc.want {
				t.Errorf("got\n%q\nwant\n%q", got, tc.want)
			}
		})
	}
}

func TestRowsOfATerminal(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		width      int
		want       int
	}{
		{"ALineThatFitsIsOne", "12345\n", 5, 1},
		{"ALineThatIsTooLongIsWrapped", "123456\n", 5, 2},
		{"ColoursTakeNoRoom", "\x1b[32m12345\x1b[0m\n", 5, 1},
		{"LinesAreAdded", "1\n12345678901\n\n", 5, 5},
		{"NothingIsWrappedWithoutAWidth", "123456\n", 0, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := rows(tc.text, tc.width); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

func TestTheCommandsToTryNextAreColoured(t *testing.T) {
	for _, tc := range []struct {
		name, env    string
		want, refuse string
	}{
		{"OnATerminalWithColours", "CLICOLOR_FORCE", "  \x1b[36mkubectl drover status\x1b[0m\n", ""},
		{"NotIfTheUserWantsNone", "NO_COLOR", "\n  kubectl drover status\n", "\x1b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("NO_COLOR", "")
			t.Setenv("CLICOLOR_FORCE", "")
			t.Setenv(tc.env, "1")
			out := &strings.Builder{}
			if err := whatNext(out, "bin", "kubeconfig"); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); !strings.Contains(got, tc.want) || tc.refuse != "" && strings.Contains(got, tc.refuse) {
				t.Errorf("got\n%q\nwant\n%q", got, tc.want)
			}
		})
	}
}
