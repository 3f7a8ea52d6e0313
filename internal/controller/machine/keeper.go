package machine

import (
	"context"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/drain"
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

// A contest is a conflict about which Node is the Machine's.
type contest struct{ reason, message string }

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

// requeueWithin requeues after d at the latest.
func (wn *machineNode) requeueWithin(d time.Duration) {
	if wn.again == 0 || d < wn.again {
		wn.again = d
	}
}

func (wn *machineNode) memory() nodeMemory {
	node := wn.WorkerNode
	return nodeMemory{node: &node, confirmed: wn.confirmed, ownUserData: wn.ownUserData, proven: wn.proven, provenUID: wn.provenUID, identity: wn.Status.Identity}
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
	attachments drain.Attachments
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

// A recordFunc writes to the status of the Machine the keys that the Node is about to get.
type recordFunc func(context.Context, *machinev1alpha1.AppliedToNode) error

// A recordError is an error of the control cluster. It does not unwrap: a conflict in it is not one of the
// Node, and it must not be classified as an error of the target cluster.
type recordError struct{ cause error }

func (e *recordError) Error() string { return e.cause.Error() }

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

// asked reports whether the Machine or the Node has the annotation with the value "true".
func asked(annotation string, wn *machineNode, node *corev1.Node) bool {
	return wn.GetAnnotations()[annotation] == "true" || node != nil && node.GetAnnotations()[annotation] == "true"
}

// stamp is the current time with the precision of a status.
func (x *nodeKeeper) stamp() metav1.Time { return metav1.NewTime(x.now().Truncate(time.Second)) }

const (
	// afterNode is when a deleted Node is read again if no watch event arrives.
	afterNode = 2 * time.Second

	// abandonAfter the drain's timeout, a Node is left behind whose deletion a reachable cluster refuses, or accepts and
	// does not finish.
	abandonAfter = time.Minute

	// hookEvery is how often the hooks that hold a drain are read.
	hookEvery = 3 * time.Second

	// retryAfter is the delay after an error. The retry is not later than the drain's timeout.
	retryAfter = 15 * time.Second
)

// deletedAt returns when the Machine was deleted. The clock of the API server may be ahead.
func (x *nodeKeeper) deletedAt(wn *machineNode) metav1.Time {
	at := *wn.GetDeletionTimestamp()
	if at.After(x.now()) {
		at = x.stamp()
	}
	return at
}

// deadline of the drain. It counts from the deletion of the Machine, from the release by the hooks, or, for a
// Node that stays, from the start of its drain.
func (x *nodeKeeper) deadline(wn *machineNode) time.Time {
	began := x.now()
	if wn.GetDeletionTimestamp() != nil {
		began = x.deletedAt(wn).Time
	}
	if d := wn.Observation.Drain; d != nil {
		began = d.StartTime.Time
	}
	return began.Add(wn.Parameters.Drain.Timeout.Duration)
}

func (x *nodeKeeper) isPastDeadline(wn *machineNode) bool { return x.now().After(x.deadline(wn)) }

func (x *nodeKeeper) retry(wn *machineNode) {
	after := retryAfter
	if left := x.deadline(wn).Sub(x.now()); left > -time.Second {
		after = min(after, left+time.Second)
	} else {
		after = afterNode
	}
	wn.requeueWithin(after)
}

// skip reports whether the user skips the drain. The Node may be nil.
func (x *nodeKeeper) skip(wn *machineNode, node *corev1.Node) bool {
	return wn.Parameters.Drain.Skip || asked(machinev1alpha1.AnnotationSkipDrain, wn, node)
}

// A nodeMemory is the process-local memory of a Node between two reconciles.
type nodeMemory struct {
	// node is nil until the pipeline has decided on parameters.
	node                   *workernode.WorkerNode
	confirmed, ownUserData bool
	// proven is the name of the Node that is the Machine's, empty if there is none, and
	// provenUID its UID.
	proven    string
	provenUID types.UID
	// identity of a VM that the Machine took over, nil for its own.
	identity *machinev1alpha1.MachineIdentity
}
