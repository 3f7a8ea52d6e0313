package nodekeeper

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper/nodetest"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/drain"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/workernode"
)

const id = nodetest.ID

var (
	start  = nodetest.Start
	node   = nodetest.New
	joined = nodetest.Joined
	podOn  = nodetest.PodOn
	writes = nodetest.Writes
)

func passed(err error) error { return err }

// workerNode is the Node of a Machine of a cloud that names Nodes.
func workerNode(changes ...func(*Node)) *Node {
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w", UID: "w"}}
	wn := &Node{Machine: m, Evidence: Evidence{Confirmed: true}}
	wn.Parameters.ProviderID, wn.Parameters.CloudNamesNodes = id, true
	wn.Parameters.Drain.Timeout.Duration = time.Hour
	for _, c := range changes {
		c(wn)
	}
	return wn
}

// deleted Machine whose deletion has begun.
func deleted(wn *Node) {
	at := metav1.NewTime(start)
	wn.SetDeletionTimestamp(&at)
	wn.Status.Deletion = &machinev1alpha1.DeletionStatus{Stage: machinev1alpha1.DeletionDraining, Since: at}
}

type events []string

func (e *events) Event(_ runtime.Object, ev event.Event)   { *e = append(*e, string(ev.Reason)) }
func (e *events) WithAnnotations(...string) event.Recorder { return e }
func (e *events) has(reason event.Reason) bool {
	return strings.Contains(strings.Join(*e, " "), string(reason))
}
func always(nodes ...*corev1.Node) func(context.Context, string, string, string) ([]*corev1.Node, error) {
	return func(context.Context, string, string, string) ([]*corev1.Node, error) { return slices.Clone(nodes), nil }
}

func noHooks(context.Context, *machinev1alpha1.Machine) ([]string, error) { return nil, nil }

func noMarks(context.Context, *machinev1alpha1.Machine) (machinev1alpha1.NodeMarks, error) {
	return machinev1alpha1.NodeMarks{}, nil
}

func newKeeper(now time.Time, kube *fake.Clientset, nodes ...*corev1.Node) (*Keeper, *events) {
	e := &events{}
	return &Keeper{
		Cluster: Cluster{Kube: kube, Nodes: always(nodes...), Classify: passed},
		Tools:   &Tools{Record: e, Now: func() time.Time { return now }, Hooks: noHooks, Marks: noMarks},
	}, e
}

// update observes the Node and keeps it, as a reconcile does.
func (x *Keeper) update(ctx context.Context, wn *Node) (changed bool, err error) {
	n, err := x.Observe(ctx, wn)
	if err != nil {
		return false, err
	}
	return x.Keep(ctx, wn, n, recordIn(wn))
}

// recordIn sets the status without a write.
func recordIn(wn *Node) RecordFunc {
	return func(_ context.Context, applied *machinev1alpha1.AppliedToNode) error {
		wn.Status.AppliedToNode = applied
		return nil
	}
}

func TestObservation(t *testing.T) {
	ready := func(status corev1.ConditionStatus) []workernode.Condition {
		c := workernode.Condition{Type: "Ready", Status: string(status), Reason: "Because", Since: &metav1.Time{Time: start}}
		if status != corev1.ConditionTrue {
			c.Message = "of the kubelet"
		}
		return []workernode.Condition{c}
	}
	cases := map[string]struct {
		node       *corev1.Node
		seen       string
		present    bool
		name       string
		conditions []workernode.Condition
	}{
		"ANodeThatNeverWasIsJoining":     {},
		"ANodeThatWasIsGone":             {seen: "n", name: "n"},
		"AReadyNode":                     {node: node("n", corev1.ConditionTrue), present: true, name: "n", conditions: ready("True")},
		"ANodeThatIsNotReady":            {node: node("n", corev1.ConditionFalse), present: true, name: "n", conditions: ready("False")},
		"ANodeThatFellSilent":            {node: node("n", corev1.ConditionUnknown), present: true, name: "n", conditions: ready("Unknown")},
		"ANodeThatHasNotReported":        {node: node("n", ""), present: true, name: "n"},
		"ANodeThatCameBackByAnotherName": {node: node("n", corev1.ConditionTrue), seen: "m", present: true, name: "n", conditions: ready("True")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wn := workerNode()
			wn.Observation.NodeName, wn.Observation.Conditions, wn.Observation.Synced = tc.seen, ready("True"), true
			observeNode(wn, tc.node, start)
			o := wn.Observation
			if o.Present != tc.present || o.NodeName != tc.name || o.Synced {
				t.Errorf("observation %+v", o)
			}
			if d := cmp.Diff(tc.conditions, o.Conditions); d != "" {
				t.Errorf("conditions (-want +got):\n%s", d)
			}
		})
	}
}

func TestAHeartbeatChangesNoObservation(t *testing.T) {
	wn, n := workerNode(), node("n", corev1.ConditionTrue)
	observeNode(wn, n, start)
	was := wn.Observation
	n.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
	n.Status.Conditions[0].Message = "another time"
	observeNode(wn, n, start)
	if d := cmp.Diff(was, wn.Observation); d != "" {
		t.Errorf("the observation changed:\n%s", d)
	}
}

func TestObserve(t *testing.T) {
	t.Run("WithoutANodeNothingIsWrittenAndNothingIsInStep", func(t *testing.T) {
		kube := fake.NewClientset()
		x, _ := newKeeper(start, kube)
		wn := workerNode()
		n, err := x.Observe(t.Context(), wn)
		if err != nil || n != nil || wn.Observation.Present || wn.Observation.Synced || len(kube.Actions()) > 0 {
			t.Errorf("Node %v, observation %+v, calls %v, error %v", n, wn.Observation, kube.Actions(), err)
		}
	})
	t.Run("ItWritesNothingAndReportsWhatIsNotInStep", func(t *testing.T) {
		kube := fake.NewClientset(node("n", corev1.ConditionTrue))
		x, _ := newKeeper(start, kube, node("n", corev1.ConditionTrue))
		wn := workerNode(func(wn *Node) { wn.Parameters.Labels = map[string]string{"a": "b"} })
		if _, err := x.Observe(t.Context(), wn); err != nil || !wn.Observation.Present || wn.Observation.Synced || len(kube.Actions()) > 0 {
			t.Errorf("observation %+v, calls %v, error %v", wn.Observation, kube.Actions(), err)
		}
	})
	t.Run("ANodeInStepIsReportedSo", func(t *testing.T) {
		x, _ := newKeeper(start, fake.NewClientset(), node("n", corev1.ConditionTrue))
		wn := workerNode()
		if _, err := x.Observe(t.Context(), wn); err != nil || !wn.Observation.Synced {
			t.Errorf("observation %+v, error %v", wn.Observation, err)
		}
	})
	t.Run("TwoNodesOfOneTokenAreAnErrorThatNamesBoth", func(t *testing.T) {
		x, _ := newKeeper(start, fake.NewClientset(), node("n2", corev1.ConditionTrue), joined("n1", "uid-2", "w", id))
		_, err := x.Observe(t.Context(), workerNode())
		if err == nil || !strings.Contains(err.Error(), "n1 and n2") || !strings.Contains(err.Error(), "token") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("AJoinIsAnEventOnce", func(t *testing.T) {
		x, e := newKeeper(start, fake.NewClientset(), node("n", corev1.ConditionFalse))
		wn := workerNode()
		for range 2 {
			if _, err := x.Observe(t.Context(), wn); err != nil || len(*e) != 1 || !e.has(machinev1alpha1.EventNodeJoined) {
				t.Errorf("events %v, error %v", *e, err)
			}
		}
	})
}

func TestUpdate(t *testing.T) {
	want := func(wn *Node) {
		wn.Parameters.Taints = []workernode.Taint{{Key: "a", Effect: "NoSchedule"}}
	}
	t.Run("ANodeInStepIsNotWritten", func(t *testing.T) {
		kube := fake.NewClientset(node("n", corev1.ConditionTrue))
		x, _ := newKeeper(start, kube, node("n", corev1.ConditionTrue))
		if changed, err := x.update(t.Context(), workerNode()); err != nil || changed || len(kube.Actions()) != 0 {
			t.Errorf("changed %v, calls %v, error %v", changed, kube.Actions(), err)
		}
	})
	t.Run("WhatIsPatchedIsReportedWithIt", func(t *testing.T) {
		n := node("n", corev1.ConditionTrue)
		n.Spec.Taints = []corev1.Taint{{Key: machinev1alpha1.TaintUninitialized, Effect: corev1.TaintEffectNoSchedule}}
		kube := fake.NewClientset(n)
		x, _ := newKeeper(start, kube, n)
		wn := workerNode(want)
		if changed, err := x.update(t.Context(), wn); err != nil || !changed {
			t.Fatalf("changed %v, error %v", changed, err)
		}
		if got := wn.Observation; got.NodeName != "n" || len(got.StartupTaints) != 0 || !got.Synced {
			t.Errorf("reported %+v", got)
		}
	})
	t.Run("AConflictIsTriedAgainOnTheNodeAsItIs", func(t *testing.T) {
		other := node("n", corev1.ConditionTrue)
		other.Spec.Taints = []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoExecute}}
		kube := fake.NewClientset(other)
		conflicts := 1
		kube.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			conflicts--
			return conflicts >= 0, nil, kerrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "n", errors.New("changed"))
		})
		x, _ := newKeeper(start, kube, node("n", corev1.ConditionTrue))
		if _, err := x.update(t.Context(), workerNode(want)); err != nil {
			t.Fatal(err)
		}
		got, err := kube.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
		if err != nil || len(got.Spec.Taints) != 2 {
			t.Errorf("taints %v, error %v: those of others must stay", got.Spec.Taints, err)
		}
		if w := writes(kube); len(w) != 2 {
			t.Errorf("writes %v", w)
		}
	})
}

func TestDelete(t *testing.T) {
	budget := func(kube *fake.Clientset) {
		kube.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			err := kerrors.NewTooManyRequests("no", 0)
			err.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "web needs 2"}}}
			return a.GetSubresource() == "eviction", nil, err
		})
	}
	skipped := map[string]string{machinev1alpha1.AnnotationSkipDrain: "true"}
	forced := map[string]string{machinev1alpha1.AnnotationForceDrain: "true"}
	cases := map[string]struct {
		change    func(*Node)
		nodeNotes map[string]string
		ready     corev1.ConditionStatus
		pods      []*corev1.Pod
		after     time.Duration
		kube      func(*fake.Clientset)
		writes    []string
		remaining int32
		reason    string
		events    []event.Reason
		fails     bool
	}{
		"AnEmptyNodeIsCordonedAndDeleted": {writes: []string{"patch nodes", "delete nodes"}, events: []event.Reason{machinev1alpha1.EventNodeDeleted}},
		"APodIsEvictedAndTheNodeStays": {pods: []*corev1.Pod{podOn("a")}, writes: []string{"patch nodes", "create pods/eviction"},
			remaining: 1, reason: "terminating", events: []event.Reason{machinev1alpha1.EventDraining}},
		"APodOfABudgetIsBlockedAndTheReasonReported": {pods: []*corev1.Pod{podOn("a")}, kube: budget, writes: []string{"patch nodes", "create pods/eviction"},
			remaining: 1, reason: "its PodDisruptionBudget does not allow its eviction: web needs 2", events: []event.Reason{machinev1alpha1.EventDraining, machinev1alpha1.EventEvictionBlocked}},
		"AfterTheTimeoutBudgetsDoNotCount": {pods: []*corev1.Pod{podOn("a")}, kube: budget, after: 2 * time.Hour, writes: []string{"patch nodes", "delete pods"},
			remaining: 1, reason: "terminating", events: []event.Reason{machinev1alpha1.EventDraining, machinev1alpha1.EventDrainTimeout}},
		"DaemonSetsAndMirrorPodsStay": {pods: []*corev1.Pod{
			podOn("ds", func(p *corev1.Pod) {
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", Controller: new(bool)}}
				*p.OwnerReferences[0].Controller = true
			}),
			podOn("mirror", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }),
		}, kube: func(kube *fake.Clientset) {
			kube.PrependReactor("get", "daemonsets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
		}, writes: []string{"patch nodes", "delete nodes"}},
		"APodThatTerminatesOnADeadNodeIsNotWaitedFor": {ready: corev1.ConditionUnknown, pods: []*corev1.Pod{podOn("a", func(p *corev1.Pod) {
			at := metav1.NewTime(start.Add(time.Minute))
			p.DeletionTimestamp, p.Finalizers = &at, []string{"x/y"}
		})}, writes: []string{"patch nodes", "delete nodes"}},
		"SpecSkipsTheDrain":               {change: func(wn *Node) { wn.Parameters.Drain.Skip = true }, pods: []*corev1.Pod{podOn("a")}, writes: []string{"delete nodes"}},
		"AnAnnotationSkipsTheDrain":       {change: func(wn *Node) { wn.SetAnnotations(skipped) }, pods: []*corev1.Pod{podOn("a")}, writes: []string{"delete nodes"}},
		"AnAnnotationOnTheNodeSkipsItToo": {nodeNotes: skipped, pods: []*corev1.Pod{podOn("a")}, writes: []string{"delete nodes"}},
		"AnotherValueOfItDoesNot":         {nodeNotes: map[string]string{machinev1alpha1.AnnotationSkipDrain: "no"}, pods: []*corev1.Pod{podOn("a")}, writes: []string{"patch nodes", "create pods/eviction"}, remaining: 1, reason: "terminating"},
		"ForceIsAsAfterTheTimeout": {change: func(wn *Node) { wn.SetAnnotations(forced) }, pods: []*corev1.Pod{podOn("a")}, kube: budget,
			writes: []string{"patch nodes", "delete pods"}, remaining: 1, reason: "terminating", events: []event.Reason{machinev1alpha1.EventDraining, machinev1alpha1.EventDrainForced}},
		"AlsoByTheNode": {nodeNotes: forced, pods: []*corev1.Pod{podOn("a")}, kube: budget,
			writes: []string{"patch nodes", "delete pods"}, remaining: 1, reason: "terminating", events: []event.Reason{machinev1alpha1.EventDrainForced}},
		"PodsThatHaveEndedStay":             {pods: []*corev1.Pod{podOn("a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, writes: []string{"patch nodes", "delete nodes"}},
		"PodsThatCannotBeListedKeepTheNode": {kube: noPods, writes: []string{"patch nodes"}, fails: true},
		"ButNotBeyondTheTimeout":            {kube: noPods, after: 2 * time.Hour, writes: []string{"patch nodes", "delete nodes"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.ready == "" {
				tc.ready = corev1.ConditionTrue
			}
			n := node("n", tc.ready)
			n.SetAnnotations(tc.nodeNotes)
			kube := fake.NewClientset(n)
			for _, p := range tc.pods {
				if err := kube.Tracker().Add(p); err != nil {
					t.Fatal(err)
				}
			}
			if tc.kube != nil {
				tc.kube(kube)
			}
			x, e := newKeeper(start.Add(tc.after), kube, n)
			wn := workerNode(deleted)
			if tc.change != nil {
				tc.change(wn)
			}
			gone, err := x.Remove(t.Context(), wn, nil)
			if gone || (err != nil) != tc.fails {
				t.Fatalf("gone %v, error %v", gone, err)
			}
			if d := cmp.Diff(tc.writes, writes(kube)); d != "" {
				t.Errorf("writes (-want +got):\n%s", d)
			}
			if d := wn.Observation.Drain; tc.remaining == 0 && d.Remaining != 0 {
				t.Errorf("drain %+v, want none", d)
			} else if tc.remaining > 0 && (d == nil || d.Remaining != tc.remaining || d.Pods[0].Reason != tc.reason) {
				t.Errorf("drain %+v", d)
			}
			for _, want := range tc.events {
				if !e.has(want) {
					t.Errorf("events %v lack %s", *e, want)
				}
			}
		})
	}
}

// TestADrainDeletesOnlyWhatItSaw: another Node or pod may have the name by the time of the call, and the fake API
// server does not check preconditions.
func TestADrainDeletesOnlyWhatItSaw(t *testing.T) {
	kube := fake.NewClientset(node("n", corev1.ConditionTrue), podOn("a"))
	x, _ := newKeeper(start, kube, node("n", corev1.ConditionTrue))
	wn := workerNode(deleted)
	pass := func() {
		t.Helper()
		if _, err := x.Remove(t.Context(), wn, nil); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	x.Now = func() time.Time { return start.Add(2 * time.Hour) } // The drain is over: the pod is deleted.
	pass()
	pass()
	var got []string
	note := func(what string, o *metav1.DeleteOptions) {
		if o != nil && o.Preconditions != nil && o.Preconditions.UID != nil {
			what += " with UID " + string(*o.Preconditions.UID)
		}
		got = append(got, what)
	}
	for _, a := range kube.Actions() {
		switch a := a.(type) {
		case clienttesting.CreateActionImpl:
			if e, ok := a.Object.(*policyv1.Eviction); ok {
				note("eviction", e.DeleteOptions)
			}
		case clienttesting.DeleteActionImpl:
			note("delete "+a.GetResource().Resource, &a.DeleteOptions)
		}
	}
	if want := []string{"eviction with UID p", "delete pods with UID p", "delete nodes with UID uid-1"}; !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
}

// TestARefusedPodIsDeletedAfterItsRetries counts the refusals of the API server.
func TestARefusedPodIsDeletedAfterItsRetries(t *testing.T) {
	n := node("n", corev1.ConditionTrue)
	kube := fake.NewClientset(n, podOn("a"))
	kube.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		err := kerrors.NewTooManyRequests("no", 0)
		err.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "web needs 2"}}}
		return a.GetSubresource() == "eviction", nil, err
	})
	at := start
	x, _ := newKeeper(start, kube, n)
	x.Now = func() time.Time { return at }
	retries, grace := int32(2), metav1.Duration{Duration: 7 * time.Second}
	wn := workerNode(deleted, func(wn *Node) {
		wn.Parameters.Drain.MaxEvictRetries, wn.Parameters.Drain.GracePeriod = &retries, &grace
	})
	for i, want := range []struct {
		after  time.Duration
		writes []string
	}{
		{0, []string{"create pods/eviction"}},
		{time.Second, nil}, // A pass that a change of the Node caused counts for nothing.
		{drain.EvictEvery, []string{"create pods/eviction"}},
		{2 * drain.EvictEvery, []string{"delete pods"}},
	} {
		at = start.Add(want.after)
		kube.ClearActions()
		if _, err := x.Remove(t.Context(), wn, nil); err != nil {
			t.Fatal(err)
		}
		got := slices.DeleteFunc(writes(kube), func(w string) bool { return w == "patch nodes" })
		if !slices.Equal(got, want.writes) {
			t.Errorf("pass %d: %v, want %v", i, got, want.writes)
		}
	}
	for _, a := range kube.Actions() {
		if d, ok := a.(clienttesting.DeleteAction); ok && *d.GetDeleteOptions().GracePeriodSeconds != 7 {
			t.Errorf("deleted with %+v", d.GetDeleteOptions())
		}
	}
}

func noPods(kube *fake.Clientset) {
	kube.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, kerrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no right"))
	})
}

func TestANodeThatCannotBeDeletedIsAbandonedAfterTheTimeout(t *testing.T) {
	kube := fake.NewClientset(node("n", corev1.ConditionTrue))
	kube.PrependReactor("delete", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, kerrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n", errors.New("no right"))
	})
	x, e := newKeeper(start.Add(time.Hour+AbandonAfter/2), kube, node("n", corev1.ConditionTrue))
	wn := workerNode(deleted)
	if gone, err := x.Remove(t.Context(), wn, nil); err == nil || gone || e.has(machinev1alpha1.EventNodeAbandoned) {
		t.Fatalf("abandoned too early: gone %v, events %v, error %v", gone, *e, err)
	}
	if wn.Again == 0 || wn.Again > RetryAfter {
		t.Errorf("the next attempt is in %s", wn.Again)
	}
	x.Now = func() time.Time { return start.Add(time.Hour + 2*AbandonAfter) }
	if gone, err := x.Remove(t.Context(), wn, nil); err != nil || !gone || !e.has(machinev1alpha1.EventNodeAbandoned) {
		t.Errorf("gone %v, events %v, error %v", gone, *e, err)
	}
}

func TestAnUnreachableClusterIsAbandonedAtTheTimeout(t *testing.T) {
	unreachable := &target.Error{Kind: target.Unreachable, Detail: "refused"}
	for name, connect := range map[string]error{"WhenItsNodeIsRead": nil, "WhenItsNodesAreListed": nil, "WhenItIsConnectedTo": unreachable} {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientset(node("n", corev1.ConditionTrue))
			kube.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, unreachable })
			x, e := newKeeper(start, kube, node("n", corev1.ConditionTrue))
			if name == "WhenItsNodesAreListed" {
				x.Nodes = func(context.Context, string, string, string) ([]*corev1.Node, error) { return nil, unreachable }
			}
			wn := workerNode(deleted, func(wn *Node) { wn.Observation.NodeName = "n" })
			for _, tc := range []struct {
				at   time.Duration
				gone bool
			}{{time.Hour - time.Second, false}, {time.Hour + time.Second, true}} {
				x.Now = func() time.Time { return start.Add(tc.at) }
				wn.Again = 0
				gone, err := x.Remove(t.Context(), wn, connect)
				if gone != tc.gone || (err == nil) != tc.gone || err != nil && !errors.Is(err, unreachable) || e.has(machinev1alpha1.EventNodeAbandoned) != tc.gone {
					t.Errorf("at %s: gone %v, events %v, error %v", tc.at, gone, *e, err)
				}
				if !gone && (wn.Again == 0 || wn.Again > 2*time.Second) {
					t.Errorf("at %s: the next attempt is in %s, after the timeout", tc.at, wn.Again)
				}
			}
		})
	}
}

func TestANodeOfTheSameNameThatCameLaterIsNotDeleted(t *testing.T) {
	later := node("n", corev1.ConditionTrue)
	later.SetUID("uid-2")
	kube := fake.NewClientset(later)
	x, _ := newKeeper(start, kube, node("n", corev1.ConditionTrue))
	if _, err := x.Remove(t.Context(), workerNode(deleted), nil); err != nil || len(writes(kube)) != 0 {
		t.Errorf("writes %v, error %v", writes(kube), err)
	}
}
