package recovery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// A vigil watches the Nodes of a fleet, the pods on them and their VMs all the time: none of them
// may be cordoned, ended or deleted.
type vigil struct {
	f     kit.Fleet
	nodes map[types.UID]string
	pods  map[types.UID]string
	vms   map[string]bool

	mu     sync.Mutex
	broken []string
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// keepVigil over the current objects of a fleet. It creates a workload first, so that its Nodes
// have pods.
func keepVigil(t *testing.T, f kit.Fleet, pods int32) *vigil {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	v := &vigil{f: f, nodes: map[types.UID]string{}, pods: map[types.UID]string{}, vms: map[string]bool{}, stop: stop}
	nodes, err := f.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		v.nodes[nodes[i].UID] = nodes[i].Name
	}
	if err := f.MakeWorkload(t.Context(), "web", pods, intstr.FromInt32(1)); err != nil {
		t.Fatal(err)
	}
	patience.Eventually(t, func(ctx context.Context) string { return f.WorkloadUnready(ctx, "web", pods) })
	l := &corev1.PodList{}
	vms, err := f.VMs(t.Context())
	if err == nil {
		err = f.Cluster.Client.List(t.Context(), l, client.InNamespace(f.Namespace))
	}
	if err != nil || len(vms) == 0 || len(nodes) == 0 || len(l.Items) == 0 {
		t.Fatalf("%d Nodes, %d pods, %d VMs, error %v: nothing is looked at", len(nodes), len(l.Items), len(vms), err)
	}
	own := slices.Collect(maps.Values(v.nodes))
	for i := range l.Items {
		// A pod may have been scheduled to the Node of another fleet.
		if p := &l.Items[i]; slices.Contains(own, p.Spec.NodeName) {
			v.pods[p.UID] = p.Name
		}
	}
	if len(v.pods) == 0 {
		t.Fatal("no pod is on the Nodes of the fleet: nothing is looked at")
	}
	for _, vm := range vms {
		v.vms[vm.ID] = true
	}
	v.ended.Add(2)
	go v.look(ctx, &corev1.NodeList{}, nil)
	go v.look(ctx, &corev1.PodList{}, []client.ListOption{client.InNamespace(f.Namespace)})
	t.Cleanup(stop)
	return v
}

// look at the objects of a kind until the context ends.
func (v *vigil) look(ctx context.Context, l client.ObjectList, opts []client.ListOption) {
	defer v.ended.Done()
	for ctx.Err() == nil {
		w, err := v.f.Cluster.Client.Watch(ctx, l, opts...)
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		for e := range w.ResultChan() {
			v.judge(e)
		}
		w.Stop()
	}
}

func (v *vigil) judge(e watch.Event) {
	o, ok := e.Object.(client.Object)
	if !ok {
		return
	}
	name, isNode := v.nodes[o.GetUID()]
	pod, isPod := v.pods[o.GetUID()]
	gone := e.Type == watch.Deleted || o.GetDeletionTimestamp() != nil
	n, _ := o.(*corev1.Node)
	switch {
	case isNode && gone:
		v.note("Node %s is deleted", name)
	case isNode && n != nil && n.Spec.Unschedulable:
		v.note("Node %s is cordoned", name)
	case isPod && gone:
		v.note("pod %s is ended", pod)
	}
}

func (v *vigil) note(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := fmt.Sprintf(format, args...)
	if !slices.Contains(v.broken, s) {
		v.broken = append(v.broken, s)
	}
}

// done ends the vigil, and fails the test if a watched object was touched.
func (v *vigil) done(t *testing.T) {
	t.Helper()
	v.check(t)
	v.stop()
	v.ended.Wait()
	v.f.DeleteWorkload(t, "web")
	if err := v.f.DeleteBudget(t.Context(), "web"); err != nil {
		t.Error(err)
	}
}

// check the observations up to now.
func (v *vigil) check(t *testing.T) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, b := range v.broken {
		t.Error(b)
	}
	// A restarted watch lacks the events in between, so list all objects too.
	nodes, pods := &corev1.NodeList{}, &corev1.PodList{}
	vms, err := v.f.VMs(t.Context())
	if err == nil {
		err = v.f.Cluster.Client.List(t.Context(), nodes)
	}
	if err == nil {
		err = v.f.Cluster.Client.List(t.Context(), pods, client.InNamespace(v.f.Namespace))
	}
	if err != nil {
		t.Fatal(err)
	}
	for uid, name := range v.pods {
		if !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.UID == uid && p.DeletionTimestamp == nil }) {
			t.Errorf("pod %s is gone", name)
		}
	}
	for uid, name := range v.nodes {
		if !slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool { return n.UID == uid && isReady(&n) }) {
			t.Errorf("Node %s is not Ready any more", name)
		}
	}
	for id := range v.vms {
		if !slices.ContainsFunc(vms, func(vm localcloud.VM) bool { return vm.ID == id }) {
			t.Errorf("VM %s is gone", id)
		}
	}
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// unclaimed returns the IDs of a fleet's VMs that no Machine of its control cluster has.
func unclaimed(ctx context.Context, f kit.Fleet) ([]string, error) {
	vms, err := f.VMs(ctx)
	if err != nil {
		return nil, err
	}
	resources := &metav1.PartialObjectMetadataList{}
	resources.SetGroupVersionKind(virtualMachine.GroupVersion().WithKind(virtualMachine.Kind + "List"))
	if err := f.Client.List(ctx, resources, client.InNamespace(f.Namespace)); err != nil {
		return nil, err
	}
	var out []string
	for _, vm := range vms {
		if !slices.ContainsFunc(resources.Items, func(r metav1.PartialObjectMetadata) bool {
			by := metav1.GetControllerOfNoCopy(&r)
			return by != nil && by.Kind == machinev1alpha1.MachineGroupVersionKind.Kind && r.Annotations["crossplane.io/external-name"] == vm.ID
		}) {
			out = append(out, vm.ID)
		}
	}
	slices.Sort(out)
	return out, nil
}
