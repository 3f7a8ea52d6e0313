package lift

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	ujresource "github.com/crossplane/upjet/v2/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/creation"
)

// createTimeout bounds one creation call. Terraform providers that wait for their
// VM need it.
const createTimeout = 20 * time.Minute

// looksAfterCreation are the delays of the observations after a creation, whatever failures preceded it: the
// first observation may still be stale.
var looksAfterCreation = []time.Duration{minPoll, 4 * minPoll, 16 * minPoll}

// connector adapts upjet's clients to the Behaviour.
type connector struct {
	managed.ExternalConnector
	// existing connects for a resource that exists, or is being deleted: the content of Secrets may be slightly
	// stale for it.
	existing  managed.ExternalConnector
	kube      client.Client
	behaviour Behaviour
	creations *creation.Records
	// forgetDeletion makes upjet observe the resource again after a deletion.
	forgetDeletion func(ujresource.Terraformed)
	// created is the ID of the resource of a creation that ended with an error, "" if Terraform knows none.
	created func(ujresource.Terraformed) string
	// requeue requests a reconcile of mg after a delay.
	requeue func(mg resource.Managed, after time.Duration)
	// repeats delays requests for reboots that were refused.
	repeats *repeats
}

// Connect fails if a resource that may be created refers to a missing Secret: upjet reads the Secrets here, and
// not again. If a Secret is missing now and exists when Create checks, the resource would be created with an
// empty one.
func (c *connector) Connect(ctx context.Context, mg resource.Managed) (managed.ExternalClient, error) {
	if err := c.findLost(ctx, mg); err != nil {
		return nil, err
	}
	upjet := c.existing
	if tr := mg.(ujresource.Terraformed); mayBeCreated(tr) {
		if err := checkSecrets(ctx, c.kube, tr); err != nil {
			return nil, err
		}
		upjet = c.ExternalConnector
	}
	e, err := upjet.Connect(ctx, mg)
	if err != nil {
		return nil, ofConfig(mg, err)
	}
	return &external{ExternalClient: e, connector: c}, nil
}

// findLost looks for the resource of a creation whose end was not recorded, for example because the provider
// was killed.
func (c *connector) findLost(ctx context.Context, mg resource.Managed) error {
	if c.behaviour.Find == nil || meta.GetExternalName(mg) != "" || !meta.ExternalCreateIncomplete(mg) {
		return nil
	}
	name, err := c.behaviour.Find(ctx, mg.(resource.ModernManaged))
	if err != nil {
		return ofConfig(mg, fmt.Errorf("cannot look for what was created: %w", err))
	}
	if name == "" {
		return nil
	}
	return c.creations.Succeeded(ctx, mg, name)
}

// ofConfig adds the provider config to an error: a user who reads about wrong credentials needs to know which
// ones.
func ofConfig(mg resource.Managed, err error) error {
	m, ok := mg.(resource.ModernManaged)
	if err == nil || !ok || m.GetProviderConfigReference() == nil {
		return err
	}
	return fmt.Errorf("%s %q: %w", m.GetProviderConfigReference().Kind, m.GetProviderConfigReference().Name, err)
}

type external struct {
	managed.ExternalClient
	*connector
}

func (e *external) Disconnect(ctx context.Context) error { return e.ExternalClient.Disconnect(ctx) }

// Observe sets the Ready condition, which upjet sets to True as soon as the resource exists.
func (e *external) Observe(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
	name := meta.GetExternalName(mg)
	before := e.lastConsole(mg)
	o, err := e.ExternalClient.Observe(ctx, mg)
	if err != nil {
		return o, ofConfig(mg, err)
	}
	if !o.ResourceExists {
		if meta.WasDeleted(mg) {
			return o, e.cleanUp(ctx, mg)
		}
		if name == "" {
			return o, nil
		}
		if gone := e.behaviour.Gone; gone != nil {
			if err := gone(ctx, mg.(resource.ModernManaged)); err != nil {
				return managed.ExternalObservation{}, ofConfig(mg, err)
			}
		}
		c := mr.Missing(name + " is no longer there")
		mg.SetConditions(c)
		return managed.ExternalObservation{}, fmt.Errorf("%s: %s", c.Reason, c.Message)
	}
	state, err := mg.(ujresource.Terraformed).GetObservation()
	if err != nil {
		return o, fmt.Errorf("cannot read status.atProvider: %w", err)
	}
	if requested, err := e.reboot(ctx, mg.(resource.ModernManaged), state); requested || err != nil {
		o.ResourceUpToDate = true
		return o, ofConfig(mg, err)
	}
	mg.SetConditions(e.behaviour.Ready(state))
	if err := e.observeConsole(ctx, mg.(ujresource.Terraformed), state, before); err != nil {
		return o, err
	}
	o.ResourceUpToDate = o.ResourceUpToDate || e.behaviour.Immutable
	return o, nil
}

// cleanUp deletes the objects that the cloud leaves behind of a resource that it does not show any more.
func (e *external) cleanUp(ctx context.Context, mg resource.Managed) error {
	if e.behaviour.Deleted == nil {
		return nil
	}
	return ofConfig(mg, e.behaviour.Deleted(ctx, mg.(resource.ModernManaged)))
}

// Create is not interrupted when the provider is stopped: the manager waits for it, so that the cloud's
// response is not lost.
func (e *external) Create(ctx context.Context, mg resource.Managed) (managed.ExternalCreation, error) {
	if err := checkSecrets(ctx, e.kube, mg.(ujresource.Terraformed)); err != nil {
		return managed.ExternalCreation{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	c, err := e.ExternalClient.Create(ctx, mg)
	switch {
	case err == nil:
		// The managed reconciler is requeued by the rate limiter, which counts all failures before the creation, and
		// not their end.
		for _, d := range looksAfterCreation {
			e.requeue(mg, d)
		}
	case e.created(mg.(ujresource.Terraformed)) != "":
		// The resource exists, and a later action on it failed.
		meta.SetExternalName(mg, e.created(mg.(ujresource.Terraformed)))
	case e.behaviour.Find != nil && (e.behaviour.CreationUnknown == nil || e.behaviour.CreationUnknown(err)):
		e.findCreated(ctx, mg)
	case e.behaviour.Find == nil && e.behaviour.CreationUnknown(err):
		e.creations.MarkUnknown(mg)
	}
	return c, ofConfig(mg, err)
}

// findCreated looks for the resource of a creation that ended with an error: its name is recorded with the
// error.
func (e *external) findCreated(ctx context.Context, mg resource.Managed) {
	name, err := e.behaviour.Find(ctx, mg.(resource.ModernManaged))
	switch {
	case err != nil:
		e.creations.MarkUnknown(mg) // Connect repeats the search.
	case name != "":
		meta.SetExternalName(mg, name)
	}
}

// Delete requests the deletion. Terraform then treats the resource as deleted; only an observation shows
// whether it is.
func (e *external) Delete(ctx context.Context, mg resource.Managed) (managed.ExternalDelete, error) {
	d, err := e.ExternalClient.Delete(ctx, mg)
	if err != nil {
		return d, ofConfig(mg, err)
	}
	e.forgetDeletion(mg.(ujresource.Terraformed))
	e.requeue(mg, pollWhileChanging(time.Now(), mg.GetDeletionTimestamp().Time, time.Minute))
	return d, nil
}
