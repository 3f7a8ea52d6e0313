package real

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/drover-dev/drover/cluster/cloud/internal/hypervisor"
	"github.com/drover-dev/drover/cluster/cloud/internal/network"
	"github.com/drover-dev/drover/test/patience"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == hypervisor.GuardCommand {
		os.Exit(hypervisor.RunGuard(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// script is a hypervisor whose VMs are shell scripts.
type script struct {
	text string
	// check returns the problem that the probe of this number finds, counted from 1.
	check func(probe int64) error
	// probes counts the probes.
	probes *atomic.Int64
}

func (script) Name() string { return "script" }
func (s script) Check(hypervisor.Image) error {
	if s.probes == nil {
		return nil
	}
	probe := s.probes.Add(1)
	if s.check == nil {
		return nil
	}
	return s.check(probe)
}
func (script) Protocol() network.Protocol { return network.Packets }
func (s script) Start(vm hypervisor.VM, console io.Writer) (*hypervisor.Machine, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text := "KERNEL='" + strings.Join(vm.Arguments, " ") + "'; " + s.text
	if slices.Contains(vm.Arguments, "init=/usr/local/sbin/boot-probe") {
		text = "echo 'boot-probe: the kernel runs programs'; sleep 600"
	}
	return hypervisor.Guard{Path: self}.Start(vm.Dir, nil, []string{"sh", "-c", text}, console)
}

// host records the calls of a VM.
type host struct {
	mu     sync.Mutex
	lines  []string
	failed []string
	// noMirror is what MirrorFails returns.
	noMirror bool
}

func (h *host) MirrorFails() bool { return h.noMirror }

func (h *host) Console(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, fmt.Sprintf(format, args...))
}

func (h *host) Fail(message string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = append(h.failed, message)
}

func (h *host) console() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.lines, "\n")
}

func (h *host) failures() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.failed)
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	patience.Until(t, what, is)
}

func machinesWith(t *testing.T, dir string, h ...hypervisor.Hypervisor) *Machines {
	t.Helper()
	m := New(Options{Dir: dir, Images: t.TempDir(), Mirror: t.TempDir(), Hypervisors: h})
	t.Cleanup(m.Close)
	return m
}

var vm = VM{ID: "vm-1", Name: "w1", Image: "debian-12-real", IP: "10.200.0.10", CPUs: 1, MemoryMiB: 256}

func TestAVMRunsUntilItIsDeleted(t *testing.T) {
	dir, h := t.TempDir(), &host{}
	m := machinesWith(t, dir, script{text: `last=$(cat boots 2>/dev/null); echo again >>boots; printf '\033[32mOK\033[0m booted %s\r\n\n' "$last"; sleep 600`})
	m.Start(vm, h)
	m.Start(vm, h) // It runs already.
	eventually(t, "the first boot", func() bool { return strings.Contains(h.console(), "OK booted") })
	if got, want := h.console(), "hypervisor: script: chosen, it booted the image\nOK booted "; got != want {
		t.Errorf("console %q, want %q", got, want)
	}

	m.Stop(vm.ID)
	m.Start(vm, h)
	eventually(t, "a second boot with the same disk", func() bool { return strings.Contains(h.console(), "booted again") })

	m.Delete(vm.ID)
	eventually(t, "the folder is gone", func() bool {
		_, err := os.Stat(filepath.Join(dir, vm.ID))
		return errors.Is(err, os.ErrNotExist)
	})
	if f := h.failures(); len(f) > 0 {
		t.Errorf("a VM that is stopped has failed: %q", f)
	}
}

// exclusive is a hypervisor that fails the test if a VM starts while it is still running.
type exclusive struct {
	script
	t    *testing.T
	last *hypervisor.Machine
}

func (e *exclusive) Start(vm hypervisor.VM, console io.Writer) (*hypervisor.Machine, error) {
	if e.last != nil {
		select {
		case <-e.last.Done():
		default:
			e.t.Error("a VM boots while its last boot still runs: both write to its disk")
		}
	}
	m, err := e.script.Start(vm, console)
	e.last = m
	return m, err
}

func TestARebootWaitsForTheEndOfTheLastBoot(t *testing.T) {
	h := &host{}
	m := machinesWith(t, t.TempDir(), &exclusive{t: t, script: script{text: "echo booted; sleep 600"}})
	m.Start(vm, h)
	for boots := range 3 {
		eventually(t, "a boot", func() bool { return strings.Count(h.console(), "\nbooted") == boots+1 })
		m.Stop(vm.ID)
		m.Start(vm, h)
	}
}

func TestTheConsoleHidesTheSecretOfTheMetadata(t *testing.T) {
	h := &host{}
	machinesWith(t, t.TempDir(), script{text: `echo "$KERNEL"; sleep 600`}).Start(vm, h)
	eventually(t, "the command line", func() bool { return strings.Contains(h.console(), "ds=nocloud-net") })
	if !strings.HasSuffix(h.console(), "ds=nocloud-net;s=http://10.200.0.1/nocloud/SECRET/ ignition.config.url=http://10.200.0.1/nocloud/SECRET/user-data") {
		t.Error(h.console())
	}
}

func TestAVMThatEndsFails(t *testing.T) {
	for text, want := range map[string]string{
		"exit 1": "the VM ended by itself: exit status 1",
		"exit 0": "the VM ended by itself: its operating system powered it off",
	} {
		h := &host{}
		machinesWith(t, t.TempDir(), script{text: text}).Start(vm, h)
		eventually(t, "the failure", func() bool { return len(h.failures()) > 0 })
		if got := h.failures()[0]; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAVMThatNoHypervisorBootsFails(t *testing.T) {
	h := &host{}
	m := machinesWith(t, t.TempDir(), script{check: func(int64) error { return errors.New("qemu is not installed") }, probes: new(atomic.Int64)})
	m.Start(vm, h)
	eventually(t, "the failure", func() bool { return len(h.failures()) == 1 })
	if got, want := h.failures()[0], "image debian-12-real cannot be booted on this host: script: refused: qemu is not installed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A probe may fail because the host is busy. Only what it found to work is kept.
func TestAHypervisorIsProbedUntilItBootsTheImage(t *testing.T) {
	probes := new(atomic.Int64)
	m := machinesWith(t, t.TempDir(), script{text: "echo booted; sleep 600", probes: probes, check: func(probe int64) error {
		if probe == 1 {
			return errors.New("the host is busy")
		}
		return nil
	}})
	start := func(id string) *host {
		h, vm := &host{}, vm
		vm.ID = id
		m.Start(vm, h)
		return h
	}
	first := start("vm-1")
	eventually(t, "the failure of the first VM", func() bool { return len(first.failures()) == 1 })
	for _, id := range []string{"vm-2", "vm-3"} {
		h := start(id)
		eventually(t, "the boot of "+id, func() bool { return strings.Contains(h.console(), "booted") || len(h.failures()) > 0 })
		if f := h.failures(); len(f) > 0 {
			t.Errorf("%s failed: %q", id, f)
		}
	}
	if n := probes.Load(); n != 2 {
		t.Errorf("there were %d probes, want one that failed and one that succeeded", n)
	}
}

func TestCloseEndsAllAndKeepsTheDisks(t *testing.T) {
	dir, h := t.TempDir(), &host{}
	m := machinesWith(t, dir, script{text: "echo booted; echo data >disk; sleep 600"})
	m.Start(vm, h)
	eventually(t, "the boot", func() bool { return strings.Contains(h.console(), "booted") })
	m.Close()
	m.Start(vm, h) // After Close, no VM starts.
	if _, err := os.Stat(filepath.Join(dir, vm.ID)); err != nil {
		t.Error(err)
	}
	if f := h.failures(); len(f) > 0 {
		t.Errorf("a VM has failed by the end of the daemon: %q", f)
	}
}

func TestKeepDeletesTheRest(t *testing.T) {
	dir := t.TempDir()
	for _, id := range []string{"vm-1", "vm-2"} {
		if err := os.Mkdir(filepath.Join(dir, id), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	m := machinesWith(t, dir)
	if err := m.Keep([]string{"vm-2"}); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); !slices.Equal(left, []string{filepath.Join(dir, "vm-2")}) {
		t.Errorf("left: %q", left)
	}
}

func TestTheGatewayServesMetadataAndMirror(t *testing.T) {
	m := machinesWith(t, t.TempDir())
	about := &host{}
	h, err := m.handler(VM{ID: "vm-1", Name: "w1", UserData: []byte("data"), ProviderID: "local:///a/vm-1"}, about, "s3cret")
	if err != nil {
		t.Fatal(err)
	}
	for path, status := range map[string]int{
		"/nocloud/s3cret/user-data": http.StatusOK, "/nocloud/other/user-data": http.StatusNotFound,
		"/v1/provider-id": http.StatusOK, "/v2/": http.StatusOK, "/release/no": http.StatusNotFound,
	} {
		if got := statusOf(h, path); got != status {
			t.Errorf("%s: got %d, want %d", path, got, status)
		}
	}
	about.noMirror = true
	for path, status := range map[string]int{
		"/nocloud/s3cret/user-data": http.StatusOK, "/v1/provider-id": http.StatusOK, "/v2/": http.StatusServiceUnavailable,
		"/release/no": http.StatusServiceUnavailable, "/plugins/no": http.StatusServiceUnavailable,
	} {
		if got := statusOf(h, path); got != status {
			t.Errorf("%s while the mirror fails: got %d, want %d", path, got, status)
		}
	}
}

func statusOf(h http.Handler, path string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code
}

func TestLinesHaveALimit(t *testing.T) {
	var got []string
	l := &lines{write: func(s string) { got = append(got, s) }}
	for _, p := range []string{"a", "b\n\n", strings.Repeat("x", maxLine+10), "\n\xff\n"} {
		if _, err := l.Write([]byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"ab", strings.Repeat("x", maxLine), strings.Repeat("x", 10), "?"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
