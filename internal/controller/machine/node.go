package machine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/workernode"
)

// Reasons of events.
const (
	reasonJoined      event.Reason = "NodeJoined"
	reasonNodeDeleted event.Reason = "NodeDeleted"
	reasonDraining    event.Reason = "Draining"
	reasonDrained     event.Reason = "Drained"
	reasonBlocked     event.Reason = "EvictionBlocked"
	reasonDetaching   event.Reason = "DetachingVolumes"
	reasonTimeout     event.Reason = "DrainTimeout"
	reasonForced      event.Reason = "DrainForced"
	reasonHookTimeout event.Reason = "HookTimeout"
	reasonInvalidRule event.Reason = "InvalidPodRule"

	reasonVolumeTimeout     event.Reason = "VolumeDetachTimeout"
	reasonVolumesUnreadable event.Reason = "VolumesUnreadable"

	reasonGaveUp event.Reason = "NodeAbandoned"
)

// A nodeCluster is what is needed of a target.Conn.
type nodeCluster struct {
	ref  target.Ref
	kube kubernetes.Interface
	// nodes are those that registered with a token, have a name, or have a UID.
	nodes func(ctx context.Context, token, name, uid string) ([]*corev1.Node, error)
	// classify tells the cluster's errors from others.
	classify func(error) error
}

// A machineNode is the Node of a Machine during one reconcile.
type machineNode struct {
	*machinev1alpha1.Machine
	workernode.WorkerNode

	// confirmed means that the VM resource itself reports the providerID.
	confirmed bool
	// proven is the name of the Node that was seen last, and is the Machine's.
	proven string
	// passed means that this reconcile did a pass of the drain already.
	passed bool
	// again is when to look again, zero for no wish.
	again time.Duration
}

// lookAgain after d at the latest.
func (wn *machineNode) lookAgain(d time.Duration) {
	if wn.again == 0 || d < wn.again {
		wn.again = d
	}
}

// nodeTools are shared by all nodeKeepers. See the package documentation for what the
// process remembers.
type nodeTools struct {
	connect func(context.Context, target.Ref) (nodeCluster, error)
	record  event.Recorder
	now     func() time.Time
	// hooks that hold the drain, read live.
	hooks func(context.Context, *machinev1alpha1.Machine) ([]string, error)
	// marks that the Nodes of the Machine's set share.
	marks func(context.Context, *machinev1alpha1.Machine) (machinev1alpha1.NodeMarks, error)
	// drains has what a drain remembers, by the UIDs of Machines.
	drains sync.Map
	// attachments of volumes are the same for all drains of a cluster.
	attachments attachments
}

func (t *nodeTools) forget(uid types.UID) { t.drains.Delete(uid) }

// keeperFor the Node of a Machine.
func (t *nodeTools) keeperFor(ctx context.Context, m *machinev1alpha1.Machine) (*nodeKeeper, error) {
	c, err := t.connect(ctx, refOf(m))
	return &nodeKeeper{nodeCluster: c, nodeTools: t}, err
}

// A nodeKeeper keeps the Node of one Machine in step, during one reconcile.
type nodeKeeper struct {
	nodeCluster
	*nodeTools
}

// observe the Node. It writes nothing.
func (x *nodeKeeper) observe(ctx context.Context, wn *machineNode) (*corev1.Node, error) {
	nodes, err := x.find(ctx, wn)
	if err != nil {
		return nil, err
	}
	node, err := only(claimOf(wn), nodes)
	if err != nil {
		return nil, err
	}
	if node != nil && wn.Observation.NodeUID != node.GetUID() {
		x.record.Event(wn.Machine, event.Normal(reasonJoined, fmt.Sprintf("Node %s joined", node.GetName())))
	}
	observeNode(wn, node)
	wn.proven = ""
	if node != nil {
		wn.proven = node.GetName()
	}
	if wn.Observation.Drain == nil {
		x.drains.Delete(wn.GetUID())
	}
	patch, err := x.patchFor(ctx, node, wn)
	wn.Observation.Synced = node != nil && patch == nil && err == nil
	return node, err
}

// keep the Node as the parameters say: it is patched if it differs, and a pass of its drain
// is done if it shall be drained. The result reports whether the observation changed.
func (x *nodeKeeper) keep(ctx context.Context, wn *machineNode, node *corev1.Node) (changed bool, err error) {
	if node == nil {
		return false, nil
	}
	synced, patched, err := x.sync(ctx, wn, node)
	if err != nil {
		return false, x.classify(err)
	}
	observeNode(wn, synced)
	wn.Observation.Synced = true
	if !toDrain(wn, synced) || wn.passed {
		return patched, nil
	}
	wn.passed = true
	// The Node as it was before the patch: whether it was cordoned only now decides.
	return true, x.classify(x.empty(ctx, wn, node))
}

// sync starts from the Node as cached, and reads it only if that was too old. It returns
// the Node as it was seen last, and whether it was patched.
func (x *nodeKeeper) sync(ctx context.Context, wn *machineNode, node *corev1.Node) (*corev1.Node, bool, error) {
	isPatched := false
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		patch, err := x.patchFor(ctx, node, wn)
		if err != nil || patch == nil {
			return err
		}
		patched, err := x.kube.CoreV1().Nodes().Patch(ctx, node.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "provider-drover"})
		if kerrors.IsConflict(err) {
			live, gerr := x.kube.CoreV1().Nodes().Get(ctx, node.GetName(), metav1.GetOptions{})
			if gerr != nil {
				return gerr
			}
			node = live
		}
		if err == nil {
			node, isPatched = patched, true
		}
		return err
	})
	return node, isPatched, err
}

func (x *nodeKeeper) patchFor(ctx context.Context, node *corev1.Node, wn *machineNode) ([]byte, error) {
	if node == nil {
		return nil, nil
	}
	marks, err := x.marks(ctx, wn.Machine)
	if err != nil {
		return nil, err
	}
	return syncPatch(node, withMarks(identified(wn), marks))
}

// identified parameters have the label by which the Node is the Machine's: it is put back
// when it was removed.
func identified(wn *machineNode) workernode.Parameters {
	p := wn.Parameters
	p.Labels = labels.Merge(p.Labels, labels.Set{clusterv1alpha1.LabelJoinToken: string(wn.GetUID())})
	if !wn.confirmed {
		p.ProviderID = "" // A Node keeps the one that it is given: a status is not good enough.
	}
	return p
}
