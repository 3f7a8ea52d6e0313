// Package process runs child processes, each with a log file. It restarts them with backoff if they
// end by themselves. They never outlive this process.
package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	defaultGrace = 10 * time.Second
	readyPeriod  = 50 * time.Millisecond
	// maxExits is how often a process may end before WaitReady returns an error.
	maxExits = 3
	// maxLog is the size in bytes from which a log is moved away at a start.
	maxLog = 32 << 20
)

// Spec is how to run a process.
type Spec struct {
	Name string
	Path string
	Args []string
	// Env is the whole environment, except for the variables of Environment.
	Env []string
	// Dir is the working directory.
	Dir string
	// Log is the file that output is appended to.
	Log string
	// Ready returns an error until the process is ready. Nil means that it is ready from its start.
	Ready func(context.Context) error
	// Metrics is the URL of its Prometheus metrics, if it serves any.
	Metrics string
	// Grace is how long the process may take to end. 0 means 10 s.
	Grace time.Duration
}

// State is the state of a process.
type State string

const (
	// Stopped means that the process does not run, and is not to be restarted.
	Stopped State = "Stopped"
	// Starting means that the process is not ready yet.
	Starting State = "Starting"
	// Running means that the process is ready.
	Running State = "Running"
	// Backoff means that the process ended by itself and waits to be restarted.
	Backoff State = "Backoff"
)

// Status is a snapshot of a process.
type Status struct {
	Name     string    `json:"name"`
	State    State     `json:"state"`
	PID      int       `json:"pid,omitempty"`
	Restarts int       `json:"restarts"`
	Since    time.Time `json:"since,omitzero"`
	Message  string    `json:"message,omitempty"`
	Log      string    `json:"log"`
	Metrics  string    `json:"metrics,omitempty"`
}

// A Process keeps a Spec running between Start and Stop.
type Process struct {
	spec     Spec
	onChange func(Status)

	// ops makes calls of Start and Stop exclusive.
	ops    sync.Mutex
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	status  Status
	changed chan struct{}
}

// New returns a process that is not started. If onChange is not nil, it is called after every
// change of the state.
func New(spec Spec, onChange func(Status)) *Process {
	if onChange == nil {
		onChange = func(Status) {}
	}
	return &Process{
		spec:     spec,
		onChange: onChange,
		status:   Status{Name: spec.Name, State: Stopped, Log: spec.Log, Metrics: spec.Metrics},
		changed:  make(chan struct{}),
	}
}

// Start starts the process, unless it is started already, and returns at once.
func (p *Process) Start() {
	p.ops.Lock()
	defer p.ops.Unlock()
	if p.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.done = cancel, make(chan struct{})
	p.set(func(s *Status) { *s = Status{Name: s.Name, Log: s.Log, Metrics: s.Metrics, State: Starting} })
	go p.run(ctx, p.done)
}

// Stop stops the process, and returns when it has ended.
func (p *Process) Stop() {
	p.ops.Lock()
	defer p.ops.Unlock()
	if p.cancel == nil {
		return
	}
	p.cancel()
	<-p.done
	p.cancel = nil
	p.set(func(s *Status) { *s = Status{Name: s.Name, Log: s.Log, Metrics: s.Metrics, State: Stopped} })
}

// Status returns the current status.
func (p *Process) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// WaitReady waits until the process is ready. It returns an error if the process is stopped or has
// ended maxExits times.
func (p *Process) WaitReady(ctx context.Context) error {
	for {
		p.mu.Lock()
		status, changed := p.status, p.changed
		p.mu.Unlock()
		switch {
		case status.State == Running:
			return nil
		case status.State == Stopped:
			return fmt.Errorf("%s is stopped", status.Name)
		case status.State == Backoff && status.Restarts >= maxExits-1:
			return fmt.Errorf("%s keeps ending: %s", status.Name, status.Message)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if status.Message != "" {
				return fmt.Errorf("%s is not ready: %s", status.Name, status.Message)
			}
			return fmt.Errorf("%s is not ready: %w", status.Name, context.Cause(ctx))
		}
	}
}

func (p *Process) set(change func(*Status)) {
	p.mu.Lock()
	change(&p.status)
	s := p.status
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()
	p.onChange(s)
}

func (p *Process) run(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	var delay time.Duration
	for restarts := 0; ; restarts++ {
		started := time.Now()
		err := p.once(ctx, restarts)
		if ctx.Err() != nil {
			return
		}
		delay = nextDelay(delay, time.Since(started))
		message := fmt.Sprintf("%s; starts again in %s", exitReason(err), delay)
		p.set(func(s *Status) {
			s.State, s.PID, s.Restarts, s.Message = Backoff, 0, restarts, message
		})
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return
		}
	}
}

// once runs the process until it or ctx ends.
func (p *Process) once(ctx context.Context, restarts int) error {
	log, err := openLog(p.spec.Log)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.spec.Path, p.spec.Args...)
	cmd.Dir = p.spec.Dir
	cmd.Env = append(Environment(), p.spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()
	if err := spawn(cmd); err != nil {
		fmt.Fprintln(log, err)
		return err
	}
	fmt.Fprintf(log, "--- %s %s started, pid %d\n", time.Now().Format(time.RFC3339), p.spec.Name, cmd.Process.Pid)
	p.set(func(s *Status) {
		s.State, s.PID, s.Restarts, s.Since = Starting, cmd.Process.Pid, restarts, time.Now()
	})

	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	readyCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready := make(chan struct{})
	go p.awaitReady(readyCtx, ready)
	for {
		select {
		case <-ready:
			ready = nil
			p.set(func(s *Status) { s.State, s.Message = Running, "" })
		case err := <-exited:
			fmt.Fprintf(log, "--- %s %s ended: %s\n", time.Now().Format(time.RFC3339), p.spec.Name, exitReason(err))
			return err
		case <-ctx.Done():
			err := p.end(cmd, exited)
			fmt.Fprintf(log, "--- %s %s stopped: %s\n", time.Now().Format(time.RFC3339), p.spec.Name, exitReason(err))
			return err
		}
	}
}

func (p *Process) awaitReady(ctx context.Context, ready chan<- struct{}) {
	tick := time.NewTicker(readyPeriod)
	defer tick.Stop()
	for p.spec.Ready != nil {
		err := p.spec.Ready(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return
		}
		if message := err.Error(); p.Status().Message != message {
			p.set(func(s *Status) { s.Message = message })
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	close(ready)
}

func (p *Process) end(cmd *exec.Cmd, exited <-chan error) error {
	grace := p.spec.Grace
	if grace == 0 {
		grace = defaultGrace
	}
	// If the process ended just now, the signal has no effect.
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-exited:
		return err
	case <-time.After(grace):
	}
	_ = cmd.Process.Kill()
	return <-exited
}

func exitReason(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// Environment returns the variables of this process's environment that every child gets. They are
// few, so that no credential of the user who starts the control plane is among them.
func Environment() []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "TZ"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// spawn starts cmd from one thread that never ends: the kernel sends a child's parent-death signal
// when the thread that started it ends, not when the process does.
func spawn(cmd *exec.Cmd) error {
	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	return <-started
}

var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})
