package native

import (
	"errors"
	"testing"
	"time"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
)

// TestRefusedCredentialsAreTriedRarely counts the calls that reach a cloud: many clouds lock an account after a few wrong
// passwords.
func TestRefusedCredentialsAreTriedRarely(t *testing.T) {
	wrong := &Error{Class: fn.ErrorPermissionDenied, Err: errors.New("wrong password"), Credentials: true}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a := &account[Resource]{now: func() time.Time { return now }}
	for i, step := range []struct {
		after   time.Duration
		answer  error
		reaches bool
	}{
		{0, nil, true}, {0, wrong, true},
		{0, wrong, false}, {59 * time.Second, wrong, false}, {time.Second, wrong, true},
		{119 * time.Second, wrong, false}, {time.Second, wrong, true},
		{239 * time.Second, wrong, false}, {time.Second, wrong, true},
		{299 * time.Second, wrong, false}, {time.Second, nil, true}, // The longest pause is over, and the password is correct again.
		{0, nil, true}, {0, wrong, true}, {time.Minute, nil, true},
	} {
		now = now.Add(step.after)
		reached := false
		err := a.do(func() error { reached = true; return step.answer })
		if reached != step.reaches {
			t.Fatalf("step %d: the call reaches the cloud: %t, want %t", i, reached, step.reaches)
		}
		if !reached && !errors.Is(err, wrong) {
			t.Errorf("step %d: the error is %v, want that of the refusal", i, err)
		}
	}
}
