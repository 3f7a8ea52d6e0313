package urgency

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// NewQueue returns the NewQueue of a controller's options: a priority queue whose priorities are the levels of a Judge.
func NewQueue(judge Judge) func(controller string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return func(controller string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return &queue{judge: judge, PriorityQueue: priorityqueue.New(controller, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter })}
	}
}

type queue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	judge Judge
}

func (q *queue) Add(req reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, req) }

func (q *queue) AddAfter(req reconcile.Request, d time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: d}, req)
}

func (q *queue) AddRateLimited(req reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, req)
}

// AddWithOpts adds requests with the present levels of their objects: the one of the event, or of the reconcile before, may be
// over. Only a priority below all levels counts: handlers give it to objects that they list at the start, and that did not change.
func (q *queue) AddWithOpts(o priorityqueue.AddOpts, reqs ...reconcile.Request) {
	given := o.Priority
	for _, req := range reqs {
		level := int(q.judge(req))
		if o.Priority = &level; level == int(Routine) && given != nil && *given < level {
			o.Priority = given
		}
		q.PriorityQueue.AddWithOpts(o, req)
	}
}
