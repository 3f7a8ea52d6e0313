package hypervisor

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/drover-dev/drover/test/patience"
)

// daemonCommand makes the test binary a daemon that starts a VM, prints when it runs, and waits to
// be killed.
const daemonCommand = "daemon"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == GuardCommand {
		os.Exit(RunGuard(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == daemonCommand {
		if _, err := self().Start(".", nil, os.Args[2:], os.Stdout); err != nil {
			fmt.Println(err)
		}
		select {}
	}
	os.Exit(m.Run())
}

func self() Guard {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Guard{Path: path}
}

// family is a program with a child that outlives it, as User Mode Linux has. Each of the two writes
// its process ID to a file.
const family = `echo $$ >parent; sh -c 'echo $$ >child; exec sleep 600' & while [ ! -s child ]; do sleep 0.01; done; echo runs; %s`

type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	patience.Until(t, what, is)
}

// gone waits until neither the parent nor the child runs.
func gone(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"parent", "child"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		pid := strings.TrimSpace(string(b))
		eventually(t, name+" is gone", func() bool {
			stat, err := os.ReadFile("/proc/" + pid + "/stat")
			// A zombie has ended, and only waits for its parent.
			return err != nil || strings.Contains(string(stat), ") Z ")
		})
	}
}

func TestStopEndsAllProcesses(t *testing.T) {
	dir, out := t.TempDir(), &output{}
	m, err := self().Start(dir, nil, []string{"sh", "-c", fmt.Sprintf(family, "wait")}, out)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the VM runs", func() bool { return strings.Contains(out.String(), "runs") })
	m.Stop()
	gone(t, dir)
	m.Stop() // A second Stop has no effect.
}

func TestEndOfTheKernelEndsItsProcesses(t *testing.T) {
	dir := t.TempDir()
	m, err := self().Start(dir, nil, []string{"sh", "-c", fmt.Sprintf(family, "exit 3")}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	<-m.Done()
	gone(t, dir)
	if m.Err() == nil || !strings.Contains(m.Err().Error(), "exit status 3") {
		t.Errorf("got %v, want exit status 3", m.Err())
	}
}

func TestDeathOfTheDaemonEndsAllProcesses(t *testing.T) {
	dir, out := t.TempDir(), &output{}
	daemon := exec.Command(self().Path, daemonCommand, "sh", "-c", fmt.Sprintf(family, "wait"))
	daemon.Dir, daemon.Stdout = dir, out
	// A supervisor kills the whole process group.
	daemon.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the VM runs", func() bool { return strings.Contains(out.String(), "runs") })
	if err := syscall.Kill(-daemon.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = daemon.Wait()
	gone(t, dir)
}

func TestStartReportsAMissingProgram(t *testing.T) {
	out := &output{}
	m, err := self().Start(t.TempDir(), nil, []string{"/does/not/exist"}, out)
	if err != nil {
		t.Fatal(err)
	}
	<-m.Done()
	if m.Err() == nil || !strings.Contains(out.String(), "/does/not/exist") {
		t.Errorf("got error %v and console %q", m.Err(), out)
	}
}
