// Package real runs the real VMs of the cloud: it gives each a folder, a network with its
// metadata and the mirror, and a hypervisor, and follows it until it is stopped.
package real

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/drover-dev/drover/cluster/cloud/internal/hypervisor"
	"github.com/drover-dev/drover/cluster/cloud/internal/image"
	"github.com/drover-dev/drover/cluster/cloud/internal/metadata"
	"github.com/drover-dev/drover/cluster/cloud/internal/mirror"
	"github.com/drover-dev/drover/cluster/cloud/internal/network"
)

// A VM is one to run.
type VM struct {
	ID, Name, Image, IP string
	CPUs, MemoryMiB     int
	UserData            []byte
	// ProviderID that its metadata has; empty for none.
	ProviderID string
}

// Host is what a running VM needs of the cloud.
type Host interface {
	// Console adds a line to the VM's console.
	Console(format string, args ...any)
	// Fail is called once, when the VM cannot be started or has ended by itself.
	Fail(message string)
	// MirrorFails reports whether the mirror answers the VM with errors.
	MirrorFails() bool
}

// Options of the real VMs of a cloud.
type Options struct {
	// Dir has a folder for each VM.
	Dir string
	// Images is the folder of the images, and Mirror what the mirror serves.
	Images, Mirror string
	// Hypervisors to choose from, the best first.
	Hypervisors []hypervisor.Hypervisor
}

// Machines runs real VMs. It is safe for concurrent use.
type Machines struct {
	Options
	mirror http.Handler
	base   context.Context
	end    context.CancelFunc
	all    sync.WaitGroup

	mu      sync.Mutex
	running map[string]*machine
	// stopped VMs, of which something may still run until the channel is closed.
	stopped map[string]<-chan struct{}
	choices map[string]func() choice
}

// machine is a VM that was started and not stopped.
type machine struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// choice of the hypervisor for an image.
type choice struct {
	hypervisor hypervisor.Hypervisor
	verdicts   []hypervisor.Verdict
}

// New makes one that runs nothing yet.
func New(o Options) *Machines {
	m := &Machines{Options: o, mirror: mirror.Handler(o.Mirror), running: map[string]*machine{}, stopped: map[string]<-chan struct{}{}, choices: map[string]func() choice{}}
	m.base, m.end = context.WithCancel(context.Background())
	return m
}

// ImageNames are those of the images that were built.
func (m *Machines) ImageNames() ([]string, error) {
	if m.Images == "" {
		return nil, nil
	}
	return image.List(m.Images)
}

// Keep deletes what is left of VMs that a killed daemon did not delete.
func (m *Machines) Keep(ids []string) error {
	entries, err := os.ReadDir(m.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if !slices.Contains(ids, e.Name()) {
			err = errors.Join(err, os.RemoveAll(m.folder(e.Name())))
		}
	}
	return err
}

// Start boots a VM, if it does not run already: with its disk, if it ran before. It does not
// wait. A VM that was stopped boots when nothing of it runs any more.
func (m *Machines) Start(vm VM, host Host) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.running[vm.ID]; ok || m.base.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(m.base)
	r := &machine{cancel: cancel, done: make(chan struct{})}
	m.running[vm.ID] = r
	before := m.takeStopped(vm.ID)
	m.all.Go(func() {
		defer close(r.done)
		<-before
		if ctx.Err() != nil {
			return
		}
		if err := m.run(ctx, vm, host); err != nil && ctx.Err() == nil {
			host.Fail(err.Error())
		}
	})
}

// Stop ends a VM as pulling its plug does, if it runs. It does not wait.
func (m *Machines) Stop(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stop(id)
}

// stop is Stop for callers that hold the lock.
func (m *Machines) stop(id string) {
	r, ok := m.running[id]
	if !ok {
		return
	}
	r.cancel()
	delete(m.running, id)
	m.stopped[id] = r.done
}

// takeStopped returns a channel that is closed when nothing runs of a VM that was stopped.
func (m *Machines) takeStopped(id string) <-chan struct{} {
	if done, ok := m.stopped[id]; ok {
		delete(m.stopped, id)
		return done
	}
	none := make(chan struct{})
	close(none)
	return none
}

// Delete stops a VM and deletes its disk. It does not wait.
func (m *Machines) Delete(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stop(id)
	done := m.takeStopped(id)
	m.all.Go(func() {
		<-done
		_ = os.RemoveAll(m.folder(id)) // Keep deletes what is left.
	})
}

// Close ends all VMs, and waits until nothing of them runs. They keep their disks.
func (m *Machines) Close() {
	m.mu.Lock() // Start adds nothing once it sees the end.
	m.end()
	m.mu.Unlock()
	m.all.Wait()
}

func (m *Machines) folder(id string) string { return filepath.Join(m.Dir, id) }

// run a VM until the context or the VM ends.
func (m *Machines) run(ctx context.Context, vm VM, host Host) error {
	c := m.choose(vm.Image)()
	if c.hypervisor == nil {
		return fmt.Errorf("image %s cannot be booted on this host: %s", vm.Image, strings.Join(describe(c), "; "))
	}
	for _, line := range describe(c) {
		host.Console("hypervisor: %s", line)
	}
	dir := m.folder(vm.ID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	secret := rand.Text()
	handler, err := m.handler(vm, host, secret)
	if err != nil {
		return err
	}
	on := hypervisor.VM{Dir: dir, Image: m.image(vm.Image), CPUs: vm.CPUs, MemoryMiB: vm.MemoryMiB, IP: vm.IP}.
		WithMetadata("http://" + network.Gateway + metadata.Path(secret))
	n, err := network.Open(on.Socket(), c.hypervisor.Protocol(), vm.IP, handler)
	if err != nil {
		return fmt.Errorf("cannot make the network: %w", err)
	}
	defer n.Close()
	// cloud-init writes the address of its metadata.
	console := &lines{write: func(line string) { host.Console("%s", strings.ReplaceAll(line, secret, "SECRET")) }}
	p, err := c.hypervisor.Start(on, console)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		p.Stop()
		return nil
	case <-p.Done():
		return fmt.Errorf("the VM ended by itself: %w", ended(p.Err()))
	}
}

func ended(err error) error {
	if err == nil {
		return errors.New("its operating system powered it off")
	}
	return err
}

func (m *Machines) handler(vm VM, host Host, secret string) (http.Handler, error) {
	about, err := metadata.Handler(metadata.VM{ID: vm.ID, Hostname: vm.Name, Secret: secret, UserData: vm.UserData, ProviderID: vm.ProviderID})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", about)
	for _, path := range mirror.Paths {
		mux.Handle(path, m.mirrorOf(host))
	}
	return mux, nil
}

// mirrorOf a VM is the mirror, unless a fault keeps it from the VM.
func (m *Machines) mirrorOf(host Host) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host.MirrorFails() {
			http.Error(w, "the mirror fails because a fault was set", http.StatusServiceUnavailable)
			return
		}
		m.mirror.ServeHTTP(w, r)
	})
}

func (m *Machines) image(name string) hypervisor.Image {
	return hypervisor.Image(filepath.Join(m.Images, name))
}

// choose finds out once for each image which hypervisor boots it.
func (m *Machines) choose(image string) func() choice {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.choices[image]
	if !ok {
		f = sync.OnceValue(func() choice {
			h, verdicts := hypervisor.Choose(m.base, m.Hypervisors, m.image(image), hypervisor.Deadline)
			return choice{h, verdicts}
		})
		m.choices[image] = f
	}
	return f
}

// describe why a hypervisor was chosen.
func describe(c choice) []string {
	if len(c.verdicts) == 0 {
		return []string{"there is no hypervisor"}
	}
	var out []string
	for _, v := range c.verdicts {
		if v.Problem == nil {
			out = append(out, v.Name+": chosen, it booted the image")
			continue
		}
		out = append(out, fmt.Sprintf("%s: refused: %v", v.Name, v.Problem))
	}
	return out
}
