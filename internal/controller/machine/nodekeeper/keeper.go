package nodekeeper

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
	"github.com/drover-dev/drover/internal/nodekeys"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/workernode"
)

// A Cluster is the part of a target.Conn that a Node needs.
type Cluster struct {
	Ref  target.Ref
	Kube kubernetes.Interface
	// Nodes returns the Nodes that registered with a token, have a name, or have a UID.
	Nodes func(ctx context.Context, token, name, uid string) ([]*corev1.Node, error)
	// OfVM returns the Nodes with a providerID.
	OfVM func(ctx context.Context, providerID string) ([]*corev1.Node, error)
	// Classify distinguishes errors of the cluster from other ones.
	Classify func(error) error
	// AllowsLabel and AllowsTaint report which keys the configuration allows on Nodes. All are allowed if they are
	// nil.
	AllowsLabel, AllowsTaint func(key string) bool
	// Requests returns the certificate requests of a user that the watches have found. It may be nil.
	Requests func(user string) []*certificatesv1.CertificateSigningRequest
}

// A Contest is a conflict about which Node is the Machine's.
type Contest struct{ Reason, Message string }

// A Node is the Node of a Machine during one reconcile.
type Node struct {
	*machinev1alpha1.Machine
	workernode.WorkerNode

	Evidence
	// IsObserved means that this reconcile has read the Nodes. Contest is the conflict between them, nil if there
	// is none.
	IsObserved bool
	Contest    *Contest
	// Settled has the record of a Node that is in sync, nil while it is not.
	Settled *nodekeys.Change
	// passed means that this reconcile has already done a pass of the drain.
	passed bool
	// HeldBy are the finalizers that hold the Node although it is deleted, and HeldUntil is when it is left behind.
	HeldBy    []string
	HeldUntil time.Time
	// Again is the delay until the next reconcile, zero for none.
	Again time.Duration
}

// Evidence by which a Node is the Machine's.
type Evidence struct {
	// Confirmed means that the VM resource itself reports the providerID.
	Confirmed bool
	// OwnUserData means that Drover did not write the user data of the VM.
	OwnUserData bool
	// Proven is the name of the Machine's Node as it was observed last, empty if there is none; ProvenUID is its UID.
	Proven    string
	ProvenUID types.UID
}

// RequeueWithin requeues after d at the latest.
func (wn *Node) RequeueWithin(d time.Duration) {
	if wn.Again == 0 || d < wn.Again {
		wn.Again = d
	}
}

// Memory of the Node for the next reconcile.
func (wn *Node) Memory() Memory {
	node := wn.WorkerNode
	return Memory{Node: &node, Evidence: wn.Evidence, Identity: wn.Status.Identity}
}

// Tools are shared by all Keepers. The package documentation has the process-local memory.
type Tools struct {
	Connect func(context.Context, *machinev1alpha1.Machine) (Cluster, error)
	Record  event.Recorder
	Now     func() time.Time
	// Hooks that hold the drain, read from the API server.
	Hooks func(context.Context, *machinev1alpha1.Machine) ([]string, error)
	// Marks that the Nodes of the Machine's set share.
	Marks func(context.Context, *machinev1alpha1.Machine) (machinev1alpha1.NodeMarks, error)
	// Drains has the memory of each drain, by the UIDs of Machines.
	Drains sync.Map
	// attachments of volumes, shared by all drains of a cluster.
	attachments drain.Attachments
}

// Forget the drain of a Machine.
func (t *Tools) Forget(uid types.UID) { t.Drains.Delete(uid) }

// KeeperFor returns the Keeper for a Machine.
func (t *Tools) KeeperFor(ctx context.Context, m *machinev1alpha1.Machine) (*Keeper, error) {
	c, err := t.Connect(ctx, m)
	return &Keeper{Cluster: c, Tools: t}, err
}

// A Keeper keeps the Node of one Machine in sync, during one reconcile.
type Keeper struct {
	Cluster
	*Tools
}

// A RecordFunc writes to the status of the Machine the keys that the Node is about to get.
type RecordFunc func(context.Context, *machinev1alpha1.AppliedToNode) error

// A RecordError is an error of the control cluster. It does not unwrap: a conflict in it is not one of the
// Node, and it must not be classified as an error of the target cluster.
type RecordError struct{ Cause error }

func (e *RecordError) Error() string { return e.Cause.Error() }

// identified returns the parameters with the label that makes the Node the Machine's, so that a removed label
// is restored.
func identified(wn *Node) workernode.Parameters {
	p := wn.Parameters
	p.Labels = labels.Merge(p.Labels, labels.Set{clusterv1alpha1.LabelJoinToken: string(identity.UID(wn.Machine))})
	if !wn.Confirmed {
		p.ProviderID = "" // A Node keeps its providerID for ever: a status is not proof enough.
	}
	return p
}

// asked reports whether the Machine or the Node has the annotation with the value "true".
func asked(annotation string, wn *Node, node *corev1.Node) bool {
	return wn.GetAnnotations()[annotation] == "true" || node != nil && node.GetAnnotations()[annotation] == "true"
}

// stamp is the current time with the precision of a status.
func (x *Keeper) stamp() metav1.Time { return metav1.NewTime(x.Now().Truncate(time.Second)) }

const (
	// afterNode is when a deleted Node is read again if no watch event arrives.
	afterNode = 2 * time.Second

	// AbandonAfter the drain's timeout, a Node is left behind whose deletion a reachable cluster refuses, or accepts and
	// does not finish.
	AbandonAfter = time.Minute

	// hookEvery is how often the hooks that hold a drain are read.
	hookEvery = 3 * time.Second

	// RetryAfter is the delay after an error. The retry is not later than the drain's timeout.
	RetryAfter = 15 * time.Second
)

// deletedAt returns when the Machine was deleted. The clock of the API server may be ahead.
func (x *Keeper) deletedAt(wn *Node) metav1.Time {
	at := *wn.GetDeletionTimestamp()
	if at.After(x.Now()) {
		at = x.stamp()
	}
	return at
}

// deadline of the drain. It counts from the deletion of the Machine, from the release by the hooks, or, for a
// Node that stays, from the start of its drain.
func (x *Keeper) deadline(wn *Node) time.Time {
	began := x.Now()
	if wn.GetDeletionTimestamp() != nil {
		began = x.deletedAt(wn).Time
	}
	if d := wn.Observation.Drain; d != nil {
		began = d.StartTime.Time
	}
	return began.Add(wn.Parameters.Drain.Timeout.Duration)
}

func (x *Keeper) isPastDeadline(wn *Node) bool { return x.Now().After(x.deadline(wn)) }

func (x *Keeper) retry(wn *Node) {
	after := RetryAfter
	if left := x.deadline(wn).Sub(x.Now()); left > -time.Second {
		after = min(after, left+time.Second)
	} else {
		after = afterNode
	}
	wn.RequeueWithin(after)
}

// skip reports whether the user skips the drain. The Node may be nil.
func (x *Keeper) skip(wn *Node, node *corev1.Node) bool {
	return wn.Parameters.Drain.Skip || asked(machinev1alpha1.AnnotationSkipDrain, wn, node)
}

// A Memory is the process-local memory of a Node between two reconciles.
type Memory struct {
	// Node is nil until the pipeline has decided on parameters.
	Node *workernode.WorkerNode
	Evidence
	// Identity of a VM that the Machine took over, nil for its own.
	Identity *machinev1alpha1.MachineIdentity
}

// LastSeen is the observation of the Node that the status has, for a process that has not read the Node yet. It
// stands in for a Node that cannot be read now, and proves nothing.
func LastSeen(m *machinev1alpha1.Machine) workernode.Observation {
	s := m.Status
	o := workernode.Observation{Drain: s.Drain.DeepCopy(), Drained: s.Drained}
	if s.NodeRef == nil {
		return o
	}
	o.NodeName, o.NodeUID, o.Present = s.NodeRef.Name, types.UID(s.NodeRef.UID), s.NodeGoneSince == nil
	if s.NodeInfo != nil {
		info := workernode.Info(*s.NodeInfo)
		o.NodeInfo = &info
	}
	if s.Preserve != "" && m.GetAnnotations()[machinev1alpha1.AnnotationPreserve] != s.Preserve {
		o.Annotations = map[string]string{machinev1alpha1.AnnotationPreserve: s.Preserve}
	}
	if s.ReplaceRequested && m.Annotations[machinev1alpha1.AnnotationReplace] != "true" {
		o.Annotations = labels.Merge(o.Annotations, labels.Set{machinev1alpha1.AnnotationReplace: "true"})
	}
	ready := workernode.Condition{Type: string(corev1.NodeReady), Status: string(corev1.ConditionUnknown)}
	ready.Since = s.NotReadySince
	if s.ReadySince != nil {
		ready.Status, ready.Since = string(corev1.ConditionTrue), s.ReadySince
	}
	if s.Unhealthy != nil && s.Unhealthy.Until == nil {
		if s.NotReadySince == nil {
			ready.Status = string(corev1.ConditionTrue)
		}
		for _, c := range s.Unhealthy.Conditions {
			if c.Type == ready.Type {
				ready.Status, ready.Reason = c.Status, c.Reason
				continue
			}
			o.Conditions = append(o.Conditions, workernode.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason})
		}
	}
	if o.Present {
		o.Conditions = append(o.Conditions, ready)
	}
	return o
}
