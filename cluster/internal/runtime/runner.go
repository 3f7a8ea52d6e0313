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

// A runner has one process a component.
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
	// end ends what goes with the process: the renewal of its token.
	end context.CancelFunc
}

// portsOf are the ports of a component as long as the supervisor lives.
func (r *runner) portsOf(component string) (ports, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := r.ports[component]; ok {
		return p, nil
	}
	// Ports that were given away and are not bound yet are taken too.
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

// status of the process of a revision; false when another revision, or none, runs.
func (r *runner) status(id identity) (process.Status, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.running[id.Component]; p != nil && p.id == id {
		return p.process.Status(), true
	}
	return process.Status{}, false
}

// ensure runs spec for a revision, in place of whatever ran for its component. A
// process that was stopped by hand stays stopped. begin is called before a new
// process starts; the context ends with the process.
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
		delete(r.running, id.Component)
		return err
	}
	p := process.New(spec, func(s process.Status) { r.onChange(id, s) })
	r.running[id.Component] = &running{id: id, spec: spec, process: p, end: cancel}
	r.group.Add(p)
	p.Start()
	return nil
}

// stop ends the process of a revision, if that is what runs for its component.
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

// readiness of a function is that it listens (it speaks only to who has
// Crossplane's client certificate), of a provider what its probe says.
func readiness(id identity, p ports) func(context.Context) error {
	if id.Function {
		return func(ctx context.Context) error { return probe.TCP(ctx, address(p.GRPC)) }
	}
	return func(ctx context.Context) error {
		return probe.HTTP(ctx, http.DefaultClient, "http://"+address(p.Health)+"/readyz")
	}
}
