package simulator

import (
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// aged are the facts about Machines that are replaced because of their age.
type aged struct {
	// due names the Machines whose replacement began because of their age.
	due map[string]bool
	// last is the one of them that was the last to begin, and lastTime the time.
	last     string
	lastTime time.Time
	// OnAged is called when a replacement because of age begins, unless it is nil.
	OnAged func(m *machinev1alpha1.Machine)
}

// onAged checks that a replacement because of age is due, that it is the only one, and that no rollout is in progress.
func (w *watcher) onAged(c *Cluster, m *machinev1alpha1.Machine) {
	maxAge := c.deployment().Spec.Rollout.MaxAge
	age := c.Now.Sub(m.CreationTimestamp.Time)
	switch {
	case maxAge == nil && len(w.wishes) == 1:
		w.violated("replacement of %s by its age, though none is configured", m.Name)
	case maxAge != nil && len(w.wishes) == 1 && age < maxAge.Duration*8/10-time.Second:
		w.violated("replacement of %s by its age of %s, of at most %s", m.Name, age, maxAge.Duration)
	}
	if e, there := c.machines.last[w.last]; there && e.name != m.Name && e.object != nil && (e.object.DeletionTimestamp == nil || e.object.Status.ProviderID != "") && !w.isKept(c, w.last) {
		w.violated("replacement of %s by its age, while %s is replaced, since %s", m.Name, w.last, w.lastTime)
	}
	if len(w.wishes) == 1 && (w.latest().paused || !w.isAlone(c)) {
		w.violated("replacement of %s by its age, during a rollout or a pause", m.Name)
	}
	w.due[m.Name], w.last, w.lastTime = true, m.Name, c.Now
	if w.OnAged != nil {
		w.OnAged(m)
	}
}

// isKept reports whether the replacement of a Machine ended without a deletion of it.
func (w *watcher) isKept(c *Cluster, name string) bool {
	for _, s := range c.sets.last {
		for _, r := range s.object.Status.Replacing {
			if r.Machine == name {
				return false
			}
		}
	}
	return c.machines.last[name].object.DeletionTimestamp == nil
}
