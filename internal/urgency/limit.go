package urgency

import (
	"context"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// prefix of the items of a Limiter that are not Routine.
const prefix = "urgent/"

// A Limiter has a budget for Routine reconciles, and one for Starting and Deleting ones. It is the limiter of all controllers of a process.
type Limiter struct{ routine, urgent ratelimiter.RateLimiter }

// NewLimiter returns a Limiter whose budgets are perSecond reconciles a second each, and ten times as many at once.
func NewLimiter(perSecond int) *Limiter {
	return &Limiter{routine: ratelimiter.NewGlobal(perSecond), urgent: ratelimiter.NewGlobal(perSecond)}
}

func (l *Limiter) of(item string) ratelimiter.RateLimiter {
	if strings.HasPrefix(item, prefix) {
		return l.urgent
	}
	return l.routine
}

// When returns the time that a reconcile must wait.
func (l *Limiter) When(item string) time.Duration { return l.of(item).When(item) }

// Forget an item, whose reconcile is about to begin.
func (l *Limiter) Forget(item string) { l.of(item).Forget(item) }

// NumRequeues of an item.
func (l *Limiter) NumRequeues(item string) int { return l.of(item).NumRequeues(item) }

// Limit returns a reconciler that calls inner within the limits of a [Limiter]. The name is that of the controller.
func Limit(name string, inner reconcile.Reconciler, judge Judge, l ratelimiter.RateLimiter) reconcile.Reconciler {
	routine, urgent := ratelimiter.NewReconciler(name, inner, l), ratelimiter.NewReconciler(prefix+name, inner, l)
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		if judge(req) == Routine {
			return routine.Reconcile(ctx, req)
		}
		return urgent.Reconcile(ctx, req)
	})
}
