package native

import (
	"errors"
	"testing"
	"time"
)

func TestAReferenceIsFoundOnceAMinute(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r, found := NewReferences(func() time.Time { return now }), 0
	get := func(key any, err error) int {
		t.Helper()
		release, held := r.Hold(t.Context())
		if held != nil {
			t.Fatal(held)
		}
		defer release()
		n, got := Reference(r, key, func() (int, error) {
			found++
			return found, err
		})
		if !errors.Is(got, err) {
			t.Fatalf("error %v, want %v", got, err)
		}
		return n
	}
	steps := []struct {
		what  string
		after time.Duration
		key   any
		err   error
		found int // calls of find so far
	}{
		{"TheFirstTime", 0, "a", nil, 1},
		{"WithinAMinute", time.Minute - 1, "a", nil, 1},
		{"AnotherKey", 0, "b", nil, 2},
		{"AfterAMinute", 1, "a", nil, 3},
		{"AnErrorIsNotKept", 0, "c", errors.New("no such image"), 4},
		{"SoItIsFoundNext", 0, "c", nil, 5},
	}
	for _, s := range steps {
		now = now.Add(s.after)
		get(s.key, s.err)
		if found != s.found {
			t.Fatalf("%s: %d calls, want %d", s.what, found, s.found)
		}
	}
	for i := range 2 * maxReferences {
		get(i, nil)
	}
	if n := len(r.found); n > maxReferences {
		t.Errorf("%d objects are kept, want at most %d", n, maxReferences)
	}
}

func TestAViewIsUsedOnce(t *testing.T) {
	var v Views[string]
	v.Remember("vm", "running")
	if got := v.Recall("vm"); got != "running" {
		t.Errorf("view %q", got)
	}
	if got := v.Recall("vm"); got != "" {
		t.Errorf("the view %q is used twice", got)
	}
}
