package attempt

import (
	"errors"
	"testing"
	"time"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
)

func TestFailuresAreForgottenAfterASuccess(t *testing.T) {
	now, f := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Failures{}
	for range 3 {
		f.Add(now, errors.New("no room"), fn.ErrorCapacityExhausted, 1, "account")
	}
	if f.Last() == nil || f.Wait(now, 1, "account") != 2*time.Minute {
		t.Errorf("waits %s after %v", f.Wait(now, 1, "account"), f.Last())
	}
	f.Clear()
	if f.Last() != nil || f.Wait(now, 1, "account") != 0 {
		t.Errorf("waits %s after %v, want no failure", f.Wait(now, 1, "account"), f.Last())
	}
	if got := f.Add(now, errors.New("no room"), fn.ErrorCapacityExhausted, 1, "account"); got != 30*time.Second {
		t.Errorf("waits %s, want the first delay", got)
	}
}

func TestAMemoryHasOneNotePerObject(t *testing.T) {
	m := &Memory[int]{}
	*m.Of("a") = 1
	if *m.Of("a") != 1 || *m.Of("b") != 0 {
		t.Errorf("the notes are %d and %d", *m.Of("a"), *m.Of("b"))
	}
	if m.Forget("a"); *m.Of("a") != 0 {
		t.Error("a note was not forgotten")
	}
}
