package vcenter

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"net/url"
	"sync"
	"time"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/simulator"
	_ "github.com/vmware/govmomi/vapi/simulator" // tags
	"github.com/vmware/govmomi/vim25/types"
)

// root is the user of the tests themselves.
var root = url.UserPassword("root", "root")

// A Booted VM is passed to the hooks.
type Booted struct {
	// ID is the managed object ID.
	ID   string
	Name string
	// BIOSUUID is the UUID that the guest reads from its hardware.
	BIOSUUID string
	// UserData in plain text.
	UserData []byte
}

// Options of a vCenter.
type Options struct {
	// Boot is called when a VM starts to run, and returns its address, empty for none. When the VM
	// no longer runs and Boot has returned, Stop is called. Reboot is called for a VM that is rebooted; without it,
	// the VM is stopped and booted again. The hooks may run at the same time, for different VMs.
	Boot   func(Booted) (ip string)
	Stop   func(Booted)
	Reboot func(Booted)
	// Failed gets the errors that no caller waits for. Optional.
	Failed func(error)
}

// A VCenter is a fake vCenter that listens on 127.0.0.1.
type VCenter struct {
	opts   Options
	model  *simulator.Model
	server *simulator.Server
	admin  *govmomi.Client
	end    context.CancelFunc
	hosts  sync.WaitGroup

	mu        sync.Mutex
	passwords map[string]string
	refusals  []*Refusal
	running   map[string]*running
	// reboots of VMs, and the VMs that ran once, by managed object ID.
	reboots map[string][]string
	ran     map[string]bool
}

// New creates a vCenter with the inventory. Close stops it.
func New(ctx context.Context, o Options) (*VCenter, error) {
	v := &VCenter{opts: o, model: simulator.VPX(), passwords: map[string]string{}, running: map[string]*running{}, reboots: map[string][]string{}, ran: map[string]bool{}}
	v.model.Autostart, v.model.Host, v.model.ClusterHost, v.model.Machine, v.model.Datastore = false, 0, 1, 1, 2
	if err := v.model.Create(); err != nil {
		return nil, err
	}
	v.model.Service.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	v.model.Service.RegisterEndpoints = true
	v.model.Service.Listen = &url.URL{Host: "127.0.0.1:0", User: root}
	v.registry().SessionManager().ValidLogin = v.validLogin
	v.registry().Handler = v.handle
	KeepRules(v.registry())
	v.server = v.model.Service.NewServer()
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	v.end = end
	var err error
	if v.admin, err = govmomi.NewClient(ctx, v.server.URL, true); err == nil {
		err = v.furnish(ctx)
	}
	if err != nil {
		v.Close()
		return nil, err
	}
	v.hosts.Go(func() { v.runVMs(life) })
	return v, nil
}

// Close stops the vCenter. It calls no hook for the VMs that still run.
func (v *VCenter) Close() {
	v.end()
	v.hosts.Wait()
	v.server.Close()
	v.model.Remove()
}

// Server is the host and port of its API.
func (v *VCenter) Server() string { return v.server.URL.Host }

// CA is the PEM bundle that verifies its certificate.
func (v *VCenter) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: v.server.Certificate().Raw})
}

// SetPassword of an account. The simulator has no permissions: each account may do everything.
func (v *VCenter) SetPassword(user, password string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.passwords[user] = password
}

func (v *VCenter) validLogin(l *types.Login) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	password, ok := v.passwords[l.UserName]
	return ok && l.Password == password || l.UserName == root.Username()
}

func (v *VCenter) registry() *simulator.Registry { return v.model.Map() }

// context returns a new context. The simulator locks objects by context, so concurrent readers
// need a context each.
func (v *VCenter) context() *simulator.Context {
	return &simulator.Context{Context: context.Background(), Map: v.registry()}
}

func (v *VCenter) failed(err error) {
	if v.opts.Failed != nil {
		v.opts.Failed(err)
	}
}

// interval at which the VMs are polled. They are in memory.
const interval = 100 * time.Millisecond
