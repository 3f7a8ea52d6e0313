package process

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A Group is the processes of an instance, by name.
type Group struct {
	mu        sync.Mutex
	processes []*Process
}

// Add adds a process. It replaces a process with the same name, which must be stopped.
func (g *Group) Add(p *Process) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, old := range g.processes {
		if old.spec.Name == p.spec.Name {
			g.processes[i] = p
			return
		}
	}
	g.processes = append(g.processes, p)
}

// Remove removes a process, which must be stopped.
func (g *Group) Remove(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.processes = slices.DeleteFunc(g.processes, func(p *Process) bool { return p.spec.Name == name })
}

// Get returns a process. Its error lists the names of all processes.
func (g *Group) Get(name string) (*Process, error) {
	var names []string
	for _, p := range g.all() {
		if p.spec.Name == name {
			return p, nil
		}
		names = append(names, p.spec.Name)
	}
	return nil, fmt.Errorf("component %q: there is none of that name, only %s", name, strings.Join(names, ", "))
}

// Status returns the status of all processes, in the order in which they were added.
func (g *Group) Status() []Status {
	var all []Status
	for _, p := range g.all() {
		all = append(all, p.Status())
	}
	return all
}

// StopAll stops all processes, the last added first, because a process may need those that were
// added before it.
func (g *Group) StopAll() {
	for _, p := range slices.Backward(g.all()) {
		p.Stop()
	}
}

func (g *Group) all() []*Process {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.processes)
}
