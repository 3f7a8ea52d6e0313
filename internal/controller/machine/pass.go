package machine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// drainMemory is the memory of a drain. It is lost with the process: then the refused evictions are counted
// from zero. A persistent count would be a write for each refusal by a budget, and the bound of the drain, its
// start time, is in the status.
type drainMemory struct {
	began    time.Time
	attempts map[types.UID]attempt
	volumes  map[string]string // by claim
	// terminating pods, by their UIDs.
	terminating map[types.UID]termination
}

// A termination of a pod, as Drover observed it: the time in a pod is that of the API server of its cluster, whose
// clock may be wrong.
type termination struct {
	seen  time.Time
	grace time.Duration
}

// goneAt returns when the grace period of a terminating pod ends. Another grace period counts from when it was
// observed.
func (m *drainMemory) goneAt(p *corev1.Pod, now time.Time) time.Time {
	t := termination{seen: now, grace: time.Duration(ptr.Deref(p.GetDeletionGracePeriodSeconds(), 0)) * time.Second}
	if before, ok := m.terminating[p.GetUID()]; ok && before.grace == t.grace && before.seen.Before(now) {
		t = before
	}
	m.terminating[p.GetUID()] = t
	return t.seen.Add(t.grace)
}

func (x *nodeKeeper) memoryOf(wn *machineNode) *drainMemory {
	m, _ := x.drains.LoadOrStore(wn.GetUID(), &drainMemory{began: x.now(), attempts: map[types.UID]attempt{}, volumes: map[string]string{}, terminating: map[types.UID]termination{}})
	return m.(*drainMemory) //nolint:forcetypeassert // Nothing else is stored.
}

// drain does one pass over a Node, records the observations in s, and returns the pods that are left. A Node in
// stage DrainDeletingNode has none.
func (x *nodeKeeper) drain(ctx context.Context, wn *machineNode, node *corev1.Node, s *machinev1alpha1.DrainStatus) (remaining, error) {
	if err := cordon(ctx, x.kube, node); err != nil {
		return nil, err
	}
	list, err := podsOf(ctx, x.kube, node.GetName())
	if err != nil {
		return nil, err
	}
	m := x.memoryOf(wn)
	pods, explain, err := x.understand(ctx, wn, m, list)
	if err != nil {
		return nil, err
	}
	wn.seeConditions(node, x.now())
	p := x.passOf(wn, node)
	if s.Volumes, err = x.volumes(ctx, sight{wn: wn, node: node, pass: p, list: list, pods: pods, mem: m}, s.Volumes); err != nil {
		return nil, err
	}
	p.moving = len(inState(s.Volumes, machinev1alpha1.VolumeDetaching, machinev1alpha1.VolumeReattaching)) > 0

	c := &crew{kube: x.kube, now: p.now, explain: explain.explain, left: remaining{}, attempts: m.attempts}
	err = c.work(ctx, p.plan(pods))
	s.Forced = p.forced
	detaching := len(inState(s.Volumes, machinev1alpha1.VolumeDetaching)) > 0
	used := slices.ContainsFunc(pods, func(pod pod) bool { return len(pod.volumes) > 0 && p.decide(pod) != ignore })
	switch {
	case err != nil || len(c.left) > 0:
		x.stage(s, machinev1alpha1.DrainEvictingPods)
	case detaching || used: // The volumes of a pod that is gone by now are seen by the next pass.
		x.stage(s, machinev1alpha1.DrainDetachingVolumes)
	default:
		x.stage(s, machinev1alpha1.DrainDeletingNode)
	}
	return c.left, err
}

// seeConditions observes the conditions of the Node without the rest: no pipeline runs for a Machine that is being
// deleted, so that the rest stays as it was before.
func (wn *machineNode) seeConditions(node *corev1.Node, now time.Time) {
	wn.Observation.Conditions = conditionsIn(node, wn.Observation, now)
	wn.Observation.NodeName, wn.Observation.NodeUID, wn.Observation.Present = node.GetName(), node.GetUID(), true
}

// passOf returns the facts that a pass decides by.
func (x *nodeKeeper) passOf(wn *machineNode, node *corev1.Node) drainPass {
	d := wn.Parameters.Drain
	ready := nodeReady(node)
	p := drainPass{
		now:    x.now(),
		forced: x.late(wn) || asked(machinev1alpha1.AnnotationForceDrain, wn, node),
		silent: ready.Status != corev1.ConditionTrue && ready.Status != corev1.ConditionFalse,
	}
	if since := wn.Observation.NotReadySince(); since != nil {
		p.dead = x.now().Sub(since.Time) > deadAfter
	}
	if d.MaxEvictRetries != nil {
		p.maxRefused = *d.MaxEvictRetries
	}
	if d.GracePeriod != nil {
		p.grace = &d.GracePeriod.Duration
	}
	return p
}

// understand returns the pods with the rules that apply to them and the earlier attempts.
func (x *nodeKeeper) understand(ctx context.Context, wn *machineNode, m *drainMemory, list []corev1.Pod) ([]pod, explainer, error) {
	rules, problems := rulesOf(wn.Parameters.Drain.PodRules)
	if len(problems) > 0 {
		x.record.Event(wn.Machine, event.Warning(machinev1alpha1.EventInvalidPodRule, errors.New(strings.Join(problems, "; "))))
	}
	namespaces := map[string]labels.Set{}
	e := explainer{kube: x.kube, labels: map[string]labels.Set{}}
	var out []pod
	for i := range list {
		p := readPod(&list[i])
		if list[i].GetDeletionTimestamp() != nil {
			p.gone = m.goneAt(&list[i], x.now())
		}
		ns, known := namespaces[p.name.Namespace]
		if !known && needNamespaces(rules) {
			got, err := x.kube.CoreV1().Namespaces().Get(ctx, p.name.Namespace, metav1.GetOptions{})
			if err != nil && !kerrors.IsNotFound(err) {
				return nil, e, err
			}
			ns = labels.Set(got.GetLabels())
			namespaces[p.name.Namespace] = ns
		}
		p.behavior, p.order = treat(rules, &list[i], ns)
		p.attempt = m.attempts[p.uid]
		e.labels[p.name.String()] = labels.Set(list[i].GetLabels())
		out = append(out, p)
	}
	return out, e, nil
}

// stage records the stage of a drain.
func (x *nodeKeeper) stage(s *machinev1alpha1.DrainStatus, stage machinev1alpha1.DrainStage) {
	if s.Stage == stage {
		return
	}
	now := x.stamp()
	s.Stage, s.StageSince, s.Hooks = stage, &now, nil
}

// stamp is the current time with the precision of a status.
func (x *nodeKeeper) stamp() metav1.Time { return metav1.NewTime(x.now().Truncate(time.Second)) }

// asked reports whether the Machine or the Node has the annotation with the value "true".
func asked(annotation string, wn *machineNode, node *corev1.Node) bool {
	return wn.GetAnnotations()[annotation] == "true" || node != nil && node.GetAnnotations()[annotation] == "true"
}
