package installations

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/installations"
)

// interval between two checks. An installation that is replaced before it is recorded has hardly
// created VMs; an operator can add it to the record.
const interval = 30 * time.Second

var (
	definitionKind = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v2", Kind: "CompositeResourceDefinition"}
	namespaceKind  = corev1.SchemeGroupVersion.WithKind("Namespace")
)

// Setup adds the keeper of the record to the manager.
func Setup(mgr ctrl.Manager, log logging.Logger) error {
	return mgr.Add(&keeper{live: mgr.GetAPIReader(), client: mgr.GetClient(), now: time.Now, log: log.WithValues("controller", "installations")})
}

// A keeper maintains the record. It reads nothing from a cache, which would have to hold all
// ConfigMaps.
type keeper struct {
	live   client.Reader
	client client.Writer
	now    func() time.Time
	log    logging.Logger
}

// NeedLeaderElection returns true, so that only one process writes.
func (k *keeper) NeedLeaderElection() bool { return true }

// Start checks periodically until the context ends.
func (k *keeper) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := k.look(ctx); err != nil {
			k.log.Info("Cannot keep the record of installations", "error", err)
		}
	}, interval)
	return nil
}

// look checks once, and records a new installation.
func (k *keeper) look(ctx context.Context) error {
	present, err := k.uid(ctx, definitionKind, v1alpha1.DefinitionOfInstallation)
	if err != nil || present == "" {
		return err // Drover's definitions come with another package, and later.
	}
	controlCluster, err := k.uid(ctx, namespaceKind, metav1.NamespaceSystem)
	if err != nil || controlCluster == "" {
		return err
	}
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.NamespaceOfInstallations, Name: v1alpha1.ConfigMapOfInstallations}}
	err = k.live.Get(ctx, client.ObjectKeyFromObject(record), record)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot read the ConfigMap %s: %w", record.GetName(), err)
	}
	missing := err != nil
	next, changed := installations.Next(record.Data, string(present), string(controlCluster), k.now())
	if !changed {
		return nil
	}
	record.Data = next
	if missing {
		err = k.client.Create(ctx, record)
	} else {
		// The update has the version that was read: an operator may write at the same time.
		err = k.client.Update(ctx, record)
	}
	if kerrors.IsConflict(err) || kerrors.IsAlreadyExists(err) {
		return nil // The next check reads it.
	}
	if err != nil {
		return fmt.Errorf("cannot write the ConfigMap %s: %w", record.GetName(), err)
	}
	k.log.Info("Recorded the installations of this control cluster", "installation", present)
	return nil
}

// uid returns the UID of a cluster-scoped object, empty if it does not exist.
func (k *keeper) uid(ctx context.Context, kind schema.GroupVersionKind, name string) (types.UID, error) {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(kind)
	err := k.live.Get(ctx, client.ObjectKey{Name: name}, o)
	switch {
	case kerrors.IsNotFound(err) || apimeta.IsNoMatchError(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("cannot read the %s %s: %w", kind.Kind, name, err)
	case o.GetDeletionTimestamp() != nil:
		return "", nil
	}
	return o.GetUID(), nil
}
