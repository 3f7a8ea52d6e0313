// Package supervisor runs one instance of the local control plane: it starts the components,
// restarts them if they end, and serves drover-cluster on a unix socket.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/drover-dev/drover/cluster/internal/crossplane"
	"github.com/drover-dev/drover/cluster/internal/kube"
	"github.com/drover-dev/drover/cluster/internal/layout"
	"github.com/drover-dev/drover/cluster/internal/process"
	"github.com/drover-dev/drover/cluster/internal/state"
)

// Names of components, and of the ports that are stored.
const (
	Kubernetes = "kubernetes"
	Target     = "target"
	Crossplane = "crossplane"
	RBAC       = "rbac"
	Registry   = "registry"
	LocalCloud = "local-cloud"

	webhookPort = "crossplane-webhook"
	metricsPort = "crossplane-metrics"
	healthPort  = "crossplane-health"
)

// Options of an instance.
type Options struct {
	Dir layout.Dir
	// Bin is the folder with the binaries drover-kube, crossplane and local-cloud, and with the
	// folder crossplane-manifests.
	Bin string
	// Target requests a second API server.
	Target bool
	// TargetKube is the drover-kube of the second API server. The default is the one in Bin. If it is a
	// link, each start of the second API server follows it anew.
	TargetKube string
	// CircuitBreakerBurst and CircuitBreakerRefillRate are Crossplane's flags. 0 means Crossplane's
	// default.
	CircuitBreakerBurst, CircuitBreakerRefillRate float64
	// MaxConcurrentReconciles is Crossplane's flag. 0 means Crossplane's default.
	MaxConcurrentReconciles int
	// RealVMs is the folder of the local cloud's real VMs, empty for none.
	RealVMs string
	// Audit is the level of the audit logs of both API servers, empty for none.
	Audit string
}

type supervisor struct {
	Options
	log      *log.Logger
	group    *process.Group
	progress *progress
	stop     context.CancelFunc

	// prepared is closed when the following fields are set, before any component is started.
	prepared        chan struct{}
	ports           map[string]int
	control, target kube.ControlPlane
	hasLocalCloud   bool
}

// Run runs an instance until ctx ends, a client requests its stop, or its start fails.
func Run(ctx context.Context, o Options, out *log.Logger) error {
	lock, err := takeLock(o.Dir.Lock())
	if err != nil {
		return err
	}
	defer lock.Close()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &supervisor{Options: o, log: out, group: &process.Group{}, progress: newProgress(), stop: cancel, prepared: make(chan struct{})}
	listener, err := listen(o.Dir.Socket())
	if err != nil {
		return err
	}
	api := &http.Server{Handler: s.handler(), ReadHeaderTimeout: time.Minute}
	go func() {
		if err := api.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			out.Println("socket:", err)
			cancel()
		}
	}()

	err = s.boot(ctx)
	if err == nil {
		s.progress.add(Event{Step: "ready", Message: "the control plane is ready", Ready: true})
		<-ctx.Done()
	} else {
		failed := &stepError{}
		if !errors.As(err, &failed) {
			failed = &stepError{step: "start", err: err}
		}
		out.Println("start failed:", err)
		s.progress.add(Event{Step: failed.step, Message: failed.err.Error(), Failed: true, Log: failed.log})
	}
	out.Println("stopping")
	cancel()
	s.group.StopAll()
	// Clients that follow the start, or wait for the stop, get their responses.
	shutdown, done := context.WithTimeout(context.Background(), 5*time.Second)
	defer done()
	return errors.Join(err, api.Shutdown(shutdown))
}

// takeLock ensures that there is one supervisor per directory. The kernel releases the lock when
// the process ends.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s is locked: another supervisor runs this directory", path)
	}
	return f, nil
}

func listen(path string) (net.Listener, error) {
	// This process has the lock, so an existing socket is that of a dead supervisor.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return net.Listen("unix", path)
}

// choosePorts sets s.ports, and stores them.
func (s *supervisor) choosePorts() error {
	saved, err := state.Load(s.Dir.State())
	if err != nil {
		return err
	}
	wants := []state.Want{
		{Name: Kubernetes, Fixed: true}, {Name: Registry, Fixed: true},
		{Name: webhookPort}, {Name: metricsPort}, {Name: healthPort},
	}
	if s.Target {
		wants = append(wants, state.Want{Name: Target, Fixed: true})
	}
	if s.hasLocalCloud {
		wants = append(wants, state.Want{Name: LocalCloud, Fixed: true})
	}
	saved.Ports, err = state.Choose(saved.Ports, wants, state.Free, state.Random)
	if err != nil {
		return err
	}
	s.ports = saved.Ports
	return saved.Save(s.Dir.State())
}

// launch adds a process to the instance and waits until it is ready.
func (s *supervisor) launch(ctx context.Context, spec process.Spec) error {
	p := process.New(spec, s.changed)
	s.group.Add(p)
	p.Start()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return p.WaitReady(ctx)
}

func (s *supervisor) changed(p process.Status) {
	if p.Message != "" {
		s.log.Printf("%s: %s: %s", p.Name, p.State, p.Message)
		return
	}
	s.log.Printf("%s: %s", p.Name, p.State)
}

// registryAddress returns the registry's host:port.
func (s *supervisor) registryAddress() string { return fmt.Sprintf("127.0.0.1:%d", s.ports[Registry]) }

// status may be called after the instance is prepared.
func (s *supervisor) status() Status {
	st := Status{
		Ready:      s.progress.ready(),
		Dir:        string(s.Dir),
		PID:        os.Getpid(),
		Control:    Cluster{Server: s.control.Server(), Kubeconfig: s.control.Kubeconfig},
		Registry:   s.registryAddress(),
		Components: s.group.Status(),
	}
	if s.Target {
		st.Target = &Cluster{Server: s.target.Server(), Kubeconfig: s.target.Kubeconfig}
	}
	if s.Audit != "" {
		st.Control.AuditLog = s.control.Dir.AuditLog()
		if s.Target {
			st.Target.AuditLog = s.target.Dir.AuditLog()
		}
	}
	if s.hasLocalCloud {
		st.LocalCloud = &Cloud{
			Endpoint:  fmt.Sprintf("http://127.0.0.1:%d", s.ports[LocalCloud]),
			TokenFile: s.Dir.LocalCloudToken(),
		}
	}
	for _, c := range st.Components {
		st.Ready = st.Ready && c.State == process.Running
	}
	return st
}

// A stepError is a failure of the start, with the log that may have the reason.
type stepError struct {
	step string
	log  string
	err  error
}

func (e *stepError) Error() string { return e.step + ": " + e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

func (s *supervisor) crossplaneOptions() crossplane.Options {
	return crossplane.Options{
		Binary:                   s.binary("crossplane"),
		Manifests:                s.binary("crossplane-manifests"),
		WebhookPort:              s.ports[webhookPort],
		MetricsPort:              s.ports[metricsPort],
		HealthPort:               s.ports[healthPort],
		CircuitBreakerBurst:      s.CircuitBreakerBurst,
		CircuitBreakerRefillRate: s.CircuitBreakerRefillRate,
		MaxConcurrentReconciles:  s.MaxConcurrentReconciles,
	}
}
