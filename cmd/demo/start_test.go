package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/localplane"
)

// fake is a launcher that records the commands that it gets. status fails unless the control plane runs.
func fake(t *testing.T, runs bool, up string) (launcher, func() []string) {
	t.Helper()
	dir := t.TempDir()
	status := "exit 1"
	if runs {
		status = "exit 0"
	}
	path, log := filepath.Join(dir, "drover-cluster"), filepath.Join(dir, "log")
	script := "#!/bin/sh\necho \"$@\" >>" + log + "\ncase $1 in status) " + status + " ;; up) " + up + " ;; esac\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return launcher{path: path, dir: "instance", packages: "packages", out: &strings.Builder{}}, func() []string {
		b, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(b)), "\n")
	}
}

func TestAControlPlaneThatTheDemoStarted(t *testing.T) {
	const down = "down --dir instance"
	failed := errors.New("the Machines are not all Running")
	for _, tc := range []struct {
		name string
		// runs: the control plane ran before.
		runs bool
		// up is a script in place of the start of the control plane.
		up string
		// interrupts: the user interrupts while the demo is shown. show is its result.
		interrupts bool
		show       error
		stopped    bool
		want       string
	}{
		{name: "IsKeptIfTheDemoIsComplete"},
		{name: "IsStoppedIfTheUserInterrupts", interrupts: true, show: context.Canceled, stopped: true, want: "interrupted"},
		{name: "IsKeptIfTheDemoFails", show: failed, want: "the control plane is kept"},
		{name: "IsKeptIfItsStartFails", up: "exit 3", want: "exit status 3"},
		{name: "IsKeptIfItRanBefore", runs: true, interrupts: true, show: context.Canceled, want: "interrupted"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, log := fake(t, tc.runs, tc.up)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			err := l.inControlPlane(ctx, ctx, "bin", func(context.Context) error {
				if tc.interrupts {
					interrupt()
				}
				return tc.show
			})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if got := slices.Contains(log(), down); got != tc.stopped {
				t.Errorf("stopped %t, want %t: %q", got, tc.stopped, log())
			}
		})
	}
}

func TestADemoThatIsKeptStopsAtTheInterrupt(t *testing.T) {
	l, log := fake(t, false, "exit 0")
	l.keep = true
	interrupted, interrupt := context.WithCancel(t.Context())
	shown := false
	// The interrupt is later than the end of the demo, so that a demo that does not wait has not stopped anything.
	l.out = writer(func(text string) {
		if strings.Contains(text, "Ctrl-C stops everything") {
			if shown = true; slices.Contains(log(), "down --dir instance") {
				t.Error("the control plane is stopped before the interrupt")
			}
			interrupt()
		}
	})
	if err := l.inControlPlane(t.Context(), interrupted, "bin", func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	if !shown || !slices.Contains(log(), "down --dir instance") {
		t.Errorf("the control plane is not stopped: %q", log())
	}
}

// A writer calls itself with each text that is written.
type writer func(string)

func (w writer) Write(b []byte) (int, error) {
	w(string(b))
	return len(b), nil
}

func TestAnInterruptReachesTheLauncherWhileItStarts(t *testing.T) {
	// The launcher reports that it is interrupted, as drover-cluster does after it has stopped its processes.
	marks := t.TempDir()
	l, log := fake(t, false, "trap 'echo >"+marks+"/interrupted; exit 1' INT; echo >"+marks+"/up; while :; do sleep 0.01; done")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	go func() {
		for t.Context().Err() == nil {
			if _, err := os.Stat(filepath.Join(marks, "up")); err == nil {
				interrupt()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	err := l.inControlPlane(ctx, ctx, "bin", func(context.Context) error {
		t.Error("the demo is shown without a control plane")
		return nil
	})
	if !errors.Is(err, errInterrupted) {
		t.Errorf("error %v, want %v", err, errInterrupted)
	}
	if _, err := os.Stat(filepath.Join(marks, "interrupted")); err != nil {
		t.Errorf("the launcher was killed, and not interrupted: %v", err)
	}
	if !slices.Contains(log(), "down --dir instance") {
		t.Errorf("the control plane is not stopped: %q", log())
	}
}

func TestTheDemoHasTheRecommendedLimitsOfCrossplane(t *testing.T) {
	l, log := fake(t, false, "exit 0")
	if started, err := l.start(t.Context(), "bin"); err != nil || !started {
		t.Fatalf("started %t, %v", started, err)
	}
	limits := strings.Join(localplane.Limits, " ")
	if want := "up --dir instance --bin bin --packages packages " + limits; !slices.Contains(log(), want) {
		t.Errorf("the commands of the launcher lack %q: %q", want, log())
	}
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "\n       "+limits+"\n") {
		t.Errorf("docs/install.md does not recommend %s", limits)
	}
}
