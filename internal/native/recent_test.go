package native

import (
	"testing"
	"time"
)

func TestARecentMemberLeavesWhenItIsOld(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	r := NewRecent[string](func() time.Time { return now }, time.Minute)
	r.Add("a")
	now = now.Add(59 * time.Second)
	r.Add("b")
	if !r.Has("a") || !r.Has("b") || r.Has("c") {
		t.Errorf("after 59 s: a %t, b %t, c %t", r.Has("a"), r.Has("b"), r.Has("c"))
	}
	now = now.Add(time.Second)
	if r.Has("a") || !r.Has("b") {
		t.Errorf("after a minute: a %t, b %t", r.Has("a"), r.Has("b"))
	}
	r.Add("b")
	if len(r.since) != 1 {
		t.Errorf("the set keeps %v", r.since)
	}
	now = now.Add(59 * time.Second)
	if !r.Has("b") {
		t.Error("b has left, although it was added again")
	}
}
