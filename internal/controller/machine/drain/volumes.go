package drain

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// maxMoving is how many volumes a status names. A Node usually has a few dozen.
const maxMoving = 256

// An attachment of a PersistentVolume to a Node.
type attachment struct {
	volume, node string
	// attached means that the volume is attached, not only requested to be.
	attached bool
}

// volumeView has the facts about the volumes of a Node that is drained.
type volumeView struct {
	now  time.Time
	node string
	// used by pods that are still on the Node.
	used        map[string]bool
	attachments []attachment
	// silent means that the kubelet of the Node no longer unmounts volumes.
	silent           bool
	detach, reattach time.Duration
}

// here returns the volumes that are attached to the Node, or about to be.
func (v volumeView) here() map[string]bool {
	out := map[string]bool{}
	for _, a := range v.attachments {
		if a.node == v.node {
			out[a.volume] = true
		}
	}
	return out
}

// move returns the next state of the volumes, given their recorded state.
func (v volumeView) move(was []machinev1alpha1.MovingVolume) []machinev1alpha1.MovingVolume {
	here, elsewhere := v.here(), map[string]bool{}
	for _, a := range v.attachments {
		if a.node != v.node && a.attached {
			elsewhere[a.volume] = true
		}
	}
	before := map[string]machinev1alpha1.MovingVolume{}
	for _, m := range was {
		before[m.Name] = m
	}

	out := map[string]machinev1alpha1.MovingVolume{}
	for name := range here {
		if !v.used[name] && !v.silent {
			out[name] = v.detaching(before[name], name)
		}
	}
	for name, m := range before {
		if here[name] || elsewhere[name] || v.used[name] || m.State == machinev1alpha1.VolumeStuck {
			continue
		}
		if m.State != machinev1alpha1.VolumeReattaching {
			m = machinev1alpha1.MovingVolume{Name: name, State: machinev1alpha1.VolumeReattaching, Since: v.stamp()}
		}
		if v.now.Before(m.Since.Add(v.reattach)) {
			out[name] = m
		}
	}
	sorted := slices.SortedFunc(maps.Values(out), func(a, b machinev1alpha1.MovingVolume) int { return cmp.Compare(a.Name, b.Name) })
	return sorted[:min(len(sorted), maxMoving)]
}

func (v volumeView) detaching(was machinev1alpha1.MovingVolume, name string) machinev1alpha1.MovingVolume {
	switch {
	case was.State == machinev1alpha1.VolumeStuck:
		return was
	case was.State != machinev1alpha1.VolumeDetaching:
		return machinev1alpha1.MovingVolume{Name: name, State: machinev1alpha1.VolumeDetaching, Since: v.stamp()}
	case !v.now.Before(was.Since.Add(v.detach)):
		return machinev1alpha1.MovingVolume{Name: name, State: machinev1alpha1.VolumeStuck, Since: v.stamp()}
	}
	return was
}

func (v volumeView) stamp() metav1.Time { return metav1.NewTime(v.now.Truncate(time.Second)) }

// inState returns the names of the volumes in any of the states.
func inState(moving []machinev1alpha1.MovingVolume, states ...machinev1alpha1.VolumeState) []string {
	var out []string
	for _, m := range moving {
		if slices.Contains(states, m.State) {
			out = append(out, m.Name)
		}
	}
	return out
}
