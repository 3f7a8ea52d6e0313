package hypervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// probeInit is a program of the image that writes probeMarker and keeps running.
	probeInit   = "/usr/local/sbin/boot-probe"
	probeMarker = "boot-probe: the kernel runs programs"
	probeMemory = 256
)

// A Verdict is the result of a hypervisor's probe.
type Verdict struct {
	Name string
	// Problem is why the hypervisor was refused, nil for the chosen one.
	Problem error
}

// Patience is how long a probe waits for the first program of an image.
type Patience struct {
	// Silence is the longest time without a new line of the console. A kernel that still writes is
	// slow, and not stuck: the host may run other tests.
	Silence time.Duration
	// Total is the longest time of the whole probe, for a kernel that restarts without end.
	Total time.Duration
}

// Choose returns the first hypervisor that boots the image within its patience, or nil, and the
// verdicts of all hypervisors that it tried. The existence of a device or a program proves nothing:
// under nested virtualization there may be a KVM device with which no stock kernel boots.
func Choose(ctx context.Context, all []Hypervisor, i Image, patience func(Hypervisor) Patience) (Hypervisor, []Verdict) {
	var verdicts []Verdict
	for _, h := range all {
		err := Probe(ctx, h, i, patience(h))
		verdicts = append(verdicts, Verdict{Name: h.Name(), Problem: err})
		if err == nil {
			return h, verdicts
		}
	}
	return nil, verdicts
}

// PatienceWith returns the patience of a hypervisor's probe. On an idle CPU, a working hypervisor
// needs 2 s, one whose image has an initial RAM disk 10 s, and QEMU without KVM 20 s.
func PatienceWith(h Hypervisor) Patience {
	switch h := h.(type) {
	case qemu:
		if h.kvm {
			return Patience{Silence: 20 * time.Second, Total: 2 * time.Minute}
		}
		return Patience{Silence: 3 * time.Minute, Total: 10 * time.Minute}
	default:
		return Patience{Silence: time.Minute, Total: 5 * time.Minute}
	}
}

// Probe boots the image until its first program runs.
func Probe(ctx context.Context, h Hypervisor, i Image, patience Patience) error {
	if err := h.Check(i); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "boot-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	w := &watch{marker: []byte(probeMarker), seen: make(chan struct{}), wrote: make(chan struct{}, 1)}
	m, err := h.Start(VM{Dir: dir, Image: i, CPUs: 1, MemoryMiB: probeMemory, Arguments: []string{"init=" + probeInit}}, w)
	if err != nil {
		return err
	}
	defer m.Stop()
	total, silence := time.After(patience.Total), time.NewTimer(patience.Silence)
	defer silence.Stop()
	for {
		select {
		case <-w.seen:
			return nil
		case <-w.wrote:
			silence.Reset(patience.Silence)
		case <-m.Done():
			// Both may have happened: the program ran, and then the VM ended.
			select {
			case <-w.seen:
				return nil
			default:
			}
			return fmt.Errorf("the VM ended before its first program ran (%w)%s", orUnknown(m.Err()), w.last())
		case <-ctx.Done():
			return ctx.Err()
		case <-silence.C:
			return fmt.Errorf("the first program of the image did not run, and the console was silent for %s%s", patience.Silence, w.last())
		case <-total:
			return fmt.Errorf("the first program of the image did not run within %s%s", patience.Total, w.last())
		}
	}
}

func orUnknown(err error) error {
	if err == nil {
		return errors.New("without an error")
	}
	return err
}

// watch is a console that waits for a marker.
type watch struct {
	marker []byte
	seen   chan struct{}
	// wrote has room for one token, which says that there was output since it was taken.
	wrote chan struct{}

	mu   sync.Mutex
	once sync.Once
	text []byte
}

func (w *watch) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	if bytes.Contains(w.text, w.marker) {
		w.once.Do(func() { close(w.seen) })
	}
	select {
	case w.wrote <- struct{}{}:
	default:
	}
	return len(p), nil
}

// last returns the last line of the console, as the end of a sentence.
func (w *watch) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := strings.FieldsFunc(string(w.text), func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) == 0 {
		return "; its console is empty"
	}
	return fmt.Sprintf("; its console ends with %q", strings.TrimSpace(lines[len(lines)-1]))
}
