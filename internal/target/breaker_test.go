package target

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestBreaker(t *testing.T) {
	now := time.Unix(0, 0)
	calls, dead := 0, errors.New("connection refused")
	var answer error
	opened := 0
	b := &breaker{now: func() time.Time { return now }, opened: func(error) { opened++ }}
	rt := b.wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		calls++
		return &http.Response{}, answer
	}))
	call := func() error {
		_, err := rt.RoundTrip(&http.Request{}) //nolint:bodyclose // There is none.
		return err
	}
	expect := func(step string, err, want error, wantCalls int) {
		t.Helper()
		if !errors.Is(err, want) || calls != wantCalls {
			t.Fatalf("%s: error %v and %d calls, want %v and %d", step, err, calls, want, wantCalls)
		}
	}

	expect("a live cluster is called", call(), nil, 1)
	for i, err := range []error{context.Canceled, errBusy, errSlow} {
		answer = err
		expect("a call that was given up or waits for its turn reveals nothing about the cluster", call(), err, 2+i)
	}
	answer = dead
	expect("a dead cluster is called", call(), dead, 5)
	var down *downError
	if err := call(); !errors.As(err, &down) || calls != 5 {
		t.Fatalf("a second call waited for the dead cluster: %v, %d calls", err, calls)
	}
	now = now.Add(breakerPause)
	expect("one call tries again", call(), dead, 6)
	if err := call(); !errors.As(err, &down) || calls != 6 {
		t.Fatalf("the failed trial let another call through: %v, %d calls", err, calls)
	}
	now, answer = now.Add(breakerPause), nil
	expect("a trial that works opens the way", call(), nil, 7)
	expect("for all", call(), nil, 8)
	if opened != 1 {
		t.Fatalf("%d interruptions were reported, want one of five failures", opened)
	}
	answer = dead
	if expect("a cluster that dies again is called", call(), dead, 9); opened != 2 {
		t.Fatalf("%d interruptions were reported, want another one", opened)
	}
}

func TestBreakerLetsOneTrialThroughAtATime(t *testing.T) {
	now := time.Unix(0, 0)
	b := &breaker{now: func() time.Time { return now }, last: errors.New("down")}
	if trial, err := b.enter(); !trial || err != nil {
		t.Fatalf("the first is no trial: %v, %v", trial, err)
	}
	if _, err := b.enter(); err == nil {
		t.Fatal("a second trial is under way")
	}
	b.leave(true, context.Canceled)
	if trial, err := b.enter(); !trial || err != nil {
		t.Fatalf("a trial that was given up blocks the next: %v, %v", trial, err)
	}
}
