package nodekeeper

import (
	"slices"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/google/go-cmp/cmp"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/allow"
	"github.com/drover-dev/drover/internal/workernode"
)

func TestKeysThatTheConfigurationDoesNotAllowAreLeftOut(t *testing.T) {
	byDefault := func(f func([]string, string) bool) func(string) bool {
		return func(key string) bool { return f(nil, key) }
	}
	given := workernode.Parameters{
		Labels: map[string]string{"team": "a", "node-role.kubernetes.io/etcd": "", "machine.drover.dev/x": "y"},
		// The last but one may be a label, and no taint.
		Taints: []workernode.Taint{{Key: "team"}, {Key: "x.k8s.io/a"}, {Key: "kubernetes.io/os"}, {Key: "machine.drover.dev/outdated-revision"}},
	}
	for name, tc := range map[string]struct {
		labels, taints func(string) bool
		want           workernode.Parameters
		event          string
	}{
		"AllAreAllowed": {want: given},
		"SomeAreNot": {labels: byDefault(allow.NodeLabel), taints: byDefault(allow.NodeTaint), want: workernode.Parameters{
			Labels: map[string]string{"team": "a", "machine.drover.dev/x": "y"},
			Taints: []workernode.Taint{{Key: "team"}, {Key: "machine.drover.dev/outdated-revision"}},
		}, event: "kubernetes.io/os (allowedNodeTaints), node-role.kubernetes.io/etcd (allowedNodeLabels), x.k8s.io/a (allowedNodeTaints)"},
		"ThoseOfDroverAlwaysAre": {labels: func(string) bool { return false }, taints: func(string) bool { return false }, want: workernode.Parameters{
			Labels: map[string]string{"machine.drover.dev/x": "y"},
			Taints: []workernode.Taint{{Key: "machine.drover.dev/outdated-revision"}},
		}, event: "team (allowedNodeLabels), team (allowedNodeTaints)"},
	} {
		t.Run(name, func(t *testing.T) {
			events := &messages{}
			x := &Keeper{Cluster: Cluster{AllowsLabel: tc.labels, AllowsTaint: tc.taints}, Tools: &Tools{Record: events}}
			got := x.permitted(&Node{Machine: &machinev1alpha1.Machine{}}, given)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if all := strings.Join(events.all, "\n"); (tc.event == "") != (all == "") || !strings.Contains(all, tc.event) {
				t.Errorf("events %q, want %q", all, tc.event)
			}
			if len(given.Labels) != 3 || !slices.Contains(given.Taints, workernode.Taint{Key: "x.k8s.io/a"}) {
				t.Error("the parameters that were given are changed")
			}
		})
	}
}

// messages of events.
type messages struct{ all []string }

func (e *messages) Event(_ runtime.Object, ev event.Event)   { e.all = append(e.all, ev.Message) }
func (e *messages) WithAnnotations(...string) event.Recorder { return e }
