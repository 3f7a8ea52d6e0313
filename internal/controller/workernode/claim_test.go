package workernode

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

func TestTwoWorkerNodesNeverShareANode(t *testing.T) {
	born := func(uid string, at time.Time) func(*v1alpha1.WorkerNode) {
		return func(wn *v1alpha1.WorkerNode) {
			wn.SetUID(types.UID(uid))
			wn.SetName(uid)
			wn.SetCreationTimestamp(metav1.NewTime(at))
		}
	}
	first, second, twin := workerNode(born("a", start)), workerNode(born("b", start.Add(time.Second))), workerNode(born("c", start))
	all := []v1alpha1.WorkerNode{*twin, *second, *first}
	for _, tc := range []struct {
		wn   *v1alpha1.WorkerNode
		mine bool
	}{{first, true}, {second, false}, {twin, false}} {
		kube := fake.NewClientset(node("n", corev1.ConditionTrue))
		x, _ := newExternal(start, kube, node("n", corev1.ConditionTrue))
		x.rivals = func(context.Context, *v1alpha1.WorkerNode) ([]v1alpha1.WorkerNode, error) { return all, nil }
		_, err := x.Observe(t.Context(), tc.wn.DeepCopy())
		if (err == nil) != tc.mine || err != nil && !strings.Contains(err.Error(), "ns/a") {
			t.Errorf("%s: error %v", tc.wn.GetName(), err)
		}
		dying := tc.wn.DeepCopy()
		deleted(dying)
		o, err := x.Observe(t.Context(), dying)
		if err != nil || o.ResourceExists != tc.mine {
			t.Errorf("%s, deleted: observation %+v, error %v", tc.wn.GetName(), o, err)
		}
		if _, err := x.Delete(t.Context(), dying); err != nil || (len(writes(kube)) > 0) != tc.mine {
			t.Errorf("%s, deleted: writes %v, error %v", tc.wn.GetName(), writes(kube), err)
		}
	}
}

func TestANodeWithoutProviderIDIsFoundByName(t *testing.T) {
	bare := node("n", corev1.ConditionTrue)
	bare.Spec.ProviderID = ""
	x, _ := newExternal(start, fake.NewClientset())
	x.nodes = func(_ context.Context, key string) ([]*corev1.Node, error) {
		if key == target.WithoutProviderID("n") {
			return []*corev1.Node{bare}, nil
		}
		return nil, nil
	}
	if found, err := x.find(t.Context(), workerNode()); err != nil || len(found) != 0 {
		t.Errorf("found %v, %v: a name that nobody asked for says nothing", found, err)
	}
	wn := workerNode(func(wn *v1alpha1.WorkerNode) { wn.Spec.ForProvider.NodeName = "n" })
	found, err := x.find(t.Context(), wn)
	if err != nil || len(found) != 1 {
		t.Fatalf("found %v, %v", found, err)
	}
	raw, err := syncPatch(found[0], wn.Spec.ForProvider)
	if err != nil {
		t.Fatal(err)
	}
	got := struct{ Spec corev1.NodeSpec }{}
	if err := json.Unmarshal(raw, &got); err != nil || got.Spec.ProviderID != id {
		t.Errorf("patch %s, %v: it must get the providerID", raw, err)
	}
}

func TestANodeThatGotTheProviderIDOfAnotherMachineIsNotDeleted(t *testing.T) {
	for _, tc := range []struct {
		providerID string
		deleted    bool
	}{{"", true}, {id, true}, {"of-another", false}} {
		live := node("n", corev1.ConditionTrue)
		live.Spec.ProviderID = tc.providerID
		seen := live.DeepCopy()
		seen.Spec.ProviderID = "" // The watch lags.
		kube := fake.NewClientset(live)
		x, _ := newExternal(start, kube, seen)
		wn := workerNode(func(wn *v1alpha1.WorkerNode) { wn.Spec.ForProvider.NodeName = "n" })
		deleted(wn)
		if _, err := x.Delete(t.Context(), wn); err != nil || (len(writes(kube)) > 0) != tc.deleted {
			t.Errorf("providerID %q: writes %v, error %v", tc.providerID, writes(kube), err)
		}
	}
}
