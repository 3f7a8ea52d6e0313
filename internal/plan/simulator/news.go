package simulator

import (
	"slices"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// News is a fact that planners observe late, each through its own views: a wish of the user, a
// loss, or a mark. A decision that was made without the fact may still be carried out, and is
// checked by the facts of its time. The news is old when no such decision is left, that is when
//
//  1. the set of the Machine, if the fact is about one, has recorded a decision made with it,
//  2. the deployment has recorded a decision made with that record, and has read its own record back,
//  3. each set has acted on the number that the deployment recorded then, or a later one, and
//     has carried out its own records of that time, and
//  4. steps 2 and 3 have happened once more: a set gets no new number before it has acted on the
//     last one, so that the first number may still be from before the fact.
type news struct {
	// set of the Machine, and the length of the Machines' log that has the fact.
	set      string
	machines int
	// generation of the deployment that has the wish, and its replicas.
	generation int64
	replicas   int32
	// sets and deployments are the lengths of these logs that have the records of steps 1 and 2, 0
	// while there are none.
	sets, deployments int
	// acted names the sets of step 3. creating, deleting and draining are the Machines that they
	// had recorded to create, to delete, and to drain for an update.
	acted, creating, deleting, draining map[string]bool
	// again means that steps 2 and 3 have happened once.
	again, old bool
}

// newsOf a Machine, as it is after the next write.
func (c *Cluster) newsOf(m *machinev1alpha1.Machine) news {
	return news{set: m.OwnerReferences[0].Name, machines: len(c.machines.log) + 1}
}

// setDecided is called when a set recorded a decision whose view had the given number of writes of
// Machines.
func (n *news) setDecided(c *Cluster, set string, machines int) {
	if n.set == set && n.sets == 0 && machines >= n.machines {
		n.sets = len(c.sets.log)
	}
}

// deploymentDecided is called when the deployment recorded a decision by the given generation,
// whose view had the given number of writes of sets.
func (n *news) deploymentDecided(c *Cluster, generation int64, sets int) {
	switch {
	case n.deployments > 0:
	case n.set == "":
		scaled := c.deployment().Status.DesiredReplicas
		if generation >= n.generation && sets >= n.sets && scaled != nil && *scaled == n.replicas {
			n.deployments = len(c.deployments.log)
		}
	case n.sets == 0:
		if _, there := c.sets.last[n.set]; !there {
			n.sets = len(c.sets.log)
		}
	case sets >= n.sets:
		n.deployments = len(c.deployments.log)
	}
}

// age records which decisions were carried out.
func (n *news) age(c *Cluster) {
	if n.old || n.deployments == 0 || c.deploymentView.seen < n.deployments {
		return
	}
	if n.acted == nil {
		n.acted, n.creating, n.deleting, n.draining = map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	}
	waits := false
	for name, e := range c.sets.last {
		switch {
		case n.acted[name]:
		case !c.hasActed(e.object):
			waits = true
		default:
			n.acted[name] = true
			for _, m := range e.object.Status.Creating {
				n.creating[m] = true
			}
			for _, m := range e.object.Status.Dropping {
				n.deleting[m] = true
			}
			for _, m := range e.object.Status.Updating {
				n.draining[m] = true
			}
		}
	}
	for name := range n.creating {
		if _, exists := c.machines.last[name]; exists || !c.isOrdered(name) {
			delete(n.creating, name)
		}
	}
	for name := range n.deleting {
		e, exists := c.machines.last[name]
		if exists && e.object.DeletionTimestamp != nil || !exists && !c.isOrdered(name) {
			delete(n.deleting, name)
		}
	}
	for name := range n.draining {
		if e, exists := c.machines.last[name]; !exists || e.object.DeletionTimestamp != nil || !c.toDrain(e.object) {
			delete(n.draining, name)
		}
	}
	switch {
	case waits || len(n.creating)+len(n.deleting)+len(n.draining) > 0:
	case n.again:
		n.old = true
	default:
		n.again, n.sets, n.deployments, n.acted = true, len(c.sets.log), 0, nil
	}
}

// toDrain reports whether a Machine was selected for an update that has not begun.
func (c *Cluster) toDrain(m *machinev1alpha1.Machine) bool {
	if u := m.Status.Update; u != nil && u.State != machinev1alpha1.UpdateCandidate {
		return false
	}
	s, there := c.sets.last[m.OwnerReferences[0].Name]
	return there && slices.Contains(s.object.Status.Updating, m.Name) || m.Spec.InPlaceUpdate != nil && m.Spec.InPlaceUpdate.Selected
}

// isOrdered reports whether a group may still create a Machine.
func (c *Cluster) isOrdered(name string) bool {
	if c.orders == nil || c.ordersAsOf != len(c.groups.log) {
		c.orders, c.ordersAsOf = c.ordered(), len(c.groups.log)
	}
	return c.orders[name]
}

// ordered Machines are those that groups may still create.
func (c *Cluster) ordered() map[string]bool {
	out := map[string]bool{}
	for _, e := range c.groups.last {
		for _, m := range e.object.Spec.Machines {
			if m.Create && !slices.Contains(e.object.Spec.Delete, m.Name) && !slices.Contains(e.object.Status.Created, m.Name) {
				out[m.Name] = true
			}
		}
	}
	return out
}

// hasActed reports whether a set has acted on the number that the deployment recorded last.
func (c *Cluster) hasActed(s *machinev1alpha1.MachineSet) bool {
	decided := int32(0)
	recorded := c.deployment().Status.MachineSets
	if i := slices.IndexFunc(recorded, func(r machinev1alpha1.MachineSetReplicas) bool { return r.Name == s.Name }); i >= 0 {
		decided = recorded[i].Replicas
	}
	return s.DeletionTimestamp != nil || s.Spec.Replicas == decided && s.Status.DecidedGeneration >= s.Generation
}

// deployment returns the stored MachineDeployment, which must not be changed.
func (c *Cluster) deployment() *machinev1alpha1.MachineDeployment {
	return c.deployments.last[DeploymentName].object
}
