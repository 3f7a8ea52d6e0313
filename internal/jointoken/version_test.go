package jointoken

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestNoTokenIsMintedForAKubeletThatTheAPIServerDoesNotSupport, and it is minted when the API
// server is upgraded.
func TestNoTokenIsMintedForAKubeletThatTheAPIServerDoesNotSupport(t *testing.T) {
	f := newFixture(t)
	f.m.Spec.Version = "v1.36.1"
	version, failed := "v1.35.4", error(nil)
	f.cluster.Version = func(context.Context) (string, error) { return version, failed }

	var problem *ProblemError
	if _, err := f.tryApply(); !errors.As(err, &problem) {
		t.Fatalf("error %v", err)
	}
	if p := problem.Problem; p.Reason != "VersionSkew" || !strings.Contains(p.Message, "v1.36.1") || !strings.Contains(p.Message, "v1.35.4") {
		t.Errorf("problem %+v", p)
	}
	if f.token() != nil || f.secret() != nil {
		t.Errorf("token %v, Secret %v", f.token(), f.secret())
	}

	failed = errLost
	if _, err := f.tryApply(); !errors.Is(err, errLost) || f.token() != nil {
		t.Errorf("without an answer: %v, token %v", err, f.token())
	}
	version, failed = "v1.36.0", nil
	f.expectMatch(f.apply())

	// A VM may exist: its token is kept.
	version = "v1.41.0"
	f.after(50 * time.Minute)
	f.expectMatch(f.apply(frozen))
}

func TestAVersionThatIsNotKnownKeepsNoMachineFromJoining(t *testing.T) {
	f := newFixture(t)
	f.m.Spec.Version = "v1.36.1"
	f.cluster.Version = func(context.Context) (string, error) { return "", nil }
	f.expectMatch(f.apply())
}
