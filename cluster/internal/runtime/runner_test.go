package runtime

import (
	"context"
	"errors"
	"testing"

	"github.com/drover-dev/drover/cluster/internal/process"
)

func TestAProcessThatWasReplacedByNoneIsNotReported(t *testing.T) {
	group := &process.Group{}
	r := &runner{group: group, onChange: func(identity, process.Status) {}, running: map[string]*running{}, ports: map[string]ports{}}
	old := identity{Component: "provider-a", Revision: "provider-a-1"}
	spec := process.Spec{Name: "provider-a", Path: "/bin/sleep", Args: []string{"60"}}
	if err := r.ensure(old, spec, func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(group.StopAll)
	next := identity{Component: "provider-a", Revision: "provider-a-2"}
	refused := errors.New("no token")
	if err := r.ensure(next, spec, func(context.Context) error { return refused }); !errors.Is(err, refused) {
		t.Fatalf("got %v", err)
	}
	if left := group.Status(); len(left) != 0 {
		t.Errorf("the stopped process is reported: %+v", left)
	}
}
