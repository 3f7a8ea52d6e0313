package machine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/identity"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/workernode"
)

// A nodeCluster is the part of a target.Conn that a Node needs.
type nodeCluster struct {
	ref  target.Ref
	kube kubernetes.Interface
	// nodes returns the Nodes that registered with a token, have a name, or have a UID.
	nodes func(ctx context.Context, token, name, uid string) ([]*corev1.Node, error)
	// ofVM returns the Nodes with a providerID.
	ofVM func(ctx context.Context, providerID string) ([]*corev1.Node, error)
	// classify distinguishes errors of the cluster from other ones.
	classify func(error) error
	// allowsLabel and allowsTaint report which keys the configuration allows on Nodes. All are allowed if they are
	// nil.
	allowsLabel, allowsTaint func(key string) bool
	// requests returns the certificate requests of a user that the watches have found. It may be nil.
	requests func(user string) []*certificatesv1.CertificateSigningRequest
}

// A machineNode is the Node of a Machine during one reconcile.
type machineNode struct {
	*machinev1alpha1.Machine
	workernode.WorkerNode

	// confirmed means that the VM resource itself reports the providerID.
	confirmed bool
	// ownUserData means that Drover did not write the user data of the VM.
	ownUserData bool
	// proven is the name of the Machine's Node as it was observed last; provenUID is its UID.
	proven    string
	provenUID types.UID
	// isObserved means that this reconcile has read the Nodes. contest is the conflict between them, nil if there
	// is none.
	isObserved bool
	contest    *contest
	// settled has the record of a Node that is in sync, nil while it is not.
	settled *nodeChange
	// passed means that this reconcile has already done a pass of the drain.
	passed bool
	// heldBy are the finalizers that hold the Node although it is deleted, and heldUntil is when it is left behind.
	heldBy    []string
	heldUntil time.Time
	// again is the delay until the next reconcile, zero for none.
	again time.Duration
}

// lookAgain requeues after d at the latest.
func (wn *machineNode) lookAgain(d time.Duration) {
	if wn.again == 0 || d < wn.again {
		wn.again = d
	}
}

// nodeTools are shared by all nodeKeepers. The package documentation has the process-local memory.
type nodeTools struct {
	connect func(context.Context, *machinev1alpha1.Machine) (nodeCluster, error)
	record  event.Recorder
	now     func() time.Time
	// hooks that hold the drain, read from the API server.
	hooks func(context.Context, *machinev1alpha1.Machine) ([]string, error)
	// marks that the Nodes of the Machine's set share.
	marks func(context.Context, *machinev1alpha1.Machine) (machinev1alpha1.NodeMarks, error)
	// drains has the memory of each drain, by the UIDs of Machines.
	drains sync.Map
	// attachments of volumes, shared by all drains of a cluster.
	attachments attachments
}

func (t *nodeTools) forget(uid types.UID) { t.drains.Delete(uid) }

// keeperFor returns the nodeKeeper for a Machine.
func (t *nodeTools) keeperFor(ctx context.Context, m *machinev1alpha1.Machine) (*nodeKeeper, error) {
	c, err := t.connect(ctx, m)
	return &nodeKeeper{nodeCluster: c, nodeTools: t}, err
}

// A nodeKeeper keeps the Node of one Machine in sync, during one reconcile.
type nodeKeeper struct {
	nodeCluster
	*nodeTools
}

// observe reads the Node. It writes nothing.
func (x *nodeKeeper) observe(ctx context.Context, wn *machineNode) (*corev1.Node, error) {
	wn.settled, wn.isObserved = nil, false
	found, err := x.find(ctx, wn)
	if err != nil {
		return nil, err
	}
	node, err := found.own()
	if wn.contest, wn.isObserved = found.contest(), true; err != nil {
		return nil, err
	}
	if node != nil && wn.Observation.NodeUID != node.GetUID() {
		x.record.Event(wn.Machine, event.Normal(machinev1alpha1.EventNodeJoined, fmt.Sprintf("Node %s joined", node.GetName())))
	}
	observeNode(wn, node, x.now())
	wn.Observation.Join = x.joinOf(wn, found)
	wn.proven, wn.provenUID = "", ""
	if node == nil {
		x.drains.Delete(wn.GetUID())
		return nil, nil
	}
	wn.proven, wn.provenUID = node.GetName(), node.GetUID()
	if wn.Observation.Drain == nil {
		x.drains.Delete(wn.GetUID())
	}
	change, err := x.changeOf(ctx, node, wn)
	if err == nil && change.patch == nil {
		wn.Observation.Synced, wn.settled = true, &change
	}
	return node, err
}

// A recordFunc writes to the status of the Machine the keys that the Node is about to get.
type recordFunc func(context.Context, *machinev1alpha1.AppliedToNode) error

// keep brings the Node in sync with its parameters: it patches a Node that differs, and does a pass of the
// drain of a Node that shall be drained. It reports whether the observation changed.
func (x *nodeKeeper) keep(ctx context.Context, wn *machineNode, node *corev1.Node, record recordFunc) (changed bool, err error) {
	if node == nil {
		return false, nil
	}
	synced, patched, err := x.sync(ctx, wn, node, record)
	if err != nil {
		return false, x.classify(err)
	}
	join := wn.Observation.Join
	observeNode(wn, synced, x.now())
	wn.Observation.Synced, wn.Observation.Join = true, join
	if !toDrain(wn, synced) || wn.passed {
		return patched, nil
	}
	wn.passed = true
	// The Node as it was before the patch: a Node that only this patch cordoned is drained by a later pass.
	return true, x.classify(x.empty(ctx, wn, node))
}

// sync starts from the cached Node, and reads it only after a conflict. It returns the latest Node, and whether
// it was patched. Changes are recorded in the status of the Machine before the patch.
func (x *nodeKeeper) sync(ctx context.Context, wn *machineNode, node *corev1.Node, record recordFunc) (*corev1.Node, bool, error) {
	isPatched := false
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		change, err := x.changeOf(ctx, node, wn)
		if err != nil {
			return err
		}
		if change.patch == nil {
			x.recordKept(wn, node, change)
			wn.settled = &change
			return nil
		}
		if !isCovered(wn.Status.AppliedToNode, change.record) {
			if err := record(ctx, both(wn.Status.AppliedToNode, change.record)); err != nil {
				return &recordError{err}
			}
		}
		patched, err := x.kube.CoreV1().Nodes().Patch(ctx, node.GetName(), types.MergePatchType, change.patch, metav1.PatchOptions{FieldManager: "provider-drover"})
		if kerrors.IsConflict(err) {
			live, gerr := x.kube.CoreV1().Nodes().Get(ctx, node.GetName(), metav1.GetOptions{})
			if gerr != nil {
				return gerr
			}
			if live.GetUID() != node.GetUID() {
				return fmt.Errorf("the Node %s was replaced by another one of its name", node.GetName())
			}
			node = live
		}
		if err == nil {
			x.recordRestored(wn, node)
			x.recordKept(wn, node, change)
			node, isPatched, wn.settled = patched, true, &change
		}
		return err
	})
	return node, isPatched, err
}

// recordRestored records an event if a patch restored the label that makes the Node the Machine's. The event does
// not quote the label: otherwise each value would be another event.
func (x *nodeKeeper) recordRestored(wn *machineNode, before *corev1.Node) {
	if before.GetLabels()[clusterv1alpha1.LabelJoinToken] == string(identity.UID(wn.Machine)) {
		return
	}
	x.record.Event(wn.Machine, event.Warning(machinev1alpha1.EventNodeIdentityRestored, fmt.Errorf("the Node %s had lost its label %s, which is restored: find out whether its kubelet or a user changed it", before.GetName(), clusterv1alpha1.LabelJoinToken)))
}

// recordKept records an event with the keys that only a user may remove.
func (x *nodeKeeper) recordKept(wn *machineNode, node *corev1.Node, change nodeChange) {
	if len(change.kept) == 0 {
		return
	}
	x.record.Event(wn.Machine, event.Normal(machinev1alpha1.EventNodeKeysKept, fmt.Sprintf("The Node %s keeps %s, which this Machine no longer has: Drover removes no key of kubernetes.io or k8s.io; remove it by hand", node.GetName(), strings.Join(change.kept, ", "))))
}

// A recordError is an error of the control cluster. It does not unwrap: a conflict in it is not one of the
// Node, and it must not be classified as an error of the target cluster.
type recordError struct{ cause error }

func (e *recordError) Error() string { return e.cause.Error() }

func (x *nodeKeeper) changeOf(ctx context.Context, node *corev1.Node, wn *machineNode) (nodeChange, error) {
	marks, err := x.marks(ctx, wn.Machine)
	if err != nil {
		return nodeChange{}, err
	}
	return syncChange(node, x.permitted(wn, withMarks(identified(wn), marks)), wn.Status.AppliedToNode)
}

// identified returns the parameters with the label that makes the Node the Machine's, so that a removed label
// is restored.
func identified(wn *machineNode) workernode.Parameters {
	p := wn.Parameters
	p.Labels = labels.Merge(p.Labels, labels.Set{clusterv1alpha1.LabelJoinToken: string(identity.UID(wn.Machine))})
	if !wn.confirmed {
		p.ProviderID = "" // A Node keeps its providerID for ever: a status is not proof enough.
	}
	return p
}
