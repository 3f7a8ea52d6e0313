package inventories

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inventoryv1alpha1 "github.com/drover-dev/drover/apis/inventory/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
	"github.com/drover-dev/drover/internal/inventory"
)

// A cloud is a row of the table.
type cloud interface {
	addToScheme(*runtime.Scheme) error
	setup(ctrl.Manager, controller.Options) error
}

// AddToScheme adds the kinds of all clouds to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	for _, c := range clouds {
		if err := c.addToScheme(s); err != nil {
			return err
		}
	}
	return nil
}

// Setup adds the controllers of all clouds. Each starts once its CRDs are there.
func Setup(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	for _, c := range clouds {
		if err := c.setup(mgr, o); err != nil {
			return err
		}
	}
	return nil
}

// A config is the ClusterProviderConfig of a cloud.
type config interface {
	client.Object
	// CredentialsSecret is nil if the credentials are those of the pod.
	CredentialsSecret() *xpv2.SecretKeySelector
}

// list of the inventories of a cloud.
type list interface {
	client.ObjectList
	resource.ManagedList
}

// A group has the configurations and the inventories of a cloud.
type group[C config, I inventory.Inventory] struct {
	version schema.GroupVersion
	add     func(*runtime.Scheme) error
	list    list
	// connect returns the Lister for an inventory. The secret is nil if the credentials are those
	// of the pod.
	connect func(ctx context.Context, secret []byte, config C, i I) (inventory.Lister, error)
}

func (g group[C, I]) addToScheme(s *runtime.Scheme) error { return g.add(s) }

func (g group[C, I]) setup(mgr ctrl.Manager, o controller.Options) error {
	kind := g.version.WithKind(inventoryv1alpha1.Kind)
	i, err := newObject[I](mgr.GetScheme(), kind)
	if err != nil {
		return err
	}
	c, err := newObject[C](mgr.GetScheme(), g.version.WithKind(providerconfig.ClusterKind))
	if err != nil {
		return err
	}
	configs := providerconfig.Configs{GroupVersion: g.version, Cluster: c}
	if err := providerconfig.Setup(mgr, o, configs, g.list); err != nil {
		return fmt.Errorf("cannot set up the controllers of provider configs: %w", err)
	}
	known := newListers()
	inventory.Kind[I]{
		Kind: kind, Object: i, List: g.list, Connect: g.connector(mgr.GetClient(), configs, known),
		Failed: func(i I, err error) { known.fail(placeOf(i), err) },
	}.Setup(mgr, o)
	return nil
}

func newObject[T any](s *runtime.Scheme, kind schema.GroupVersionKind) (T, error) {
	var typed T
	o, err := s.New(kind)
	if err != nil {
		return typed, err
	}
	typed, ok := o.(T)
	if !ok {
		return typed, fmt.Errorf("%s is %T, want %T", kind, o, typed)
	}
	return typed, nil
}

// connector reads the configuration and the Secret at each look, so a change takes effect at the next one.
func (g group[C, I]) connector(c client.Reader, configs providerconfig.Configs, known *listers) inventory.Connect[I] {
	return func(ctx context.Context, i I) (inventory.Lister, error) {
		pc, err := configs.Get(ctx, c, i)
		if err != nil {
			return nil, err
		}
		typed, ok := pc.(C)
		if !ok {
			return nil, fmt.Errorf("spec.providerConfigRef: %T is no configuration of %s", pc, g.version.Group)
		}
		secret, err := readSecret(ctx, c, typed.CredentialsSecret())
		if err != nil {
			return nil, err
		}
		l, err := known.get(placeOf(i), fingerprintOf(typed, secret), func() (inventory.Lister, error) { return g.connect(ctx, secret, typed, i) })
		if err != nil {
			return nil, fmt.Errorf("ClusterProviderConfig %q of %s: %w", pc.GetName(), g.version.Group, err)
		}
		return l, nil
	}
}

// readSecret returns nil if the credentials are those of the pod. No error has a part of a
// Secret's content.
func readSecret(ctx context.Context, c client.Reader, ref *xpv2.SecretKeySelector) ([]byte, error) {
	if ref == nil {
		return nil, nil
	}
	s := &corev1.Secret{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, s); err != nil {
		return nil, fmt.Errorf("spec.credentials.secretRef of the provider config: cannot get Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	content, ok := s.Data[ref.Key]
	if !ok || len(content) == 0 {
		return nil, fmt.Errorf("key %q of Secret %s/%s: must not be empty", ref.Key, ref.Namespace, ref.Name)
	}
	return content, nil
}
