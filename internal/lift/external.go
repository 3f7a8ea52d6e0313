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

	"github.com/drover-dev/drover/internal/creation"
)

// createTimeout bounds one creation call. Terraform providers that wait for their
// VM need it.
const createTimeout = 20 * time.Minute

// looksAfterCreation are when to look at what was created, however long it had been
// refused: the first look may still be of an old view.
var looksAfterCreation = []time.Duration{minPoll, 4 * minPoll, 16 * minPoll}

// connector makes upjet's clients behave.
type connector struct {
	managed.ExternalConnector
	// existing connects for what was created, or is deleted: what Secrets say may be a
	// little old for it.
	existing  managed.ExternalConnector
	kube      client.Client
	behaviour Behaviour
	creations *creation.Records
	// forgetDeletion makes upjet look at the cloud again after a deletion.
	forgetDeletion func(ujresource.Terraformed)
	// created is the ID of what a creation made that ended with an error, "" if Terraform
	// knows of nothing.
	created func(ujresource.Terraformed) string
	// requeue asks for a reconcile of mg after some time.
	requeue func(mg resource.Managed, after time.Duration)
}

// Connect fails for what may be created while its Secrets are missing: upjet reads them
// here, and for good. One that is missing now and there when Create looks would be an
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

// findLost looks for what a creation made that nobody saw end, because the provider
// was killed in the middle of it for example.
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

// ofConfig says with which provider config err came about: who reads of wrong
// credentials wants to know where they stand.
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

// Observe sets the Ready condition, which upjet has True as soon as there is
// something.
func (e *external) Observe(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
	name := meta.GetExternalName(mg)
	before := e.lastConsole(mg)
	o, err := e.ExternalClient.Observe(ctx, mg)
	if err != nil {
		return o, ofConfig(mg, err)
	}
	if !o.ResourceExists {
		if name == "" || meta.WasDeleted(mg) {
			return o, nil
		}
		if gone := e.behaviour.Gone; gone != nil {
			if err := gone(ctx, mg.(resource.ModernManaged)); err != nil {
				return managed.ExternalObservation{}, ofConfig(mg, err)
			}
		}
		c := missing(name)
		mg.SetConditions(c)
		return managed.ExternalObservation{}, fmt.Errorf("%s: %s", c.Reason, c.Message)
	}
	state, err := mg.(ujresource.Terraformed).GetObservation()
	if err != nil {
		return o, fmt.Errorf("cannot read status.atProvider: %w", err)
	}
	mg.SetConditions(e.behaviour.Ready(state))
	if err := e.observeConsole(ctx, mg.(ujresource.Terraformed), state, before); err != nil {
		return o, err
	}
	o.ResourceUpToDate = o.ResourceUpToDate || e.behaviour.Immutable
	return o, nil
}

// Create is not interrupted when the provider is stopped: the manager waits for
// it, and so the cloud's answer is not lost.
func (e *external) Create(ctx context.Context, mg resource.Managed) (managed.ExternalCreation, error) {
	if err := checkSecrets(ctx, e.kube, mg.(ujresource.Terraformed)); err != nil {
		return managed.ExternalCreation{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	c, err := e.ExternalClient.Create(ctx, mg)
	switch {
	case err == nil:
		// The managed reconciler asks to be called again by the rate limiter, which
		// knows of all the failures before and nothing of their end.
		for _, d := range looksAfterCreation {
			e.requeue(mg, d)
		}
	case e.created(mg.(ujresource.Terraformed)) != "":
		// It is there, and what was done with it then failed.
		meta.SetExternalName(mg, e.created(mg.(ujresource.Terraformed)))
	case e.behaviour.Find != nil:
		e.findCreated(ctx, mg)
	case e.behaviour.CreationUnknown(err):
		e.creations.MarkUnknown(mg)
	}
	return c, ofConfig(mg, err)
}

// findCreated looks for what a creation made although it ended with an error: its
// name is recorded with the error.
func (e *external) findCreated(ctx context.Context, mg resource.Managed) {
	name, err := e.behaviour.Find(ctx, mg.(resource.ModernManaged))
	switch {
	case err != nil:
		e.creations.MarkUnknown(mg) // Connect looks again.
	case name != "":
		meta.SetExternalName(mg, name)
	}
}

// Delete asks for the deletion. Terraform takes it for done then; whether it is,
// only a look at the cloud tells.
func (e *external) Delete(ctx context.Context, mg resource.Managed) (managed.ExternalDelete, error) {
	d, err := e.ExternalClient.Delete(ctx, mg)
	if err != nil {
		return d, ofConfig(mg, err)
	}
	e.forgetDeletion(mg.(ujresource.Terraformed))
	e.requeue(mg, pollWhileChanging(time.Now(), mg.GetDeletionTimestamp().Time, time.Minute))
	return d, nil
}
