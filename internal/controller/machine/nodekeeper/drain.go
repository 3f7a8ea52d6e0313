package nodekeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	corev1 "k8s.io/api/core/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/drain"
	"github.com/drover-dev/drover/internal/target"
)

// drain does one pass over the Node of a Machine, records the observations in s, and returns the pods that are left.
func (x *Keeper) drain(ctx context.Context, wn *Node, node *corev1.Node, s *machinev1alpha1.DrainStatus) (drain.Remaining, error) {
	wn.seeConditions(node, x.Now())
	ready := nodeReady(node)
	d := drain.Drainer{
		Kube: x.Kube, Cluster: target.RefOf(wn.Machine), Attachments: &x.attachments,
		Memory: x.memoryOf(wn), Settings: wn.Parameters.Drain.Drain,
		Record: func(e event.Event) { x.Record.Event(wn.Machine, e) },
		Now:    x.Now,
	}
	return d.Pass(ctx, drain.Node{
		Node:          node,
		Forced:        x.isPastDeadline(wn) || asked(machinev1alpha1.AnnotationForceDrain, wn, node),
		Silent:        ready.Status != corev1.ConditionTrue && ready.Status != corev1.ConditionFalse,
		NotReadySince: wn.Observation.NotReadySince(),
	}, s)
}

// memoryOf the drain of a Node.
func (x *Keeper) memoryOf(wn *Node) *drain.Memory {
	m, _ := x.Drains.LoadOrStore(wn.GetUID(), drain.NewMemory(x.Now()))
	return m.(*drain.Memory) //nolint:forcetypeassert // Nothing else is stored.
}

// seeConditions observes the conditions of the Node without the rest: no pipeline runs for a Machine that is being
// deleted, so that the rest stays as it was before.
func (wn *Node) seeConditions(node *corev1.Node, now time.Time) {
	wn.Observation.Conditions = conditionsIn(node, wn.Observation, now)
	wn.Observation.NodeName, wn.Observation.NodeUID, wn.Observation.Present = node.GetName(), node.GetUID(), true
}

// recordEvents records an event for each fact that users look for, each once.
func (x *Keeper) recordEvents(wn *Node, node *corev1.Node, s *machinev1alpha1.DrainStatus, left drain.Remaining) {
	was := wn.Observation.Drain
	if was == nil {
		was = &machinev1alpha1.DrainStatus{}
	}
	if s.Stage == machinev1alpha1.DrainEvictingPods && was.Stage != s.Stage && len(left) > 0 {
		x.Record.Event(wn.Machine, event.Normal(machinev1alpha1.EventDraining, fmt.Sprintf("Draining Node %s: %d pods to go", node.GetName(), len(left))))
	}
	if moving := drain.Detaching(s); s.Stage == machinev1alpha1.DrainDetachingVolumes && was.Stage != s.Stage && len(moving) > 0 {
		x.Record.Event(wn.Machine, event.Normal(machinev1alpha1.EventDetachingVolumes, fmt.Sprintf("Waiting for the volumes %s to be detached", strings.Join(moving, ", "))))
	}
	switch {
	case len(left) == 0:
		return
	case x.isPastDeadline(wn):
		x.Record.Event(wn.Machine, event.Warning(machinev1alpha1.EventDrainTimeout, fmt.Errorf("the drain took longer than %s: pods that are left are deleted without regard to their PodDisruptionBudgets", wn.Parameters.Drain.Timeout.Duration)))
		return
	case s.Forced:
		x.Record.Event(wn.Machine, event.Warning(machinev1alpha1.EventDrainForced, errors.New("the drain is forced: pods that are left are deleted without regard to their PodDisruptionBudgets")))
		return
	}
	if name, reason, ok := left.Blocked(); ok {
		x.Record.Event(wn.Machine, event.Warning(machinev1alpha1.EventEvictionBlocked, fmt.Errorf("pod %s: %s", name, reason)))
	}
}
