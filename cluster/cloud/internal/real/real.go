// Package real runs the real VMs of the cloud. It gives each VM a folder, a network with its
// metadata and the mirror, and a hypervisor, and watches it until it is stopped.
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

	"golang.org/x/sync/singleflight"

	"github.com/drover-dev/drover/cluster/cloud/internal/hypervisor"
	"github.com/drover-dev/drover/cluster/cloud/internal/image"
	"github.com/drover-dev/drover/cluster/cloud/internal/metadata"
	"github.com/drover-dev/drover/cluster/cloud/internal/mirror"
	"github.com/drover-dev/drover/cluster/cloud/internal/network"
)

// A VM is a real VM to run.
type VM struct {
	ID, Name, Image, IP string
	CPUs, MemoryMiB     int
	UserData            []byte
	// ProviderID in the VM's metadata, empty for none.
	ProviderID string
}

// Host is the interface of the cloud that a running VM uses.
type Host interface {
	// Console adds a line to the VM's console.
	Console(format string, args ...any)
	// Fail is called once, if the VM cannot be started or has ended by itself.
	Fail(message string)
	// MirrorFails reports whether the mirror answers the VM with errors.
	MirrorFails() bool
}

// Options of the real VMs of a cloud.
type Options struct {
	// Dir has a folder for each VM.
	Dir string
	// Images is the folder of the images, and Mirror is the folder that the mirror serves.
	Images, Mirror string
	// Hypervisors to choose from, in order of preference.
	Hypervisors []hypervisor.Hypervisor
}

// Machines runs real VMs. It is safe for concurrent use.
type Machines struct {
	Options
	mirror http.Handler
	base   context.Context //nolint:containedctx // Of the goroutines, which end with it.
	end    context.CancelFunc
	all    sync.WaitGroup

	mu      sync.Mutex
	running map[string]*machine
	// stopped has VMs that were stopped. The channel is closed when all their processes have ended.
	stopped map[string]<-chan struct{}
	// choices has the hypervisors that booted an image.
	choices map[string]choice
	probes  singleflight.Group
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

// New returns Machines that run no VM yet.
func New(o Options) *Machines {
	m := &Machines{Options: o, mirror: mirror.Handler(o.Mirror), running: map[string]*machine{}, stopped: map[string]<-chan struct{}{}, choices: map[string]choice{}}
	m.base, m.end = context.WithCancel(context.Background())
	return m
}

// ImageNames returns the names of the images that were built.
func (m *Machines) ImageNames() ([]string, error) {
	if m.Images == "" {
		return nil, nil
	}
	return image.List(m.Images)
}

// Keep deletes the folders of all other VMs, which a killed daemon did not delete.
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

// Start boots a VM, unless it is running already. A VM that ran before keeps its disk. Start does
// not wait. A VM that was stopped boots after all its processes have ended.
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

// Stop ends a running VM without a shutdown. It does not wait.
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

// takeStopped returns a channel that is closed when all processes of a stopped VM have ended.
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
		_ = os.RemoveAll(m.folder(id)) // If it fails, Keep deletes the folder.
	})
}

// Close ends all VMs, and waits until they have ended. They keep their disks.
func (m *Machines) Close() {
	m.mu.Lock() // Start adds no VM after it sees that the context ended.
	m.end()
	m.mu.Unlock()
	m.all.Wait()
}

func (m *Machines) folder(id string) string { return filepath.Join(m.Dir, id) }

// run runs a VM until the context or the VM ends.
func (m *Machines) run(ctx context.Context, vm VM, host Host) error {
	c := m.choose(vm.Image)
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
	// cloud-init logs the address of its metadata, which has the secret.
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

// mirrorOf returns the mirror for a VM. It fails while a fault blocks it for the VM.
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

// choose returns the hypervisor that boots an image. VMs that start at the same time wait for the
// same probe. Only success is kept: a probe may have failed because the host was busy, and the next
// VM must not fail for that.
func (m *Machines) choose(image string) choice {
	c, _, _ := m.probes.Do(image, func() (any, error) {
		m.mu.Lock()
		c, ok := m.choices[image]
		m.mu.Unlock()
		if ok {
			return c, nil
		}
		h, verdicts := hypervisor.Choose(m.base, m.Hypervisors, m.image(image), hypervisor.PatienceWith)
		c = choice{h, verdicts}
		if h != nil {
			m.mu.Lock()
			m.choices[image] = c
			m.mu.Unlock()
		}
		return c, nil
	})
	return c.(choice) //nolint:forcetypeassert // The function above returns nothing else.
}

// describe returns a line per hypervisor with the reason why it was chosen or refused.
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
