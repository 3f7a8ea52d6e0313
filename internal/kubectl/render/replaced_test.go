package render_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
	"github.com/drover-dev/drover/internal/kubectl/render"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

func TestReplacements(t *testing.T) {
	of := view.Ref{Kind: view.NodePool, Namespace: "team", Name: "web"}
	entry := func(e machinev1alpha1.ReplacedMachine) diagnosis.Replacement {
		e.Time = metav1.NewTime(now)
		return diagnosis.Replacement{Of: of, ReplacedMachine: e}
	}
	all := []diagnosis.Replacement{
		entry(machinev1alpha1.ReplacedMachine{Machine: "web-a", Node: "node-a", Reason: machinev1alpha1.ReplacedFailed, FailureReason: machinev1alpha1.FailureNodeUnhealthy,
			Message: "Ready is False\x1b[2J", DrainDuration: ptr.To(metav1.Duration{Duration: 3 * time.Minute})}),
		entry(machinev1alpha1.ReplacedMachine{Machine: "web-b", Node: "node-b", Reason: machinev1alpha1.ReplacedRequested, RequestedBy: "alice"}),
		entry(machinev1alpha1.ReplacedMachine{Machine: "web-c", Node: "node-c", Reason: machinev1alpha1.ReplacedRequested}),
		entry(machinev1alpha1.ReplacedMachine{Machine: "web-d", Node: "node-d", Reason: machinev1alpha1.ReplacedRollout, Revision: 5, Message: "to v2"}),
		entry(machinev1alpha1.ReplacedMachine{Machine: "web-e", Reason: machinev1alpha1.ReplacedDeleted}),
	}
	want := `
NODE    TIME                  REASON                 BY                                     DRAIN  MACHINE  OF      MESSAGE
node-a  2026-01-01T12:00:00Z  Failed: NodeUnhealthy  rule spec.remediation                  3m     web-a    np/web  Ready is False[2J
node-b  2026-01-01T12:00:00Z  Requested              user alice                             -      web-b    np/web  -
node-c  2026-01-01T12:00:00Z  Requested              annotation machine.drover.dev/replace  -      web-c    np/web  -
node-d  2026-01-01T12:00:00Z  Rollout                rollout of revision 5                  -      web-d    np/web  to v2
-       2026-01-01T12:00:00Z  Deleted                unknown: see the audit log             -      web-e    np/web  -
`
	if got := render.Plain(0, now).Replacements(all); got != want[1:] {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
	if out := render.Plain(100, now).Replacements(all); strings.Contains(out, "MACHINE") || !strings.Contains(out, "DRAIN") {
		t.Errorf("in 100 columns:\n%s", out)
	}
	if out := render.Plain(0, now).Replacements(nil); !strings.Contains(out, "No Machine") {
		t.Error(out)
	}
}
