package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/patience"
)

const asDaemon = "LOCAL_CLOUD_TEST_AS_DAEMON"

// The test binary is also the daemon, so that tests can kill it.
func TestMain(m *testing.M) {
	if os.Getenv(asDaemon) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

type daemon struct {
	*localcloud.Client
	cmd *exec.Cmd
}

var endpoint = regexp.MustCompile(`endpoint=(\S+)`)

// start runs a daemon on a directory until it is killed or the test ends.
func start(t *testing.T, dir string) *daemon {
	t.Helper()
	cmd := exec.Command(os.Args[0], "--dir="+dir, "--listen=127.0.0.1:0", "--boot-time=0s")
	cmd.Env = append(os.Environ(), asDaemon+"=1")
	out, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	d := &daemon{cmd: cmd}
	t.Cleanup(d.kill)

	found := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if m := endpoint.FindStringSubmatch(lines.Text()); m != nil {
				found <- m[1]
			}
		}
		close(found)
	}()
	select {
	case url, ok := <-found:
		if !ok {
			t.Fatal("the daemon ended before it was ready")
		}
		token, err := readToken(filepath.Join(dir, "token"))
		must(t, err)
		d.Client, err = localcloud.NewClient(url, token)
		must(t, err)
	case <-patience.Over():
		t.Fatal("the daemon is never ready")
	}
	return d
}

// kill sends SIGKILL, and waits until the process has ended.
func (d *daemon) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

func TestVMsSurviveTheDaemonsDeath(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	d := start(t, dir)
	vm, err := d.CreateVM(ctx, localcloud.CreateVMRequest{Name: "a", Image: localcloud.ImageDebian12, Size: localcloud.SizeSmall,
		Tags: map[string]string{"k": "v"}})
	must(t, err)
	d.kill()

	d = start(t, dir)
	got, err := d.GetVM(ctx, vm.ID)
	must(t, err)
	if got.Name != "a" || got.Tags["k"] != "v" || got.State != localcloud.StateRunning {
		t.Errorf("VM after restart: %+v", got)
	}
}

// A kill during many creations loses no VM whose creation was answered, and creates no name twice.
func TestAKillInTheMidstOfCreationsLosesAndDoublesNone(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	d := start(t, dir)
	answered := make(chan string, 1000)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 1000 {
			name := "vm" + time.Duration(i).String()
			if _, err := d.CreateVM(ctx, localcloud.CreateVMRequest{Name: name, Image: localcloud.ImageDebian12, Size: localcloud.SizeSmall}); err != nil {
				return
			}
			answered <- name
		}
	}()
	for range 20 {
		<-answered
	}
	d.kill()
	<-done
	want := 20 + len(answered)
	if want == 1000 {
		t.Fatal("the kill came too late to show anything")
	}

	vms, err := start(t, dir).ListVMs(ctx, localcloud.ListVMsOptions{})
	must(t, err)
	count := map[string]int{}
	for _, vm := range vms {
		if count[vm.Name]++; count[vm.Name] > 1 {
			t.Errorf("VM %s is there %d times", vm.Name, count[vm.Name])
		}
	}
	// The kill can prevent one answer: the VM of that creation may exist or not.
	if len(vms) != want && len(vms) != want+1 {
		t.Errorf("%d VMs after %d answered creations", len(vms), want)
	}
}

func TestASecondDaemonIsKeptOutOfADirectory(t *testing.T) {
	dir := t.TempDir()
	start(t, dir)
	cmd := exec.Command(os.Args[0], "--dir="+dir, "--listen=127.0.0.1:0")
	cmd.Env = append(os.Environ(), asDaemon+"=1")
	out, err := cmd.CombinedOutput()
	if want := "another local cloud runs in it"; err == nil || !regexp.MustCompile(want).Match(out) {
		t.Errorf("error %v, output %s, want %q", err, out, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
