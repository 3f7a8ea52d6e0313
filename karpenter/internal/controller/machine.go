package controller

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/drover-dev/drover/karpenter/internal/control"
	"github.com/drover-dev/drover/karpenter/internal/drover"
	"github.com/drover-dev/drover/karpenter/internal/machine"
)

// conflictDelay is when an object is read again that changed meanwhile.
const conflictDelay = time.Second

// EventMachineGone is the reason of the event on a NodeClaim that is deleted because of its Machine.
const EventMachineGone = "MachineGone"

// Machine deletes the NodeClaims of Machines that are gone, and the Machines whose NodeClaims are. Karpenter does neither: it
// deletes Machines that it knows by a providerID, and a launch that was interrupted has none.
type Machine struct {
	Target client.Client
	// Live reads the target cluster from its API server: a Machine must not be deleted because a cache lacks its NodeClaim.
	Live     client.Reader
	Control  *control.Cluster
	Cache    cache.Cache
	Recorder record.EventRecorder
}

// Register the controller.
func (c *Machine) Register(_ context.Context, m manager.Manager) error {
	own := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, m *drover.Machine) []reconcile.Request {
		if m.Labels[drover.LabelCluster] != c.Control.Target || machine.NameOf(machine.UIDOf(m)) != m.Name {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(m)}}
	})
	ofClaim := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, claim client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: c.Control.Namespace, Name: machine.NameOf(claim.GetUID())}}}
	})
	return ctrl.NewControllerManagedBy(m).Named("machine").
		WatchesRawSource(source.Kind(c.Cache, &drover.Machine{}, own)).
		Watches(&karpenterv1.NodeClaim{}, ofClaim).
		Complete(c)
}

// Reconcile a Machine.
func (c *Machine) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	m := &drover.Machine{}
	if err := c.Control.Client.Get(ctx, r.NamespacedName, m); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if m.Labels[drover.LabelCluster] != c.Control.Target {
		return reconcile.Result{}, nil
	}
	claim, err := c.claimOf(ctx, m)
	if err != nil {
		return reconcile.Result{}, err
	}
	fate, cause := machine.Decide(m, claim)
	switch fate {
	case machine.DeleteMachine:
		log.FromContext(ctx).Info("deleting Machine: "+cause, "Machine", m.Name)
		return reconcile.Result{}, c.Control.Remove(ctx, m, false)
	case machine.DeleteClaim:
		c.Recorder.Event(claim, corev1.EventTypeWarning, EventMachineGone, "Deleting NodeClaim: "+cause)
		return reconcile.Result{}, client.IgnoreNotFound(c.Target.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}))
	case machine.Keep:
	}
	return reconcile.Result{}, nil
}

// claimOf returns the NodeClaim of a Machine, nil if it does not exist. The label may have a part of a long name.
func (c *Machine) claimOf(ctx context.Context, m *drover.Machine) (*karpenterv1.NodeClaim, error) {
	name, uid := m.Labels[drover.LabelNodeClaim], machine.UIDOf(m)
	if len(name) < longestLabel {
		claim := &karpenterv1.NodeClaim{}
		if err := c.Target.Get(ctx, client.ObjectKey{Name: name}, claim); err == nil && claim.UID == uid {
			return claim, nil
		} else if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		err := c.Live.Get(ctx, client.ObjectKey{Name: name}, claim)
		if apierrors.IsNotFound(err) || err == nil && claim.UID != uid {
			return nil, nil
		}
		return claim, err
	}
	for _, reader := range []client.Reader{c.Target, c.Live} {
		claims := &karpenterv1.NodeClaimList{}
		if err := reader.List(ctx, claims); err != nil {
			return nil, err
		}
		for i := range claims.Items {
			if claims.Items[i].UID == uid && strings.HasPrefix(claims.Items[i].Name, name) {
				return &claims.Items[i], nil
			}
		}
	}
	return nil, nil
}

// longestLabel is the length from which on a label may have a part of a name only.
const longestLabel = 60
