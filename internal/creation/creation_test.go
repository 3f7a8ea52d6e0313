package creation

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/local/v1alpha1"
)

// apiServer keeps the latest annotations, or refuses to write them.
type apiServer struct {
	away  bool
	saved map[string]string
	ctx   error
}

func (s *apiServer) UpdateCriticalAnnotations(ctx context.Context, o client.Object) error {
	s.ctx = ctx.Err()
	if s.away {
		return errors.New("connection refused")
	}
	s.saved = map[string]string{}
	for k, v := range o.GetAnnotations() {
		s.saved[k] = v
	}
	return nil
}

var created = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// pendingVM is a VM whose creation was just started, right after a failed one.
func pendingVM() *v1alpha1.VirtualMachine {
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{UID: "uid"}}
	meta.SetExternalCreateFailed(vm, created)
	meta.SetExternalCreatePending(vm, created)
	return vm
}

func TestACreationWithUnknownResultStaysPending(t *testing.T) {
	s, vm := &apiServer{}, pendingVM()
	c := New(s)
	c.MarkUnknown(vm)
	meta.SetExternalCreateFailed(vm, created) // As crossplane-runtime does for every error.
	if err := c.UpdateCriticalAnnotations(context.Background(), vm); err != nil {
		t.Fatal(err)
	}
	again := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{UID: "uid", Annotations: s.saved}}
	if !meta.ExternalCreateIncomplete(again) {
		t.Errorf("annotations %v do not say that the creation is incomplete", s.saved)
	}
	// It is known of the first creation, not of the next.
	meta.SetExternalCreateFailed(again, created.Add(time.Second))
	if err := c.UpdateCriticalAnnotations(context.Background(), again); err != nil {
		t.Fatal(err)
	}
	if meta.ExternalCreateIncomplete(again) {
		t.Error("a later failure counts as unknown, too")
	}
}

func TestARefusedRepetitionLeavesTheResultUnknown(t *testing.T) {
	s, vm := &apiServer{}, pendingVM()
	c := New(s)
	c.StaysUnknown(vm, created.Add(-time.Minute))
	meta.SetExternalCreateFailed(vm, created) // As crossplane-runtime does for every error.
	if err := c.UpdateCriticalAnnotations(context.Background(), vm); err != nil {
		t.Fatal(err)
	}
	again := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{UID: "uid", Annotations: s.saved}}
	if at := meta.GetExternalCreatePending(again); !meta.ExternalCreateIncomplete(again) || !at.Equal(created.Add(-time.Minute)) {
		t.Errorf("annotations %v do not say that the creation of a minute before is incomplete", s.saved)
	}
}

func TestACreationThatFailedIsRecordedAsSuch(t *testing.T) {
	s, vm := &apiServer{}, pendingVM()
	meta.SetExternalCreateFailed(vm, created.Add(time.Second))
	if err := New(s).UpdateCriticalAnnotations(context.Background(), vm); err != nil {
		t.Fatal(err)
	}
	if s.saved[meta.AnnotationKeyExternalCreateFailed] == "" || meta.ExternalCreateIncomplete(vm) {
		t.Errorf("annotations %v do not say that the creation failed", s.saved)
	}
}

func TestTheRecordIsSavedWhileTheProviderStops(t *testing.T) {
	s := &apiServer{}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := New(s).UpdateCriticalAnnotations(ctx, pendingVM()); err != nil {
		t.Fatal(err)
	}
	if s.ctx != nil {
		t.Errorf("saved with a context that is done: %v", s.ctx)
	}
}

func TestANameThatCouldNotBeSavedIsSavedLater(t *testing.T) {
	s, vm := &apiServer{away: true}, pendingVM()
	c := New(s)
	meta.SetExternalName(vm, "vm-1")
	meta.SetExternalCreateSucceeded(vm, created.Add(time.Second))
	if c.UpdateCriticalAnnotations(context.Background(), vm) == nil {
		t.Fatal("no error")
	}
	vm = pendingVM()
	if c.Initialize(context.Background(), vm) == nil {
		t.Fatal("no error while the API server is away")
	}
	s.away, vm = false, pendingVM()
	if err := c.Initialize(context.Background(), vm); err != nil {
		t.Fatal(err)
	}
	if s.saved[meta.AnnotationKeyExternalName] != "vm-1" || meta.ExternalCreateIncomplete(vm) {
		t.Errorf("annotations %v do not have the name", s.saved)
	}
	s.saved = nil
	if err := c.Initialize(context.Background(), vm); err != nil || s.saved != nil {
		t.Errorf("saved again: %v, error %v", s.saved, err)
	}
}

func TestAnUnknownCreationHoldsOnlyWhatLives(t *testing.T) {
	now := metav1.Now()
	for name, tc := range map[string]struct {
		deleted *metav1.Time
		want    bool
	}{
		"WhatLivesIsHeld":    {nil, true},
		"WhatIsDeletedIsNot": {&now, false},
	} {
		t.Run(name, func(t *testing.T) {
			vm := pendingVM()
			meta.RemoveAnnotations(vm, meta.AnnotationKeyExternalCreateFailed)
			vm.DeletionTimestamp = tc.deleted
			if err := New(&apiServer{}).Initialize(context.Background(), vm); err != nil {
				t.Fatal(err)
			}
			if got := meta.ExternalCreateIncomplete(vm); got != tc.want {
				t.Errorf("held: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestACreationIsNotTriedAgainInTheSecondOfAFailedOne(t *testing.T) {
	for name, tc := range map[string]struct {
		since time.Duration
		want  bool // waits
	}{
		"InTheSameSecondItWaits":    {999 * time.Millisecond, true},
		"InTheNextItDoesNot":        {time.Second, false},
		"NorDoesItLater":            {time.Hour, false},
		"AClockThatWentBackMayWait": {-time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(&apiServer{})
			c.now = func() time.Time { return created.Add(tc.since) }
			ctx, cancel := context.WithCancel(context.Background())
			cancel() // So that waiting shows as an error.
			if err := c.Initialize(ctx, pendingVM()); (err != nil) != tc.want {
				t.Errorf("error %v, want it to wait: %t", err, tc.want)
			}
		})
	}
}
