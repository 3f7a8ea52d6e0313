package main

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestAnInterruptedStart(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		timeout      time.Duration
		// printed is the output of the supervisor, and err is in the error of stop.
		printed, err string
	}{
		{"WaitsUntilTheSupervisorHasStoppedItsComponents", `trap 'echo stopped; exit 0' TERM; echo up; while :; do sleep 0.01; done`, time.Minute, "stopped", ""},
		{"IsNoErrorIfTheSupervisorFails", `trap 'exit 1' TERM; echo up; while :; do sleep 0.01; done`, time.Minute, "", ""},
		{"NamesASupervisorThatDoesNotEnd", `trap '' TERM; echo up; while :; do sleep 0.01; done`, time.Millisecond, "", "still runs after 1ms"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, w := io.Pipe()
			cmd := exec.Command("sh", "-c", tc.script)
			cmd.Stdout = w
			c, err := start(cmd)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.process.Kill() })
			lines := bufio.NewScanner(r)
			if !lines.Scan() || lines.Text() != "up" {
				t.Fatalf("the trap is not set: %v", lines.Err())
			}
			last := make(chan string, 1)
			go func() {
				text := ""
				for lines.Scan() {
					text = lines.Text()
				}
				last <- text
			}()
			err = c.stop(tc.timeout)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if err == nil {
				_ = w.Close()
				if text := <-last; text != tc.printed {
					t.Errorf("it printed %q, want %q", text, tc.printed)
				}
			}
		})
	}
}
