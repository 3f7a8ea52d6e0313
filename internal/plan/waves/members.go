package waves

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/allow"
)

// A Member is a MachineDeployment that waves may select.
type Member struct {
	Namespace, Name string
	UID             types.UID
	// Labels of the NodePool that controls it, or else its own.
	Labels map[string]string
	// Cluster that its Machines join.
	Cluster machinev1alpha1.ClusterReference
	State   machinev1alpha1.MemberState
	// Completed is when its last rollout was complete, zero if that is not known.
	Completed time.Time
}

// WaveOf returns the index of the first wave of a policy that selects a member, and -1 if none does.
func WaveOf(p *machinev1alpha1.RolloutPolicy, m Member) int {
	return slices.IndexFunc(p.Spec.Waves, func(w machinev1alpha1.RolloutWave) bool { return selects(w, m) })
}

func selects(w machinev1alpha1.RolloutWave, m Member) bool {
	if !(machinev1alpha1.Selector{MatchLabels: w.MatchLabels}).Matches(m.Labels) {
		return false
	}
	if len(w.Namespaces) > 0 && !slices.ContainsFunc(w.Namespaces, func(p clusterv1alpha1.NamespacePattern) bool { return allow.Matches(string(p), m.Namespace) }) {
		return false
	}
	// A ProviderConfig of a namespace may have any name, so it is none of the platform team's clusters.
	return len(w.Clusters) == 0 || m.Cluster.Kind == clusterv1alpha1.ClusterProviderConfigGroupVersionKind.Kind && slices.Contains(w.Clusters, m.Cluster.Name)
}

// Before returns the waves before that of a member, as a sentence without its full stop. It is empty if there is
// nothing.
func Before(p *machinev1alpha1.RolloutPolicy, m Member) string {
	i := WaveOf(p, m)
	if i <= 0 {
		return ""
	}
	earlier := make([]string, 0, i)
	for j, w := range p.Spec.Waves[:i] {
		text := w.Name
		if j < len(p.Status.Waves) && p.Status.Waves[j].Name == w.Name {
			text += fmt.Sprintf(" (%s)", p.Status.Waves[j].State)
		}
		earlier = append(earlier, text)
	}
	return fmt.Sprintf("It is in wave %s of RolloutPolicy %s, and begins when the waves before it are complete and have soaked: %s", p.Spec.Waves[i].Name, p.Name, strings.Join(earlier, ", "))
}
