// Package drain empties a Node: it evicts the pods in the order of the class's rules and of their priorities, keeps their
// PodDisruptionBudgets for as long as the drain may, and waits until their volumes are detached.
//
// A drain is a series of passes, and each decides anew by what it observes: plan.go decides about each pod, rules.go finds
// the rule of a pod, volumes.go decides about volumes, and evict.go carries the decisions out. The state that must survive a
// restart is in the DrainStatus. When a drain begins, and what follows it, is decided by the caller.
package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

// A Drainer drains one Node.
type Drainer struct {
	Kube    kubernetes.Interface
	Cluster target.Ref
	// Attachments of volumes, shared by all drains.
	Attachments *Attachments
	// Memory of this drain.
	Memory *Memory
	// Settings of the Machine's class.
	Settings machinev1alpha1.Drain
	// Record an event of the Machine.
	Record func(event.Event)
	Now    func() time.Time
}

// A Node that is drained, as Drover observes it.
type Node struct {
	*corev1.Node
	// Forced means that the drain's timeout has passed, or that a user forces the drain: budgets are not kept.
	Forced bool
	// Silent means that no kubelet reports.
	Silent bool
	// NotReadySince is when Drover first observed that the Node is not Ready, nil if it is.
	NotReadySince *metav1.Time
}

// Pass does one pass over a Node, records the observations in s, and returns the pods that are left. A Node in stage
// DrainDeletingNode has none.
func (d *Drainer) Pass(ctx context.Context, node Node, s *machinev1alpha1.DrainStatus) (Remaining, error) {
	if err := cordon(ctx, d.Kube, node.Node); err != nil {
		return nil, err
	}
	list, err := podsOf(ctx, d.Kube, node.GetName())
	if err != nil {
		return nil, err
	}
	pods, explain, err := d.podsWithRules(ctx, list)
	if err != nil {
		return nil, err
	}
	p := d.passOf(node)
	if s.Volumes, err = d.volumes(ctx, view{node: node.GetName(), pass: p, list: list, pods: pods}, s.Volumes); err != nil {
		return nil, err
	}
	p.moving = len(inState(s.Volumes, machinev1alpha1.VolumeDetaching, machinev1alpha1.VolumeReattaching)) > 0

	c := &crew{kube: d.Kube, now: p.now, explain: explain.explain, left: Remaining{}, attempts: d.Memory.attempts}
	err = c.work(ctx, p.plan(pods))
	s.Forced = p.forced
	used := slices.ContainsFunc(pods, func(pod pod) bool { return len(pod.volumes) > 0 && p.decide(pod) != ignore })
	switch {
	case err != nil || len(c.left) > 0:
		SetStage(s, machinev1alpha1.DrainEvictingPods, p.now)
	case len(Detaching(s)) > 0 || used: // The volumes of a pod that is gone by now are seen by the next pass.
		SetStage(s, machinev1alpha1.DrainDetachingVolumes, p.now)
	default:
		SetStage(s, machinev1alpha1.DrainDeletingNode, p.now)
	}
	return c.left, err
}

// passOf returns the facts that a pass decides by.
func (d *Drainer) passOf(node Node) pass {
	p := pass{now: d.Now(), forced: node.Forced, silent: node.Silent}
	if since := node.NotReadySince; since != nil {
		p.dead = p.now.Sub(since.Time) > DeadAfter
	}
	if d.Settings.MaxEvictRetries != nil {
		p.maxRefused = *d.Settings.MaxEvictRetries
	}
	if d.Settings.GracePeriod != nil {
		p.grace = &d.Settings.GracePeriod.Duration
	}
	return p
}

// podsWithRules returns the pods with the rules that apply to them and the earlier attempts.
func (d *Drainer) podsWithRules(ctx context.Context, list []corev1.Pod) ([]pod, explainer, error) {
	rules, problems := rulesOf(d.Settings.PodRules)
	if len(problems) > 0 {
		d.Record(event.Warning(machinev1alpha1.EventInvalidPodRule, errors.New(strings.Join(problems, "; "))))
	}
	namespaces := map[string]labels.Set{}
	e := explainer{kube: d.Kube, labels: map[string]labels.Set{}}
	var out []pod
	for i := range list {
		p := readPod(&list[i])
		if list[i].GetDeletionTimestamp() != nil {
			p.gone = d.Memory.goneAt(&list[i], d.Now())
		}
		ns, known := namespaces[p.name.Namespace]
		if !known && needNamespaces(rules) {
			got, err := d.Kube.CoreV1().Namespaces().Get(ctx, p.name.Namespace, metav1.GetOptions{})
			if err != nil && !kerrors.IsNotFound(err) {
				return nil, e, err
			}
			ns = labels.Set(got.GetLabels())
			namespaces[p.name.Namespace] = ns
		}
		p.behavior, p.order = treat(rules, &list[i], ns)
		p.attempt = d.Memory.attempts[p.uid]
		e.labels[p.name.String()] = labels.Set(list[i].GetLabels())
		out = append(out, p)
	}
	return out, e, nil
}

// volumes returns the volumes that leave the Node, given those that were recorded last, and adds to the pods
// the volumes that they use. Without the right to read volumes, the drain ignores them.
func (d *Drainer) volumes(ctx context.Context, of view, was []machinev1alpha1.MovingVolume) ([]machinev1alpha1.MovingVolume, error) {
	if of.mustLeave() && !of.hasClaims() && len(was) == 0 {
		return nil, nil
	}
	v, err := d.viewVolumes(ctx, of)
	if kerrors.IsForbidden(err) {
		d.Record(event.Warning(machinev1alpha1.EventVolumesUnreadable, fmt.Errorf("volumes are not waited for: %w", err)))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	moving := v.move(was)
	if stuck := inState(moving, machinev1alpha1.VolumeStuck); len(stuck) > 0 {
		d.Record(event.Warning(machinev1alpha1.EventVolumeDetachTimeout, fmt.Errorf("the volumes %s were not detached from Node %s within %s, and are not waited for", strings.Join(stuck, ", "), v.node, v.detach)))
	}
	return moving, nil
}

// viewVolumes observes the volumes of the Node, and adds to the pods of the view those that they use.
func (d *Drainer) viewVolumes(ctx context.Context, of view) (volumeView, error) {
	v := volumeView{
		now: of.pass.now, node: of.node, silent: of.pass.silent, used: map[string]bool{},
		detach: d.Settings.VolumeDetachTimeout.Duration, reattach: d.Settings.VolumeReattachTimeout.Duration,
	}
	var err error
	if v.attachments, err = d.Attachments.in(ctx, d.Cluster, d.Kube, d.Memory.began, of.pass.now); err != nil {
		return v, err
	}
	here := v.here()
	if len(here) == 0 {
		return v, nil
	}
	list := of.list
	if !of.mustLeave() {
		// The volumes that are still in use now belong to pods that stay: those of DaemonSets.
		all, err := d.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", v.node).String()})
		if err != nil {
			return v, err
		}
		list = all.Items
	}
	for i := range list {
		if readPod(&list[i]).finished {
			continue
		}
		for _, claim := range claimsOf(&list[i]) {
			name, err := volumeOf(ctx, d.Kube, d.Memory.volumes, list[i].GetNamespace(), claim)
			if err != nil {
				return v, err
			}
			if !here[name] {
				continue
			}
			v.used[name] = true
			if of.mustLeave() {
				of.pods[i].volumes = append(of.pods[i].volumes, name)
			}
		}
	}
	return v, nil
}

// SetStage records the stage of a drain, and since when.
func SetStage(s *machinev1alpha1.DrainStatus, stage machinev1alpha1.DrainStage, now time.Time) {
	if s.Stage == stage {
		return
	}
	since := metav1.NewTime(now.Truncate(time.Second))
	s.Stage, s.StageSince, s.Hooks = stage, &since, nil
}

// Detaching names the volumes that a drain waits for.
func Detaching(s *machinev1alpha1.DrainStatus) []string {
	return inState(s.Volumes, machinev1alpha1.VolumeDetaching)
}
