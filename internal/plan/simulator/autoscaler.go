package simulator

import (
	"time"

	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	// nodeProvisionTime is the default of the autoscaler's --max-node-provision-time.
	nodeProvisionTime = 15 * time.Minute
	// groupBackoff is the default of its --initial-node-group-backoff-duration.
	groupBackoff = 5 * time.Minute
)

// An Autoscaler deletes Machines of the MachineDeployment as the unmodified cluster-autoscaler does
// with its provider clusterapi: it marks a Machine, and lowers replicas by one. It deletes a
// Machine that failed before it had a Node, and one whose Node has not registered for 15 minutes.
// It repeats that in each loop while the Machine exists, because it does not recognize its own
// mark.
type Autoscaler struct {
	// MinSize of the node group. The autoscaler never scales below it.
	MinSize int32
	// BackoffUntil is the time from which the autoscaler scales the group up again after a failure.
	BackoffUntil time.Time

	// seen has the Machines without a registered Node, and since when.
	seen map[string]time.Time
}

// Loop runs the autoscaler once.
func (a *Autoscaler) Loop(c *Cluster) {
	d := c.Deployment()
	seen := map[string]time.Time{}
	for _, m := range c.Machines() {
		if !d.Spec.Selector.Matches(m.Labels) || m.DeletionTimestamp != nil {
			continue
		}
		s := m.Status
		failed := s.FailureMessage != "" && s.Phase == machinev1alpha1.MachineFailed
		switch {
		case failed && s.NodeRef == nil:
			a.BackoffUntil = c.Now.Add(groupBackoff)
			a.delete(c, m.Name)
		// The autoscaler identifies a Failed Machine by an artificial ID, which no Node has.
		case failed, s.NodeRef == nil, ptr.Deref(m.Spec.ProviderID, "") == "":
			since, ok := a.seen[m.Name]
			if !ok {
				since = c.Now
			}
			seen[m.Name] = since
			if c.Now.Sub(since) > nodeProvisionTime {
				a.delete(c, m.Name)
			}
		}
	}
	a.seen = seen
}

// delete a Machine: mark it, and lower replicas.
func (a *Autoscaler) delete(c *Cluster, name string) {
	if c.deployment().Spec.Replicas > a.MinSize {
		c.scaleDown(name)
	}
}

// ScaleDownByAutoscaler deletes a Machine that the cluster-autoscaler does not need, unless it is
// being deleted already.
func (c *Cluster) ScaleDownByAutoscaler(name string) {
	if e, there := c.machines.last[name]; there && e.object.DeletionTimestamp == nil && c.deployment().Spec.Replicas > 0 {
		c.scaleDown(name)
	}
}

func (c *Cluster) scaleDown(name string) {
	replicas := c.deployment().Spec.Replicas
	c.mark(name)
	c.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas = replicas - 1 })
}

// Mark a Machine for deletion, as a user does who lowers replicas later.
func (c *Cluster) Mark(name string) {
	if e, there := c.machines.last[name]; there && e.object.DeletionTimestamp == nil {
		c.mark(name)
	}
}

func (c *Cluster) mark(name string) {
	c.changeMachine(name, func(m *machinev1alpha1.Machine) {
		c.onMark(c, m)
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[machinev1alpha1.AnnotationDeleteMachine] = c.Now.String()
	})
}
