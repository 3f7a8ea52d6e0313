package nodekeeper

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func attached(volume, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: volume + "-" + node},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
		Status:     storagev1.VolumeAttachmentStatus{Attached: true},
	}
}

func volumeClaim(name, volume string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}}
}

func using(name, claim string) *corev1.Pod {
	return podOn(name, func(p *corev1.Pod) {
		p.UID = "uid-" + p.UID
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	})
}

// TestPodsWithVolumesGoOneAfterTheOther drains two of them.
func TestPodsWithVolumesGoOneAfterTheOther(t *testing.T) {
	n := node("n", corev1.ConditionTrue)
	kube := fake.NewClientset(n, using("a", "data-a"), using("b", "data-b"), using("shared", "nfs"),
		volumeClaim("data-a", "pv-a"), volumeClaim("data-b", "pv-b"), volumeClaim("nfs", "pv-nfs"),
		attached("pv-a", "n"), attached("pv-b", "n"), attached("pv-c", "other"))
	kube.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.GetSubresource() == "eviction", nil, nil // The test plays the kubelet.
	})
	at := start
	x, e := newKeeper(start, kube, n)
	x.Now = func() time.Time { return at }
	wn := workerNode(deleted, func(wn *Node) {
		wn.Parameters.Drain.VolumeDetachTimeout.Duration = time.Minute
		wn.Parameters.Drain.VolumeReattachTimeout.Duration = 30 * time.Second
	})
	gone := func(p string) {
		t.Helper()
		if err := kube.CoreV1().Pods("ns").Delete(t.Context(), p, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	detached := func(va string) {
		t.Helper()
		if err := kube.StorageV1().VolumeAttachments().Delete(t.Context(), va, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	attach := func(v, node string) {
		t.Helper()
		if err := kube.Tracker().Add(attached(v, node)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name    string
		do      func()
		evicted []string
		stage   machinev1alpha1.DrainStage
		moving  string
	}{
		{"OneOfThemAndThePodWithoutAttachment", func() {}, []string{"shared", "a"}, "EvictingPods", ""},
		{"TheOtherWaitsForItsDetachment", func() { gone("shared"); gone("a") }, nil, "EvictingPods", "pv-a Detaching"},
		{"AndForItsReattachment", func() { detached("pv-a-n") }, nil, "EvictingPods", "pv-a Reattaching"},
		{"ThenItGoesToo", func() { attach("pv-a", "other") }, []string{"b"}, "EvictingPods", ""},
		{"TheNodeWaitsForItsDetachment", func() { gone("b") }, nil, "DetachingVolumes", "pv-b Detaching"},
		{"ButNotForItsReattachment", func() { detached("pv-b-n") }, nil, "DeletingNode", "pv-b Reattaching"},
	} {
		at = at.Add(10 * time.Second)
		tc.do()
		kube.ClearActions()
		if _, err := x.Remove(t.Context(), wn, nil); err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		var evicted []string
		for _, a := range kube.Actions() {
			if c, ok := a.(clienttesting.CreateAction); ok && a.GetSubresource() == "eviction" {
				o := c.GetObject().(metav1.Object)
				evicted = append(evicted, o.GetName())
			}
		}
		d := wn.Observation.Drain
		moving := ""
		for _, m := range d.Volumes {
			moving += m.Name + " " + string(m.State)
		}
		// Parallel evictions come in any order.
		if len(evicted) != len(tc.evicted) || len(evicted) == 1 && evicted[0] != tc.evicted[0] || d.Stage != tc.stage || moving != tc.moving {
			t.Errorf("%s: evicted %v, stage %s, volumes %q, want %v, %s, %q", tc.name, evicted, d.Stage, moving, tc.evicted, tc.stage, tc.moving)
		}
	}
	if _, err := kube.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{}); !kerrors.IsNotFound(err) || !e.has(machinev1alpha1.EventDetachingVolumes) {
		t.Errorf("Node: %v, events %v", err, *e)
	}
}

func TestAVolumeThatIsNotDetachedHoldsTheNodeNoLongerThanItsTimeout(t *testing.T) {
	n := node("n", corev1.ConditionTrue)
	kube := fake.NewClientset(n, attached("pv", "n"))
	at := start
	x, e := newKeeper(start, kube, n)
	x.Now = func() time.Time { return at }
	wn := workerNode(deleted, func(wn *Node) { wn.Parameters.Drain.VolumeDetachTimeout.Duration = time.Minute })
	for _, tc := range []struct {
		after time.Duration
		stage machinev1alpha1.DrainStage
	}{{0, "DetachingVolumes"}, {59 * time.Second, "DetachingVolumes"}, {61 * time.Second, "DeletingNode"}} {
		at = start.Add(tc.after)
		if _, err := x.Remove(t.Context(), wn, nil); err != nil || wn.Observation.Drain.Stage != tc.stage {
			t.Errorf("after %s: stage %s, error %v", tc.after, wn.Observation.Drain.Stage, err)
		}
	}
	if !e.has(machinev1alpha1.EventVolumeDetachTimeout) {
		t.Errorf("events %v", *e)
	}
}

func TestVolumesOfPodsThatStayAreNotWaitedFor(t *testing.T) {
	n := node("n", corev1.ConditionTrue)
	daemon := using("ds", "data")
	yes := true
	daemon.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", Controller: &yes}}
	kube := fake.NewClientset(n, daemon, volumeClaim("data", "pv"), attached("pv", "n"))
	kube.PrependReactor("get", "daemonsets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
	x, _ := newKeeper(start, kube, n)
	wn := workerNode(deleted, func(wn *Node) { wn.Parameters.Drain.VolumeDetachTimeout.Duration = time.Minute })
	if _, err := x.Remove(t.Context(), wn, nil); err != nil || wn.Observation.Drain.Stage != machinev1alpha1.DrainDeletingNode {
		t.Errorf("drain %+v, error %v", wn.Observation.Drain, err)
	}
}

func TestVolumesThatMayNotBeReadHoldNothingUp(t *testing.T) {
	n := node("n", corev1.ConditionTrue)
	kube := fake.NewClientset(n)
	kube.PrependReactor("list", "volumeattachments", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, kerrors.NewForbidden(schema.GroupResource{Resource: "volumeattachments"}, "", nil)
	})
	x, e := newKeeper(start, kube, n)
	wn := workerNode(deleted)
	if _, err := x.Remove(t.Context(), wn, nil); err != nil || wn.Observation.Drain.Stage != machinev1alpha1.DrainDeletingNode || !e.has(machinev1alpha1.EventVolumesUnreadable) {
		t.Errorf("drain %+v, events %v, error %v", wn.Observation.Drain, *e, err)
	}
}
