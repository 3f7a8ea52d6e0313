package simulator

import (
	"context"
	"errors"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// downTime is how long a provider takes to restart.
const downTime = 3 * time.Second

// errDied is the result of a call during which the process died.
var errDied = errors.New("the process of the provider died")

// restarts are the restarts of a provider. The Machines of each namespace have a process of their
// own, so that a restart affects no other namespace.
type restarts struct {
	mu sync.Mutex
	// due are the namespaces whose process dies once it has created its next VM.
	due map[string]bool
	// downUntil is when the process runs again, and died how often it died.
	downUntil map[string]time.Time
	died      map[string]int
	// onDeath is called with the namespace.
	onDeath func(namespace string)
}

func newRestarts(onDeath func(namespace string)) *restarts {
	return &restarts{onDeath: onDeath, due: map[string]bool{}, downUntil: map[string]time.Time{}, died: map[string]int{}}
}

// at makes the process of a namespace die at the next creation.
func (r *restarts) at(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due[namespace] = true
}

// die reports whether the process of a namespace is due to die, and makes it die if so.
func (r *restarts) die(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.due[namespace] {
		return false
	}
	delete(r.due, namespace)
	r.downUntil[namespace] = time.Now().Add(downTime)
	r.died[namespace]++
	r.onDeath(namespace)
	return true
}

func (r *restarts) count(namespace string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.died[namespace]
}

// untilUp returns the time until the process runs again, 0 if it runs.
func (r *restarts) untilUp(namespace string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, time.Until(r.downUntil[namespace]))
}

type processKey struct{}

// reconcilerOf returns the reconciler of a process that may die. A dead process writes nothing.
// After the restart, it reconciles all resources.
func (r *restarts) reconcilerOf(of reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		if wait := r.untilUp(req.Namespace); wait > 0 {
			return reconcile.Result{RequeueAfter: wait}, nil
		}
		ctx, end := context.WithCancel(ctx)
		defer end()
		result, err := of.Reconcile(context.WithValue(ctx, processKey{}, end), req)
		if wait := r.untilUp(req.Namespace); wait > 0 {
			return reconcile.Result{RequeueAfter: wait}, nil
		}
		return result, err
	})
}

// endProcess ends the process that runs a reconcile.
func endProcess(ctx context.Context) {
	if end, ok := ctx.Value(processKey{}).(context.CancelFunc); ok {
		end()
	}
}
