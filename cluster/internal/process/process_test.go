package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestNextDelay(t *testing.T) {
	for _, tc := range []struct {
		name            string
		previous, lived time.Duration
		want            time.Duration
	}{
		{"TheFirstCrashWaitsShortly", 0, time.Second, firstDelay},
		{"TheNextCrashWaitsTwiceAsLong", firstDelay, time.Second, 2 * firstDelay},
		{"TheDelayIsBounded", maxDelay, time.Second, maxDelay},
		{"ALongLifeStartsOver", maxDelay, healthy, firstDelay},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := nextDelay(tc.previous, tc.lived); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func shell(t *testing.T, script string) Spec {
	return Spec{Name: "test", Path: "/bin/sh", Args: []string{"-c", script}, Log: filepath.Join(t.TempDir(), "log")}
}

func TestAProcessThatEndsIsStartedAgain(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "second")
	spec := shell(t, "if [ -e "+marker+" ]; then exec sleep 60; fi; touch "+marker+"; exit 3")
	spec.Ready = func(context.Context) error {
		if _, err := os.Stat(marker); err != nil {
			return errors.New("first life")
		}
		return nil
	}
	seen := make(chan Status, 100)
	p := New(spec, func(s Status) { seen <- s })
	p.Start()
	defer p.Stop()
	for {
		select {
		case s := <-seen:
			if s.State == Running && s.Restarts == 1 {
				return
			}
		case <-t.Context().Done():
			t.Fatalf("not running again: %+v", p.Status())
		}
	}
}

func TestWaitReadyGivesUpOnAProcessThatKeepsEnding(t *testing.T) {
	p := New(shell(t, "echo broken; exit 7"), nil)
	p.spec.Ready = func(context.Context) error { return errors.New("never") }
	p.Start()
	defer p.Stop()
	err := p.WaitReady(t.Context())
	if err == nil || !strings.Contains(err.Error(), "exit status 7") {
		t.Fatalf("got %v, want the exit status", err)
	}
	log, _ := os.ReadFile(p.spec.Log)
	if strings.Count(string(log), "broken") != maxExits {
		t.Errorf("log:\n%s", log)
	}
}

func TestWaitReadySaysWhatItWaitsFor(t *testing.T) {
	p := New(shell(t, "exec sleep 60"), nil)
	p.spec.Ready = func(context.Context) error { return errors.New("port is closed") }
	p.Start()
	defer p.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if err := p.WaitReady(ctx); err == nil || !strings.Contains(err.Error(), "port is closed") {
		t.Errorf("got %v", err)
	}
}

func TestStopEndsAProcessThatIgnoresSIGTERM(t *testing.T) {
	p := New(shell(t, "trap '' TERM; echo ready; while :; do sleep 1; done"), nil)
	p.spec.Grace = 100 * time.Millisecond
	p.spec.Ready = func(context.Context) error {
		if b, _ := os.ReadFile(p.spec.Log); !strings.Contains(string(b), "ready") {
			return errors.New("trap is not set")
		}
		return nil
	}
	p.Start()
	if err := p.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	pid := p.Status().PID
	p.Stop()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there: %v", pid, err)
	}
	if s := p.Status().State; s != Stopped {
		t.Errorf("state: got %s", s)
	}
}

func TestAProgramThatIsMissingIsAnError(t *testing.T) {
	p := New(Spec{Name: "test", Path: "/does/not/exist", Log: filepath.Join(t.TempDir(), "log")}, nil)
	p.Start()
	defer p.Stop()
	if err := p.WaitReady(t.Context()); err == nil || !strings.Contains(err.Error(), "keeps ending: fork/exec /does/not/exist") {
		t.Errorf("got %v", err)
	}
}

func TestAChildGetsNoCredentialsOfOurEnvironment(t *testing.T) {
	t.Setenv("SOME_SECRET", "x")
	for _, v := range Environment() {
		if strings.HasPrefix(v, "SOME_SECRET") {
			t.Error("the secret is passed on")
		}
	}
}

// The test binary starts itself as the parent that is killed.
func TestChildrenDieWithTheirParent(t *testing.T) {
	if os.Getenv("TEST_PARENT") != "" {
		p := New(shell(t, "exec sleep 60"), nil)
		p.Start()
		if err := p.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("child " + itoa(p.Status().PID) + "\n")
		time.Sleep(time.Minute)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildrenDieWithTheirParent$")
	cmd.Env = append(os.Environ(), "TEST_PARENT=1", "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child := readChild(t, out)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for ctx := t.Context(); ; {
		if !alive(child) {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("child %d outlives its parent", child)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
