package runtime

import (
	"context"
	"net/http"
	"reflect"
	"sync"

	"github.com/drover-dev/drover/cluster/internal/probe"
	"github.com/drover-dev/drover/cluster/internal/process"
	"github.com/drover-dev/drover/cluster/internal/state"
)

// A runner has one process per component.
type runner struct {
	group    *process.Group
	onChange func(identity, process.Status)

	mu      sync.Mutex
	running map[string]*running
	ports   map[string]ports
}

type running struct {
	id      identity
	spec    process.Spec
	process *process.Process
	// end stops the work that belongs to the process: the renewal of its token.
	end context.CancelFunc
}

// portsOf returns the ports of a component. They stay the same while the supervisor runs.
func (r *runner) portsOf(component string) (ports, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := r.ports[component]; ok {
		return p, nil
	}
	// Ports that were assigned and are not bound yet are in use too.
	taken := map[int]bool{}
	for _, p := range r.ports {
		taken[p.GRPC], taken[p.Metrics], taken[p.Health] = true, true, true
	}
	chosen, err := state.Choose(nil, []state.Want{{Name: "grpc"}, {Name: "metrics"}, {Name: "health"}},
		func(p int) bool { return !taken[p] && state.Free(p) }, state.Random)
	if err != nil {
		return ports{}, err
	}
	p := ports{GRPC: chosen["grpc"], Metrics: chosen["metrics"], Health: chosen["health"]}
	r.ports[component] = p
	return p, nil
}

// status returns the status of a revision's process, and false if another revision, or none, runs.
func (r *runner) status(id identity) (process.Status, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.running[id.Component]; p != nil && p.id == id {
		return p.process.Status(), true
	}
	return process.Status{}, false
}

// ensure runs spec for a revision, in place of any other process of its component. A process that a
// user stopped stays stopped. begin is called before a new process starts, with a context that ends
// when the process is replaced or stopped.
func (r *runner) ensure(id identity, spec process.Spec, begin func(context.Context) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.running[id.Component]
	if old != nil && old.id == id && sameProgram(old.spec, spec) {
		return nil
	}
	if old != nil {
		old.process.Stop()
		old.end()
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := begin(ctx); err != nil {
		cancel()
		r.group.Remove(id.Component)
		delete(r.running, id.Component)
		return err
	}
	p := process.New(spec, func(s process.Status) { r.onChange(id, s) })
	r.running[id.Component] = &running{id: id, spec: spec, process: p, end: cancel}
	r.group.Add(p)
	p.Start()
	return nil
}

// stop stops the process of a component if it belongs to a revision that matches.
func (r *runner) stop(matches func(identity) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for component, p := range r.running {
		if matches(p.id) {
			p.process.Stop()
			p.end()
			r.group.Remove(component)
			delete(r.running, component)
		}
	}
}

func sameProgram(a, b process.Spec) bool {
	return a.Path == b.Path && reflect.DeepEqual(a.Args, b.Args) && reflect.DeepEqual(a.Env, b.Env)
}

// readiness returns the check of a process. A function is ready when it listens: it serves only
// clients with Crossplane's client certificate. A provider is ready when its probe succeeds.
func readiness(id identity, p ports) func(context.Context) error {
	if id.Function {
		return func(ctx context.Context) error { return probe.TCP(ctx, address(p.GRPC)) }
	}
	return func(ctx context.Context) error {
		return probe.HTTP(ctx, http.DefaultClient, "http://"+address(p.Health)+"/readyz")
	}
}
