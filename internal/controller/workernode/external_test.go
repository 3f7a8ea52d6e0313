package workernode

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/target"
)

const id = "local:///zone-a/vm-1"

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func node(name string, ready corev1.ConditionStatus) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-1"}, Spec: corev1.NodeSpec{ProviderID: id}}
	if ready != "" {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "Because", Message: "secret times"}}
	}
	return n
}

func workerNode(changes ...func(*v1alpha1.WorkerNode)) *v1alpha1.WorkerNode {
	wn := &v1alpha1.WorkerNode{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w", UID: "w", Finalizers: []string{managed.FinalizerName}}}
	wn.Spec.ForProvider.ProviderID = id
	wn.Spec.ForProvider.Drain.Timeout.Duration = time.Hour
	for _, c := range changes {
		c(wn)
	}
	return wn
}

func deleted(wn *v1alpha1.WorkerNode) {
	at := metav1.NewTime(start)
	wn.SetDeletionTimestamp(&at)
}

type events []string

func (e *events) Event(_ runtime.Object, ev event.Event)   { *e = append(*e, string(ev.Reason)) }
func (e *events) WithAnnotations(...string) event.Recorder { return e }
func (e *events) has(reason event.Reason) bool {
	return strings.Contains(strings.Join(*e, " "), string(reason))
}
func passed(err error) error { return err }
func always(nodes ...*corev1.Node) func(context.Context, string) ([]*corev1.Node, error) {
	return func(context.Context, string) ([]*corev1.Node, error) { return nodes, nil }
}

func noRivals(context.Context, *v1alpha1.WorkerNode) ([]v1alpha1.WorkerNode, error) { return nil, nil }

func noHooks(context.Context, *v1alpha1.WorkerNode) ([]string, error) { return nil, nil }

func noMarks(context.Context, *v1alpha1.WorkerNode) (machinev1alpha1.NodeMarks, error) {
	return machinev1alpha1.NodeMarks{}, nil
}

func newExternal(now time.Time, kube *fake.Clientset, nodes ...*corev1.Node) (*external, *events) {
	e := &events{}
	return &external{
		cluster: cluster{kube: kube, nodes: always(nodes...), classify: passed},
		shared:  &shared{again: &mr.Again{}, record: e, now: func() time.Time { return now }, rivals: noRivals, hooks: noHooks, marks: noMarks},
	}, e
}

func writes(kube *fake.Clientset) []string {
	out := []string{}
	for _, a := range kube.Actions() {
		if v := a.GetVerb(); v != "get" && v != "list" && v != "watch" {
			what := v + " " + a.GetResource().Resource
			if s := a.GetSubresource(); s != "" {
				what += "/" + s
			}
			out = append(out, what)
		}
	}
	return out
}

func TestReadyCondition(t *testing.T) {
	cases := map[string]struct {
		node    *corev1.Node
		seen    string
		status  corev1.ConditionStatus
		reason  xpv1.ConditionReason
		message string
	}{
		"ANodeThatNeverWasIsJoining": {status: corev1.ConditionFalse, reason: "NodeJoining", message: "No Node with the providerID local:///zone-a/vm-1 has joined yet"},
		"ANodeThatWasIsGone":         {seen: "n", status: corev1.ConditionFalse, reason: "NodeGone", message: "The Node n is gone from the target cluster"},
		"AReadyNode":                 {node: node("n", corev1.ConditionTrue), status: corev1.ConditionTrue, reason: "NodeReady"},
		"ANodeThatIsNotReady":        {node: node("n", corev1.ConditionFalse), status: corev1.ConditionFalse, reason: "NodeNotReady", message: "The Node n is not Ready: Because"},
		"ANodeThatFellSilent":        {node: node("n", corev1.ConditionUnknown), status: corev1.ConditionFalse, reason: "NodeUnknown", message: "The Node n stopped reporting: Because"},
		"ANodeThatHasNotReported":    {node: node("n", ""), status: corev1.ConditionFalse, reason: "NodeNotReady", message: "The Node n has not reported yet"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wn := workerNode()
			wn.Status.AtProvider.NodeName = tc.seen
			report(wn, tc.node)
			c := wn.GetCondition(xpv1.TypeReady)
			if c.Status != tc.status || c.Reason != tc.reason || c.Message != tc.message {
				t.Errorf("condition %+v", c)
			}
		})
	}
}

func TestAHeartbeatChangesNoStatus(t *testing.T) {
	wn, n := workerNode(), node("n", corev1.ConditionTrue)
	report(wn, n)
	was := wn.DeepCopy()
	n.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
	n.Status.Conditions[0].Message = "another time"
	report(wn, n)
	if d := cmp.Diff(was.Status, wn.Status); d != "" {
		t.Errorf("the status changed:\n%s", d)
	}
}

func TestObserve(t *testing.T) {
	t.Run("TheResourceExistsBeforeTheNodeSoThatNothingIsCreated", func(t *testing.T) {
		x, _ := newExternal(start, fake.NewClientset())
		o, err := x.Observe(t.Context(), workerNode())
		if err != nil || !o.ResourceExists || !o.ResourceUpToDate {
			t.Errorf("observation %+v, error %v", o, err)
		}
	})
	t.Run("TheFirstTimeItAsksForUpdateWhichReportsAfterTheFinalizerIsWritten", func(t *testing.T) {
		x, _ := newExternal(start, fake.NewClientset(), node("n", corev1.ConditionTrue))
		wn := workerNode(func(wn *v1alpha1.WorkerNode) { wn.SetFinalizers(nil) })
		if o, err := x.Observe(t.Context(), wn); err != nil || !o.ResourceExists || o.ResourceUpToDate {
			t.Errorf("observation %+v, error %v", o, err)
		}
		wn.Status = v1alpha1.WorkerNodeStatus{} // as writing the finalizer does
		if _, err := x.Update(t.Context(), wn); err != nil || wn.GetCondition(xpv1.TypeReady).Reason != "NodeReady" {
			t.Errorf("after Update: %+v, error %v", wn.Status, err)
		}
	})
	t.Run("TwoNodesOfOneProviderIDAreAnErrorThatNamesBoth", func(t *testing.T) {
		x, _ := newExternal(start, fake.NewClientset(), node("n2", corev1.ConditionTrue), node("n1", corev1.ConditionTrue))
		_, err := x.Observe(t.Context(), workerNode())
		if err == nil || !strings.Contains(err.Error(), "n1 and n2") || !strings.Contains(err.Error(), id) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("AJoinIsAnEvent", func(t *testing.T) {
		x, e := newExternal(start, fake.NewClientset(), node("n", corev1.ConditionFalse))
		if _, err := x.Observe(t.Context(), workerNode()); err != nil || !e.has(reasonJoined) {
			t.Errorf("events %v, error %v", *e, err)
		}
	})
	t.Run("WhileDeletingReadyIsLeftToTheReconciler", func(t *testing.T) {
		x, _ := newExternal(start, fake.NewClientset(), node("n", corev1.ConditionTrue))
		wn := workerNode(deleted)
		if _, err := x.Observe(t.Context(), wn); err != nil || wn.GetCondition(xpv1.TypeReady).Reason != "" {
			// Two conditions in turn would be a write of the status every time.
			t.Errorf("status %+v, error %v", wn.Status, err)
		}
	})
}

func TestUpdate(t *testing.T) {
	want := func(wn *v1alpha1.WorkerNode) {
		wn.Spec.ForProvider.Taints = []v1alpha1.NodeTaint{{Key: "a", Effect: "NoSchedule"}}
	}
	t.Run("ANodeInStepIsNotWritten", func(t *testing.T) {
		kube := fake.NewClientset(node("n", corev1.ConditionTrue))
		x, _ := newExternal(start, kube, node("n", corev1.ConditionTrue))
		if _, err := x.Update(t.Context(), workerNode()); err != nil || len(kube.Actions()) != 0 {
			t.Errorf("calls %v, error %v", kube.Actions(), err)
		}
	})
	t.Run("WhatIsPatchedIsReportedWithIt", func(t *testing.T) {
		n := node("n", corev1.ConditionTrue)
		n.Spec.Taints = []corev1.Taint{{Key: machinev1alpha1.TaintUninitialized, Effect: corev1.TaintEffectNoSchedule}}
		kube := fake.NewClientset(n)
		x, _ := newExternal(start, kube, n)
		wn := workerNode(want)
		if _, err := x.Update(t.Context(), wn); err != nil {
			t.Fatal(err)
		}
		if got := wn.Status.AtProvider; got.NodeName != "n" || len(got.StartupTaints) != 0 {
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
		x, _ := newExternal(start, kube, node("n", corev1.ConditionTrue))
		if _, err := x.Update(t.Context(), workerNode(want)); err != nil {
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

func podOn(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "p"}, Spec: corev1.PodSpec{NodeName: "n"}}
	for _, c := range changes {
		c(p)
	}
	return p
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
		change    func(*v1alpha1.WorkerNode)
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
		"AnEmptyNodeIsCordonedAndDeleted": {writes: []string{"patch nodes", "delete nodes"}, events: []event.Reason{reasonNodeDeleted}},
		"APodIsEvictedAndTheNodeStays": {pods: []*corev1.Pod{podOn("a")}, writes: []string{"patch nodes", "create pods/eviction"},
			remaining: 1, reason: "terminating", events: []event.Reason{reasonDraining}},
		"APodOfABudgetIsBlockedAndTheReasonTold": {pods: []*corev1.Pod{podOn("a")}, kube: budget, writes: []string{"patch nodes", "create pods/eviction"},
			remaining: 1, reason: "its PodDisruptionBudget does not allow its eviction: web needs 2", events: []event.Reason{reasonDraining, reasonBlocked}},
		"AfterTheTimeoutBudgetsDoNotCount": {pods: []*corev1.Pod{podOn("a")}, kube: budget, after: 2 * time.Hour, writes: []string{"patch nodes", "delete pods"},
			remaining: 1, reason: "terminating", events: []event.Reason{reasonDraining, reasonTimeout}},
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
		"SpecSkipsTheDrain":               {change: func(wn *v1alpha1.WorkerNode) { wn.Spec.ForProvider.Drain.Skip = true }, pods: []*corev1.Pod{podOn("a")}, writes: []string{"delete nodes"}},
		"AnAnnotationSkipsTheDrain":       {change: func(wn *v1alpha1.WorkerNode) { wn.SetAnnotations(skipped) }, pods: []*corev1.Pod{podOn("a")}, writes: []string{"delete nodes"}},
		"AnAnnotationOnTheNodeSkipsItToo": {nodeNotes: skipped, pods: []*corev1.Pod{podOn("a")}, writes: []string{"delete nodes"}},
		"AnotherValueOfItDoesNot":         {nodeNotes: map[string]string{machinev1alpha1.AnnotationSkipDrain: "no"}, pods: []*corev1.Pod{podOn("a")}, writes: []string{"patch nodes", "create pods/eviction"}, remaining: 1, reason: "terminating"},
		"ForceIsAsAfterTheTimeout": {change: func(wn *v1alpha1.WorkerNode) { wn.SetAnnotations(forced) }, pods: []*corev1.Pod{podOn("a")}, kube: budget,
			writes: []string{"patch nodes", "delete pods"}, remaining: 1, reason: "terminating", events: []event.Reason{reasonDraining, reasonForced}},
		"AlsoByTheNode": {nodeNotes: forced, pods: []*corev1.Pod{podOn("a")}, kube: budget,
			writes: []string{"patch nodes", "delete pods"}, remaining: 1, reason: "terminating", events: []event.Reason{reasonForced}},
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
			x, e := newExternal(start.Add(tc.after), kube, n)
			wn := workerNode(deleted)
			if tc.change != nil {
				tc.change(wn)
			}
			_, err := x.Delete(t.Context(), wn)
			if (err != nil) != tc.fails {
				t.Fatalf("error %v", err)
			}
			if d := cmp.Diff(tc.writes, writes(kube)); d != "" {
				t.Errorf("writes (-want +got):\n%s", d)
			}
			if d := wn.Status.AtProvider.Drain; tc.remaining == 0 && d.Remaining != 0 {
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

// TestARefusedPodIsDeletedAfterItsRetries counts what the API server refuses.
func TestARefusedPodIsDeletedAfterItsRetries(t *testing.T) {
	n := node("n", corev1.ConditionTrue)
	kube := fake.NewClientset(n, podOn("a"))
	kube.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		err := kerrors.NewTooManyRequests("no", 0)
		err.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "web needs 2"}}}
		return a.GetSubresource() == "eviction", nil, err
	})
	at := start
	x, _ := newExternal(start, kube, n)
	x.now = func() time.Time { return at }
	retries, grace := int32(2), metav1.Duration{Duration: 7 * time.Second}
	wn := workerNode(deleted, func(wn *v1alpha1.WorkerNode) {
		wn.Spec.ForProvider.Drain.MaxEvictRetries, wn.Spec.ForProvider.Drain.GracePeriod = &retries, &grace
	})
	for i, want := range []struct {
		after  time.Duration
		writes []string
	}{
		{0, []string{"create pods/eviction"}},
		{time.Second, nil}, // A pass that a change of the Node caused counts for nothing.
		{evictEvery, []string{"create pods/eviction"}},
		{2 * evictEvery, []string{"delete pods"}},
	} {
		at = start.Add(want.after)
		kube.ClearActions()
		if _, err := x.Delete(t.Context(), wn); err != nil {
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
	x, e := newExternal(start.Add(time.Hour+abandonAfter/2), kube, node("n", corev1.ConditionTrue))
	wn := workerNode(deleted)
	if _, err := x.Delete(t.Context(), wn); err == nil {
		t.Fatal("no error")
	}
	if o, err := x.Observe(t.Context(), wn); err != nil || !o.ResourceExists {
		t.Fatalf("abandoned too early: %+v, %v", o, err)
	}
	x.now = func() time.Time { return start.Add(time.Hour + 2*abandonAfter) }
	if _, err := x.Delete(t.Context(), wn); err == nil {
		t.Fatal("no error")
	}
	o, err := x.Observe(t.Context(), wn)
	if err != nil || o.ResourceExists || !e.has(reasonGaveUp) {
		t.Errorf("observation %+v, events %v, error %v", o, *e, err)
	}
}

func TestAnUnreachableClusterIsAbandonedAtTheTimeout(t *testing.T) {
	unreachable := &target.Error{Kind: target.Unreachable, Detail: "refused"}
	kube := fake.NewClientset(node("n", corev1.ConditionTrue))
	kube.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, unreachable })
	x, e := newExternal(start.Add(time.Hour-time.Second), kube, node("n", corev1.ConditionTrue))
	wn := workerNode(deleted)
	for _, tc := range []struct {
		at   time.Duration
		gone bool
	}{{time.Hour - time.Second, false}, {time.Hour + time.Second, true}} {
		x.now = func() time.Time { return start.Add(tc.at) }
		if _, err := x.Delete(t.Context(), wn); !errors.Is(err, unreachable) {
			t.Fatalf("error %v", err)
		}
		o, err := x.Observe(t.Context(), wn)
		if err != nil || o.ResourceExists == tc.gone || e.has(reasonGaveUp) != tc.gone {
			t.Errorf("at %s: observation %+v, events %v, error %v", tc.at, o, *e, err)
		}
	}
}

func TestANodeOfTheSameNameThatCameLaterIsNotDeleted(t *testing.T) {
	later := node("n", corev1.ConditionTrue)
	later.SetUID("uid-2")
	kube := fake.NewClientset(later)
	x, _ := newExternal(start, kube, node("n", corev1.ConditionTrue))
	if _, err := x.Delete(t.Context(), workerNode(deleted)); err != nil || len(writes(kube)) != 0 {
		t.Errorf("writes %v, error %v", writes(kube), err)
	}
}
