package vsphere

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"
)

// betweenWrites is the minimum time between two changes of the rules of a vSphere cluster. VMs that
// join meanwhile share the next change.
const betweenWrites = 2 * time.Second

// clusterRules changes the anti-affinity rules of one vSphere cluster. VMs that wait at the same time
// share a batch: one read, and at most one change. All state can be lost: after a restart the rules are
// read again.
type clusterRules struct {
	cluster types.ManagedObjectReference

	mu sync.Mutex
	// next is the batch that has not begun, nil if no VM waits.
	next *ruleBatch

	// running is held by the batch that runs, and guards the fields below.
	running sync.Mutex
	// task is the last change, until its result is known.
	task    string
	wroteAt time.Time
	// failures is the number of changes in a row that failed, and failed is the last failure.
	failures int
	failed   error
}

// A ruleBatch is the request of several VMs. After done is closed, it does not change.
type ruleBatch struct {
	names   map[string]bool
	done    chan struct{}
	settled map[string]bool
	errs    map[string]error
	// err is a failure of the whole batch.
	err error
}

// rulesOf returns the rules of a vSphere cluster.
func (v *vcenter) rulesOf(cluster types.ManagedObjectReference) *clusterRules {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.rules == nil {
		v.rules = map[types.ManagedObjectReference]*clusterRules{}
	}
	r := v.rules[cluster]
	if r == nil {
		r = &clusterRules{cluster: cluster}
		v.rules[cluster] = r
	}
	return r
}

// settle reports whether a rule has all VMs that it must have, by a read that began after the call. If
// it does not, settle starts a change, whose result a later call reads.
func (r *clusterRules) settle(ctx context.Context, c *vim25.Client, name string, now func() time.Time) (bool, error) {
	b, isFirst := r.enter(name)
	if isFirst {
		r.running.Lock()
		r.mu.Lock()
		r.next = nil
		r.mu.Unlock()
		b.err = r.run(ctx, c, b, now())
		close(b.done)
		r.running.Unlock()
	}
	select {
	case <-b.done:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if b.err != nil {
		return false, b.err
	}
	return b.settled[name], b.errs[name]
}

// enter adds a request to the next batch. The first one of a batch runs it.
func (r *clusterRules) enter(name string) (b *ruleBatch, isFirst bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next, isFirst = &ruleBatch{names: map[string]bool{}, done: make(chan struct{}), settled: map[string]bool{}, errs: map[string]error{}}, true
	}
	r.next.names[name] = true
	return r.next, isFirst
}

func (r *clusterRules) run(ctx context.Context, c *vim25.Client, b *ruleBatch, now time.Time) error {
	if isRunning, err := r.lookAtChange(ctx, c); err != nil || isRunning {
		return err
	}
	view, err := readCluster(ctx, c, r.cluster)
	if err != nil {
		return err
	}
	var spec []types.ClusterRuleSpec
	for _, name := range slices.Sorted(maps.Keys(b.names)) {
		changes, err := ruleChanges(view, name)
		b.settled[name], b.errs[name] = err == nil && len(changes) == 0, err
		spec = append(spec, changes...)
	}
	switch {
	case len(spec) == 0:
		r.failures, r.failed = 0, nil
		return nil
	// One failure is ignored: another client may have created the rule, or deleted one of its VMs,
	// after the read.
	case r.failed != nil && r.failures > 1:
		err, r.failed = r.failed, nil
		for name := range b.names {
			if !b.settled[name] && b.errs[name] == nil {
				b.errs[name] = err
			}
		}
		return nil
	case now.Sub(r.wroteAt) < betweenWrites:
		return nil
	}
	t, err := object.NewClusterComputeResource(c, r.cluster).Reconfigure(ctx, &types.ClusterConfigSpecEx{RulesSpec: spec}, true)
	// A lost response may be that of a change, so it counts as one.
	r.wroteAt = now
	if err != nil {
		return err
	}
	r.task = t.Reference().Value
	return nil
}

// lookAtChange reports whether the last change is running, and records its failure.
func (r *clusterRules) lookAtChange(ctx context.Context, c *vim25.Client) (bool, error) {
	t, err := lookAtTask(ctx, c, r.task)
	switch {
	case err != nil || t.running:
		return t.running, err
	case t.err != nil:
		r.failures, r.failed = r.failures+1, t.err
	}
	r.task = ""
	return false, nil
}
