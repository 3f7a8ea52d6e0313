package supervisor

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-dev/drover/cluster/internal/layout"
	"github.com/drover-dev/drover/cluster/internal/process"
)

func testDir(t *testing.T) layout.Dir {
	t.Helper()
	d, err := layout.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAStartWithoutBinariesNamesWhatIsMissing(t *testing.T) {
	bin := t.TempDir()
	err := Run(context.Background(), Options{Dir: testDir(t), Bin: bin}, log.New(io.Discard, "", 0))
	failed := &stepError{}
	if !errors.As(err, &failed) || failed.step != "binaries" || !strings.Contains(err.Error(), filepath.Join(bin, "drover-kube")) {
		t.Errorf("got %v, want an error of step binaries that names drover-kube's path", err)
	}
}

func TestABadBinaryOfTheTargetClusterIsNamed(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"drover-kube", "crossplane", "crossplane-manifests"} {
		if err := os.WriteFile(filepath.Join(bin, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	missing := filepath.Join(bin, "v1.37.2", "drover-kube")
	cases := map[string]struct {
		target bool
		kube   string
		want   string
	}{
		"Missing":               {target: true, kube: missing, want: missing + " is missing"},
		"WithoutATargetCluster": {kube: filepath.Join(bin, "drover-kube"), want: "--target-kube must be together with --target"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := Run(context.Background(), Options{Dir: testDir(t), Bin: bin, Target: tc.target, TargetKube: tc.kube}, log.New(io.Discard, "", 0))
			failed := &stepError{}
			if !errors.As(err, &failed) || failed.step != "binaries" || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error of step binaries with %q", err, tc.want)
			}
		})
	}
}

func TestAStepReportsTheCauseOfItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &supervisor{Options: Options{Dir: layout.Dir(t.TempDir())}, group: &process.Group{}, progress: newProgress()}
		p := process.New(process.Spec{Name: Kubernetes}, nil)
		if err := s.step(t.Context(), Kubernetes, func(context.Context) (string, error) {
			time.Sleep(waitsPeriod + time.Second)
			s.group.Add(p)
			time.Sleep(waitsPeriod)
			return "ready after all", nil
		}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range s.progress.events {
			got = append(got, e.Step+": "+e.Message)
		}
		want := []string{"kubernetes: not ready yet: its process is not started yet", "kubernetes: not ready yet: Stopped", "kubernetes: ready after all"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestADirectoryHasOneSupervisor(t *testing.T) {
	dir := testDir(t)
	client := NewClient(dir)
	if client.Running() {
		t.Fatal("running before anything was started")
	}
	lock, err := takeLock(dir.Lock())
	if err != nil {
		t.Fatal(err)
	}
	if !client.Running() {
		t.Error("a supervisor holds the lock, but is not seen")
	}
	if _, err := takeLock(dir.Lock()); err == nil {
		t.Error("a second supervisor took the lock")
	}
	lock.Close()
	if client.Running() {
		t.Error("the supervisor is gone, but is still seen")
	}
}

func TestAClientOfADeadSupervisorSaysThatItIsNotRunning(t *testing.T) {
	dir := testDir(t)
	if _, err := NewClient(dir).Status(context.Background()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("no socket: got %v", err)
	}
	l, err := listen(dir.Socket())
	if err != nil {
		t.Fatal(err)
	}
	l.(interface{ SetUnlinkOnClose(bool) }).SetUnlinkOnClose(false)
	l.Close()
	if _, err := NewClient(dir).Status(context.Background()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("a socket that was left behind: got %v", err)
	}
}

func TestFollowersGetAllEventsUntilTheStartEnded(t *testing.T) {
	p := newProgress()
	p.add(Event{Step: "one"})
	first := make(chan struct{})
	go func() {
		<-first
		p.add(Event{Step: "two"})
		p.add(Event{Step: "three", Ready: true})
		p.add(Event{Step: "four"})
	}()
	var steps []string
	err := p.follow(t.Context(), func(e Event) error {
		if e.Step == "one" {
			close(first)
		}
		steps = append(steps, e.Step)
		return nil
	})
	if got := strings.Join(steps, " "); err != nil || got != "one two three" {
		t.Errorf("got %q, %v, want one two three", got, err)
	}
}
