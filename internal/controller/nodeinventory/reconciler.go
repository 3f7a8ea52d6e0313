package nodeinventory

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/stored"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/text"
	"github.com/drover-dev/drover/internal/workernode"
)

// interval between two checks if no event enqueues the inventory: the watch of a target cluster may
// have ended.
const interval = time.Minute

// A cluster has the parts of a target cluster that the controller needs.
type cluster struct {
	kube kubernetes.Interface
	// nodes and ofVM read from a cache: the Node of a name, and the Nodes with a providerID.
	nodes func(ctx context.Context, token, name, uid string) ([]*corev1.Node, error)
	ofVM  func(ctx context.Context, providerID string) ([]*corev1.Node, error)
	// classify returns the class of an error of a call.
	classify func(error) error
}

type reconciler struct {
	// client reads from the cache, and writes.
	client  client.Client
	connect func(context.Context, target.Ref) (cluster, error)
}

// Reconcile updates the answers of a NodeInventory.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	n := &clusterv1alpha1.NodeInventory{}
	if err := r.client.Get(ctx, req.NamespacedName, n); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if n.GetDeletionTimestamp() != nil || stored.Faults(n) != "" { // It would answer other questions.
		return reconcile.Result{}, nil
	}
	status := clusterv1alpha1.NodeInventoryStatus{ObservedGeneration: n.GetGeneration()}
	machines, err := r.machinesOf(ctx, n.Spec.VirtualMachines)
	if err != nil {
		return reconcile.Result{}, err
	}
	looks := r.look(ctx, n.Spec.VirtualMachines)
	for _, q := range n.Spec.VirtualMachines {
		a := answer(ctx, q, looks)
		a.Machine = machines[types.NamespacedName{Namespace: q.Namespace, Name: q.NodeName}]
		status.VirtualMachines = append(status.VirtualMachines, a)
	}
	if equality.Semantic.DeepEqual(n.Status, status) {
		return reconcile.Result{RequeueAfter: interval}, nil
	}
	n = n.DeepCopy()
	n.Status = status
	if err := r.client.Status().Update(ctx, n); err != nil {
		if kerrors.IsConflict(err) { // The cache soon gets the newer version, which causes a reconcile.
			return reconcile.Result{RequeueAfter: interval}, nil
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return reconcile.Result{RequeueAfter: interval}, nil
}

// A look is the observation of one target cluster.
type look struct {
	cluster
	// registered has the Nodes that registered as the Machines in question.
	registered []corev1.Node
	// err is the reason why the cluster cannot be observed.
	err error
}

// look observes each target cluster once. A cluster without a configuration has no entry.
func (r *reconciler) look(ctx context.Context, queries []clusterv1alpha1.NodeQuery) map[target.Ref]*look {
	uids := map[target.Ref][]string{}
	for _, q := range queries {
		for _, ref := range refsOf(q) {
			uids[ref] = append(uids[ref], q.MachineUID)
		}
	}
	out := map[target.Ref]*look{}
	for ref, of := range uids {
		l := &look{}
		l.cluster, l.err = r.connect(ctx, ref)
		if target.Is(l.err, target.ConfigNotFound) {
			continue
		}
		if l.err == nil {
			l.registered, l.err = l.list(ctx, of)
		}
		out[ref] = l
	}
	return out
}

// refsOf returns the configurations that a query can refer to.
func refsOf(q clusterv1alpha1.NodeQuery) []target.Ref {
	if q.Cluster == "" {
		return nil
	}
	refs := []target.Ref{target.ClusterRef(q.Cluster)}
	if q.Namespace != "" {
		refs = append(refs, target.NamespacedRef(q.Namespace, q.Cluster))
	}
	return refs
}

// list returns the Nodes that registered as Machines, read live. It proves that the cluster answers:
// the cache of a cluster that does not answer may be stale.
func (l *look) list(ctx context.Context, uids []string) ([]corev1.Node, error) {
	uids = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(uids))), func(uid string) bool { return uid == "" })
	if len(uids) == 0 {
		uids = []string{"none"} // The list is needed as a proof, even if it is empty.
	}
	is, err := labels.NewRequirement(clusterv1alpha1.LabelJoinToken, selection.In, uids)
	if err != nil {
		return nil, err
	}
	list, err := l.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: labels.NewSelector().Add(*is).String()})
	if err != nil {
		return nil, l.classify(err)
	}
	return list.Items, nil
}

// answer returns the answer to a query from the observations.
func answer(ctx context.Context, q clusterv1alpha1.NodeQuery, looks map[target.Ref]*look) clusterv1alpha1.NodeAnswer {
	out := clusterv1alpha1.NodeAnswer{ExternalName: q.ExternalName}
	seen, problems := false, []string{}
	for _, ref := range refsOf(q) {
		l := looks[ref]
		if l == nil {
			continue
		}
		seen = true
		nodes, err := l.nodesOf(ctx, q)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %s", ref, err))
			continue
		}
		for _, node := range nodes {
			if out.Node == "" || !out.Ready && isReady(node) {
				out.Node, out.Cluster, out.Ready = node.GetName(), ref.String(), isReady(node)
			}
		}
	}
	switch {
	case q.Cluster == "":
		problems = append(problems, "the VM has no tag with the cluster that it was made for")
	case !seen:
		problems = append(problems, fmt.Sprintf("neither a ClusterProviderConfig %s nor a ProviderConfig %s/%s exists", q.Cluster, q.Namespace, q.Cluster))
	}
	out.Problem = text.Shorten(strings.Join(problems, "; "), maxProblem)
	return out
}

// nodesOf returns the Nodes of a VM.
func (l *look) nodesOf(ctx context.Context, q clusterv1alpha1.NodeQuery) ([]*corev1.Node, error) {
	if l.err != nil {
		return nil, l.err
	}
	var out []*corev1.Node
	for i := range l.registered {
		if q.MachineUID != "" && l.registered[i].GetLabels()[clusterv1alpha1.LabelJoinToken] == q.MachineUID {
			out = append(out, &l.registered[i])
		}
	}
	named, err := l.nodes(ctx, q.MachineUID, q.NodeName, "")
	if err != nil {
		return nil, err
	}
	out = append(out, named...)
	if q.ProviderID != "" {
		ofVM, err := l.ofVM(ctx, q.ProviderID)
		if err != nil {
			return nil, err
		}
		out = append(out, ofVM...)
	}
	return out, nil
}

// isReady reports whether pods may run on a Node. Before its initialization no pod was scheduled to
// it: it joined late, for a Machine that no longer exists.
func isReady(node *corev1.Node) bool {
	return workernode.IsReady(node) && !workernode.IsUninitialized(node)
}

// maxProblem is the maximum length of an error in an answer.
const maxProblem = 256
