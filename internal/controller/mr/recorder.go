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
	// An event that says the same of the same object is sent again after so long.
	repeatAfter = time.Hour
	// So many events are remembered.
	remembered = 8192
)

// Reasons of the managed reconciler's events that only report a call, where our own events or
// the status have more.
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

// Event is sent unless the last event with its reason said the same.
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

// WithAnnotations returns the Recorder as it is: the managed reconciler would only
// add the external name, which the object has.
func (r *Recorder) WithAnnotations(...string) event.Recorder { return r }
