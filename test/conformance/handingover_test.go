package conformance

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/command"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// A handingOver imports Machines of another system, and witnesses what becomes of their Nodes and the pods on them.
type handingOver struct {
	*testing.T
	kit.Fleet
	kubeconfig string
	// nodes are the keys of the Nodes as they were before the import.
	nodes map[string]string

	mu     sync.Mutex
	broken map[string]bool
}

func newHandingOver(t *testing.T, p *kit.Plane) *handingOver {
	t.Helper()
	return &handingOver{T: t, Fleet: p.NewFleet(t), kubeconfig: p.Kubeconfig, nodes: map[string]string{}, broken: map[string]bool{}}
}

func (x *handingOver) eventually(until func(context.Context) string) {
	x.Helper()
	patience.Eventually(x.T, until, x.Describe)
}

// drover runs the plugin of kubectl, and returns its output.
func (x *handingOver) drover(args ...string) string {
	x.Helper()
	code, out := x.tryDrover(args...)
	if code != 0 {
		x.Fatalf("kubectl drover %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	}
	x.Logf("kubectl drover %s\n%s", strings.Join(args, " "), out)
	return out
}

// tryDrover runs the plugin of kubectl, and returns its exit code and output.
func (x *handingOver) tryDrover(args ...string) (int, string) {
	x.Helper()
	out := &bytes.Buffer{}
	all := append(args[:len(args):len(args)], "--kubeconfig", x.kubeconfig, "--namespace", x.Namespace)
	code := command.Run(x.Context(), genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: out}, all)
	return code, out.String()
}

// create an object of the fleet's namespace.
func (x *handingOver) create(gvk schema.GroupVersionKind, name string, spec map[string]any, labels map[string]string) {
	x.Helper()
	o := object(gvk.GroupVersion().String(), gvk.Kind, name, spec)
	o.SetNamespace(x.Namespace)
	o.SetLabels(labels)
	x.Create(x.T, o)
}

func (x *handingOver) list(gvk schema.GroupVersionKind) []unstructured.Unstructured {
	x.Helper()
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	must(x.T, x.Client.List(x.Context(), l, client.InNamespace(x.Namespace)))
	return l.Items
}

// join creates a Node that is Ready, and a pod on it. The taint keeps the pods of other tests away.
func (x *handingOver) join(name, providerID string) {
	x.Helper()
	taint := corev1.Taint{Key: "example.org/import", Effect: corev1.TaintEffectNoSchedule}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: providerID, Taints: []corev1.Taint{taint}}}
	must(x.T, x.Client.Create(x.Context(), n))
	before := n.DeepCopy()
	n.Status.NodeInfo.KubeletVersion = kit.NewVersion
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}
	must(x.T, x.Client.Status().Patch(x.Context(), n, client.MergeFrom(before)))
	must(x.T, x.Client.Create(x.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(name), LeaseDurationSeconds: ptr.To[int32](40), RenewTime: &metav1.MicroTime{Time: time.Now()}},
	}))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: x.Namespace, Name: name}, Spec: corev1.PodSpec{
		NodeName: name, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, Containers: []corev1.Container{{Name: "c", Image: "example.org/c"}},
	}}
	must(x.T, x.Client.Create(x.Context(), pod))
	x.Cleanup(func() {
		_ = x.Client.Delete(context.Background(), pod, client.GracePeriodSeconds(0))
		_ = x.Client.Delete(context.Background(), n)
	})
}

// keysOf returns the labels, the annotations and the taints of a Node.
func (x *handingOver) keysOf(node string) string {
	x.Helper()
	n := &corev1.Node{}
	must(x.T, x.Client.Get(x.Context(), client.ObjectKey{Name: node}, n))
	return fmt.Sprint(n.Labels, n.Annotations, n.Spec.Taints)
}

// judge notes a Node that is cordoned, tainted or deleted, and a pod that is evicted or deleted.
func (x *handingOver) judge(event string, o client.Object) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if event == "DELETED" || o.GetDeletionTimestamp() != nil {
		x.broken[fmt.Sprintf("%T %s is deleted", o, o.GetName())] = true
	}
	if n, ok := o.(*corev1.Node); ok && (n.Spec.Unschedulable || len(n.Spec.Taints) > 1) {
		x.broken[fmt.Sprintf("Node %s has the taints %v", n.Name, n.Spec.Taints)] = true
	}
}

// beat has the kubelets of Nodes report until the end of the test.
func (x *handingOver) beat(names []string) {
	x.Helper()
	beat, stop := context.WithCancel(context.WithoutCancel(x.Context()))
	var done sync.WaitGroup
	done.Go(func() {
		wait.UntilWithContext(beat, func(ctx context.Context) {
			for _, n := range names {
				lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: n}}
				renewed := fmt.Appendf(nil, `{"spec":{"holderIdentity":%q,"leaseDurationSeconds":40,"renewTime":%q}}`, n, time.Now().UTC().Format(metav1.RFC3339Micro))
				_ = x.Client.Patch(ctx, lease, client.RawPatch(types.MergePatchType, renewed))
			}
		}, 5*time.Second)
	})
	x.Cleanup(func() { stop(); done.Wait() })
}

// awaitSet waits until the MachineDeployment of Drover has its MachineSet.
func (x *handingOver) awaitSet() {
	x.Helper()
	x.eventually(func(ctx context.Context) string {
		l := &machinev1alpha1.MachineSetList{}
		if err := x.Client.List(ctx, l, client.InNamespace(x.Namespace)); err != nil || len(l.Items) != 1 {
			return fmt.Sprintf("%d MachineSets, %v", len(l.Items), err)
		}
		return ""
	})
}

// watch the Nodes and the pods on them until the end of the test.
func (x *handingOver) watch() {
	x.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(x.Context()))
	var done sync.WaitGroup
	for _, l := range []client.ObjectList{&corev1.NodeList{}, &corev1.PodList{}} {
		done.Go(func() {
			wait.UntilWithContext(ctx, func(ctx context.Context) {
				w, err := x.Client.Watch(ctx, l)
				if err != nil {
					return
				}
				for e := range w.ResultChan() {
					if o, ok := e.Object.(client.Object); ok && x.nodes[o.GetName()] != "" {
						x.judge(string(e.Type), o)
					}
				}
			}, 100*time.Millisecond)
		})
	}
	x.Cleanup(func() { stop(); done.Wait() })
}

// untouched fails if a Node or a pod was touched.
func (x *handingOver) untouched() {
	x.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	for what := range x.broken {
		x.Error(what)
	}
}
