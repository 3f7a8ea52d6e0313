package simulator

import (
	"context"
	"errors"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpresource "github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keyOfPassword is the key in the Secret with the credentials.
const keyOfPassword = "credentials"

// A connector reads the credentials at each reconcile, as providers do.
type connector struct {
	cloud  *cloud
	kind   *Resource
	client client.Client
	// restarts of the process.
	restarts *restarts
	// operations is nil for providers that wait for their cloud.
	operations *operations
}

func (c *connector) Connect(ctx context.Context, mg xpresource.Managed) (managed.ExternalClient, error) {
	e := &external{cloud: c.cloud, kind: c.kind, restarts: c.restarts}
	config, password, err := c.credentials(ctx, mg.(*managedResource))
	if err != nil {
		return nil, err
	}
	if !c.cloud.takes(config, password) {
		e.denied = fmt.Errorf("%s", c.cloud.ProviderConfig.Refused)
	}
	if c.operations != nil {
		return &async{external: e, operations: c.operations}, nil
	}
	return e, nil
}

// credentials returns the credentials of a managed resource: the name of its ProviderConfig, and
// the password.
func (c *connector) credentials(ctx context.Context, m *managedResource) (config, password string, err error) {
	pc := c.cloud.ProviderConfig
	ref := m.GetProviderConfigReference()
	if ref == nil || ref.Kind != pc.Kind {
		return "", "", fmt.Errorf("providerConfigRef is %+v: the simulator knows only %s", ref, pc.Kind)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(pc.APIVersion, pc.Kind))
	say := func(template, namespace, name string, err error) error {
		if !apierrors.IsNotFound(err) {
			return err
		}
		said, terr := text(template, map[string]any{"kind": pc.Kind, "namespace": namespace, "name": name})
		if terr != nil {
			return terr
		}
		return fmt.Errorf("%s", said)
	}
	if err := c.client.Get(ctx, client.ObjectKey{Name: ref.Name}, u); err != nil {
		return "", "", say(pc.Missing, "", ref.Name, err)
	}
	namespace, _, _ := unstructured.NestedString(u.Object, "spec", "credentials", "secretRef", "namespace")
	name, _, _ := unstructured.NestedString(u.Object, "spec", "credentials", "secretRef", "name")
	s := &corev1.Secret{}
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, s); err != nil {
		return "", "", say(pc.SecretMissing, namespace, name, err)
	}
	return ref.Name, string(s.Data[keyOfPassword]), nil
}

// An external is the client of a provider that waits for its cloud.
type external struct {
	cloud    *cloud
	kind     *Resource
	restarts *restarts
	// denied is the error of the cloud for the credentials, nil if the cloud accepts them.
	denied error
}

func (e *external) Observe(ctx context.Context, mg xpresource.Managed) (managed.ExternalObservation, error) {
	m := mg.(*managedResource)
	id := meta.GetExternalName(m)
	if id == "" {
		return managed.ExternalObservation{}, nil
	}
	if e.denied != nil {
		return managed.ExternalObservation{}, e.denied
	}
	place, err := placeOf(e.kind, m)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	atProvider, err := e.cloud.observe(e.kind, id, place)
	if err != nil || atProvider == nil {
		return managed.ExternalObservation{}, err
	}
	m.set("status.atProvider", atProvider)
	if e.cloud.isReady(e.kind, id, m) {
		m.SetConditions(xpv2.Available())
	} else {
		m.SetConditions(xpv2.Creating())
	}
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true, ResourceLateInitialized: e.lateInitialize(m)}, nil
}

// lateInitialize sets missing fields from the cloud, as upjet does, and reports whether one was
// missing.
func (e *external) lateInitialize(m *managedResource) bool {
	missing := false
	for field, value := range e.kind.LateInitialized {
		path := "spec.forProvider." + field
		if _, err := fieldpath.Pave(m.Object).GetValue(path); err != nil {
			m.set(path, value)
			missing = true
		}
	}
	return missing
}

func (e *external) Create(ctx context.Context, mg xpresource.Managed) (managed.ExternalCreation, error) {
	id, err := e.create(ctx, mg.(*managedResource))
	if errors.Is(err, errDied) {
		endProcess(ctx)
	}
	if err == nil {
		meta.SetExternalName(mg, id)
	}
	return managed.ExternalCreation{}, err
}

func (e *external) create(ctx context.Context, m *managedResource) (string, error) {
	if e.denied != nil {
		return "", e.denied
	}
	id, err := e.cloud.create(ctx, e.kind, m)
	if err == nil && e.kind.VM != nil && e.restarts.die(m.GetNamespace()) {
		return "", errDied
	}
	return id, err
}

func (e *external) Update(context.Context, xpresource.Managed) (managed.ExternalUpdate, error) {
	return managed.ExternalUpdate{}, nil
}

func (e *external) Delete(ctx context.Context, mg xpresource.Managed) (managed.ExternalDelete, error) {
	mg.SetConditions(xpv2.Deleting())
	return managed.ExternalDelete{}, e.delete(ctx, mg.(*managedResource))
}

func (e *external) delete(ctx context.Context, m *managedResource) error {
	if e.denied != nil {
		return e.denied
	}
	place, err := placeOf(e.kind, m)
	if err != nil {
		return err
	}
	return e.cloud.remove(ctx, e.kind, meta.GetExternalName(m), place)
}

func (e *external) Disconnect(context.Context) error { return nil }
