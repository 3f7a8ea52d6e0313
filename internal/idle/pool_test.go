package idle

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

func TestAConnectionIsKeptWhileItIsUsed(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var ended []string
	p := NewPool(func() time.Time { return now }, func(_ context.Context, v string) { ended = append(ended, v) })
	opened := 0
	get := func(credentials string) {
		t.Helper()
		k, err := KeyOf("config", credentials)
		if err != nil {
			t.Fatal(err)
		}
		v, err := p.Get(k, func() (string, error) { opened++; return credentials, nil })
		if err != nil || v != credentials {
			t.Errorf("got %q, %v", v, err)
		}
	}
	get("old")
	get("old")
	get("new")
	if opened != 2 {
		t.Errorf("%d connections were opened, want one per credentials", opened)
	}
	now = now.Add(After - time.Second)
	get("new")
	now = now.Add(time.Second)
	if p.Sweep(t.Context(), After); !slices.Equal(ended, []string{"old"}) {
		t.Errorf("ended %q, want the unused one", ended)
	}
	if p.Sweep(t.Context(), 0); !slices.Equal(ended, []string{"old", "new"}) {
		t.Errorf("ended %q, want all", ended)
	}
}

func TestAConnectionThatCannotBeOpenedIsNotKept(t *testing.T) {
	p := NewPool(time.Now, func(context.Context, int) {})
	k, err := KeyOf("config")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Get(k, func() (int, error) { return 0, errors.New("no server") }); err == nil {
		t.Error("want the error")
	}
	if v, err := p.Get(k, func() (int, error) { return 1, nil }); v != 1 || err != nil {
		t.Errorf("got %d, %v", v, err)
	}
}
