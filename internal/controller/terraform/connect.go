package terraform

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/terraform/v1alpha1"
	"github.com/drover-dev/drover/internal/creation"
	"github.com/drover-dev/drover/internal/terraform/plugin"
)

// connectTimeout is the timeout for the start and the configuration of a provider.
const connectTimeout = 3 * time.Minute

// shared has the dependencies of all clients.
type shared struct {
	kube    client.Reader
	store   *store
	records *creation.Records
	again   interface {
		After(client.Object, time.Duration)
	}
	now func() time.Time
}

type connector struct {
	*shared
	resolver *resolver
	pool     interface {
		Get(context.Context, plugin.Settings) (*plugin.Provider, func(), error)
	}
}

// Connect connects to the provider that the VM's configuration names, and starts it if it does not
// run.
func (c *connector) Connect(ctx context.Context, vm *v1alpha1.VirtualMachine) (managed.TypedExternalClient[*v1alpha1.VirtualMachine], error) {
	config, err := c.resolver.resolve(ctx, vm)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	p, release, err := c.pool.Get(ctx, config.settings)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", config.name, mask(err, config.secrets))
	}
	return &external{shared: c.shared, config: config, provider: p, release: release}, nil
}

// userDataOf returns the user data of a VM, nil if it references none.
func (s *shared) userDataOf(ctx context.Context, vm *v1alpha1.VirtualMachine) ([]byte, error) {
	ref := vm.Spec.ForProvider.UserDataSecretRef
	if ref == nil {
		return nil, nil
	}
	secret := &corev1.Secret{}
	if err := s.kube.Get(ctx, types.NamespacedName{Namespace: vm.GetNamespace(), Name: ref.Name}, secret); err != nil {
		return nil, fmt.Errorf("spec.forProvider.userDataSecretRef: cannot get Secret %q: %w", ref.Name, err)
	}
	b, ok := secret.Data[ref.Key]
	if !ok {
		return nil, fmt.Errorf("spec.forProvider.userDataSecretRef: no key %q in Secret %q", ref.Key, ref.Name)
	}
	return b, nil
}
