package workernode

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/target"
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

// cluster is what is needed of a target.Conn.
type cluster struct {
	kube kubernetes.Interface
	// nodes with a providerID, or with what stands for one.
	nodes func(ctx context.Context, providerID string) ([]*corev1.Node, error)
	// classify tells the cluster's errors from others.
	classify func(error) error
}

// shared by all external clients.
type shared struct {
	again  *mr.Again
	record event.Recorder
	now    func() time.Time
	// rivals are WorkerNodes for the same Node, maybe the given one among them.
	rivals func(context.Context, *v1alpha1.WorkerNode) ([]v1alpha1.WorkerNode, error)
	// hooks that hold the drain.
	hooks func(context.Context, *v1alpha1.WorkerNode) ([]string, error)
	// marks that its Node has as all of its MachineSet.
	marks func(context.Context, *v1alpha1.WorkerNode) (machinev1alpha1.NodeMarks, error)
	// drains has the memory of drains, by the UIDs of WorkerNodes.
	drains sync.Map
	// attachments of volumes are the same for all drains of a cluster.
	attachments attachments
	// abandoned has the UIDs of WorkerNodes whose Node could not be deleted after
	// the drain's timeout.
	abandoned sync.Map
}

type connector struct {
	pool *target.Pool
	*shared
}

// Connect fails not for a WorkerNode that is being deleted: that must end some time
// even if its configuration is gone.
func (c *connector) Connect(ctx context.Context, wn *v1alpha1.WorkerNode) (managed.TypedExternalClient[*v1alpha1.WorkerNode], error) {
	conn, err := c.pool.Get(ctx, target.RefOf(wn))
	if err == nil {
		return &external{cluster: cluster{kube: conn.Kube, nodes: conn.Nodes, classify: conn.Classify}, shared: c.shared}, nil
	}
	if !meta.WasDeleted(wn) {
		return nil, err
	}
	unconnected := cluster{nodes: func(context.Context, string) ([]*corev1.Node, error) { return nil, err }}
	return &external{cluster: unconnected, shared: c.shared}, nil
}

// external serves one reconcile.
type external struct {
	cluster
	*shared
	// held means that hooks hold the drain.
	held bool
}

func (x *external) Disconnect(context.Context) error { return nil }

// Create is never called: the external resource exists from the first Observe on.
func (x *external) Create(context.Context, *v1alpha1.WorkerNode) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, nil
}

func (x *external) Observe(ctx context.Context, wn *v1alpha1.WorkerNode) (managed.ExternalObservation, error) {
	if meta.WasDeleted(wn) {
		var err error
		if x.held, err = x.begin(ctx, wn); err != nil || x.held {
			return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, err
		}
		nodes, err := x.find(ctx, wn)
		return x.observeDeleting(wn, nodes, err)
	}
	nodes, err := x.find(ctx, wn)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	node, err := only(nodes, wn.Spec.ForProvider.ProviderID)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	x.report(wn, node)
	patch, err := x.patchFor(ctx, node, wn)
	return managed.ExternalObservation{
		ResourceExists: true,
		// The first reconcile writes the finalizer, which takes the status back that
		// was reported here: Update reports it again.
		ResourceUpToDate: patch == nil && !toDrain(wn, node) && meta.FinalizerExists(wn, managed.FinalizerName),
	}, err
}

// Update patches the Node if it is there and differs, and does one pass of the drain
// if it shall be drained.
func (x *external) Update(ctx context.Context, wn *v1alpha1.WorkerNode) (managed.ExternalUpdate, error) {
	nodes, err := x.find(ctx, wn)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	node, err := only(nodes, wn.Spec.ForProvider.ProviderID)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	// What is reported has what was patched: each half would be a status of its own.
	synced, err := x.sync(ctx, wn, node)
	x.report(wn, synced)
	if err != nil || !toDrain(wn, node) {
		return managed.ExternalUpdate{}, x.classify(err)
	}
	return managed.ExternalUpdate{}, x.classify(x.empty(ctx, wn, node))
}

// sync starts from the Node as cached, and reads it only if that was too old. It returns
// the Node as it was seen last.
func (x *external) sync(ctx context.Context, wn *v1alpha1.WorkerNode, node *corev1.Node) (*corev1.Node, error) {
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
			node = patched
		}
		return err
	})
	return node, err
}

func (x *external) report(wn *v1alpha1.WorkerNode, node *corev1.Node) {
	if node != nil && wn.Status.AtProvider.NodeUID != string(node.GetUID()) {
		x.record.Event(wn, event.Normal(reasonJoined, fmt.Sprintf("Node %s joined", node.GetName())))
	}
	report(wn, node)
	if wn.Status.AtProvider.Drain == nil {
		x.drains.Delete(wn.GetUID())
	}
}

func (x *external) patchFor(ctx context.Context, node *corev1.Node, wn *v1alpha1.WorkerNode) ([]byte, error) {
	if node == nil {
		return nil, nil
	}
	marks, err := x.marks(ctx, wn)
	if err != nil {
		return nil, err
	}
	return syncPatch(node, withMarks(wn.Spec.ForProvider, marks))
}

// only returns the one Node of the providerID, or nil if there is none.
func only(nodes []*corev1.Node, providerID string) (*corev1.Node, error) {
	switch len(nodes) {
	case 0:
		return nil, nil
	case 1:
		return nodes[0], nil
	}
	return nil, fmt.Errorf("the Nodes %s have the same providerID %s: delete those that are not this machine's", strings.Join(namesOf(nodes), " and "), providerID)
}

func namesOf(nodes []*corev1.Node) []string {
	out := make([]string, 0, len(nodes))
	for _, n := range nodes {
		out = append(out, n.GetName())
	}
	slices.Sort(out)
	return out
}
