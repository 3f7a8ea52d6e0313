package native

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/creation"
)

// shared is the state that all external clients share.
type shared[T Resource, C any] struct {
	provider Provider[T, C]
	kube     client.Reader
	pool     *pool[T]
	memory   *memory
	records  *creation.Records
	record   event.Recorder
	again    Requeuer
	now      func() time.Time
}

// Connect reads the configuration and the credentials each time, so that a change takes effect
// immediately.
func (s *shared[T, C]) Connect(ctx context.Context, vm T) (managed.TypedExternalClient[T], error) {
	a, config, err := s.accountOf(ctx, vm)
	if err != nil {
		return nil, err
	}
	return &external[T, C]{shared: s, config: config, account: a, userData: userDataOf(s.kube, vm)}, nil
}

// accountOf returns the account of mg's configuration, and the name of the configuration in errors.
func (s *shared[T, C]) accountOf(ctx context.Context, mg resource.ModernManaged) (*account[T], string, error) {
	ref := mg.GetProviderConfigReference()
	config := fmt.Sprintf("%s %q", ref.Kind, ref.Name)
	a, err := s.open(ctx, mg)
	if err != nil {
		return nil, config, fmt.Errorf("%s: %w", config, err)
	}
	return a, config, nil
}

func (s *shared[T, C]) open(ctx context.Context, mg resource.ModernManaged) (*account[T], error) {
	pc, err := s.provider.Configs.Get(ctx, s.kube, mg)
	if err != nil {
		return nil, err
	}
	var credentials C
	if err := s.provider.SecretOf(pc).Of(pc).Read(ctx, s.kube, &credentials, s.provider.SecretLike); err != nil {
		return nil, err
	}
	k, err := keyOf(pc, credentials)
	if err != nil {
		return nil, err
	}
	return s.pool.get(k, func() (Account[T], error) { return s.provider.Open(pc, credentials) })
}
