package mr

import (
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	// repeatAfter is the time after which an event with the same message and object is sent again.
	repeatAfter = time.Hour
	// remembered is the number of events that are kept in memory.
	remembered = 8192
)

// uninformative are the reasons of the managed reconciler's events that carry no detail. Drover's own
// events or the status have it.
var uninformative = map[event.Reason]bool{
	machinev1alpha1.EventCreatedExternalResource: true,
	machinev1alpha1.EventUpdatedExternalResource: true,
	machinev1alpha1.EventDeletedExternalResource: true,
	machinev1alpha1.EventReconcileRequestHandled: true,
}

// Recorder sends each event once. Every event is a write to the API server, and the
// managed reconciler would send its own on every attempt.
type Recorder struct {
	next event.Recorder
	sent *lru.Cache
	now  func() time.Time
}

// NewRecorder returns a Recorder that sends to next.
func NewRecorder(next event.Recorder) *Recorder {
	return &Recorder{next: next, sent: lru.New(remembered), now: time.Now}
}

type eventKey struct {
	uid    types.UID
	reason event.Reason
}

type sentEvent struct {
	message string
	at      time.Time
}

// Event sends an event unless the last one with its reason had the same message.
func (r *Recorder) Event(obj runtime.Object, e event.Event) {
	if uninformative[e.Reason] {
		return
	}
	if o, err := meta.Accessor(obj); err == nil {
		key := eventKey{uid: o.GetUID(), reason: e.Reason}
		if was, ok := r.sent.Get(key); ok {
			if s, ok := was.(sentEvent); ok && s.message == e.Message && r.now().Sub(s.at) < repeatAfter {
				return
			}
		}
		r.sent.Add(key, sentEvent{message: e.Message, at: r.now()})
	}
	r.next.Event(obj, e)
}

// WithAnnotations returns the same Recorder: the managed reconciler would only add the external name,
// which the object has.
func (r *Recorder) WithAnnotations(...string) event.Recorder { return r }
