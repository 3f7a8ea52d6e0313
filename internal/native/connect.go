package native

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/attempt"
	"github.com/drover-dev/drover/internal/creation"
	"github.com/drover-dev/drover/internal/idle"
)

// shared is the state that all external clients share.
type shared[T Resource, C any] struct {
	provider Provider[T, C]
	kube     client.Client
	pool     *idle.Pool[*account[T]]
	memory   *attempt.Memory[note]
	records  *creation.Records
	record   event.Recorder
	again    Requeuer
	now      func() time.Time
}

// Connect reads the configuration and the credentials each time, so that a change takes effect
// immediately.
func (s *shared[T, C]) Connect(ctx context.Context, vm T) (managed.TypedExternalClient[T], error) {
	c, err := s.connect(ctx, vm)
	if err != nil {
		return nil, err
	}
	return &external[T, C]{shared: s, connection: c, userData: userDataOf(s.kube, vm)}, nil
}

// A connection is the account of a configuration.
type connection[T Resource] struct {
	account *account[T]
	// config names the configuration in errors.
	config string
}

// do calls f, and adds the name of the configuration to its error.
func (c connection[T]) do(what string, f func() error) error {
	if err := c.account.do(f); err != nil {
		return fmt.Errorf("%s: %w", c.config, asError(what, err))
	}
	return nil
}

// connect returns the connection of mg's configuration.
func (s *shared[T, C]) connect(ctx context.Context, mg resource.ModernManaged) (connection[T], error) {
	ref := mg.GetProviderConfigReference()
	config := fmt.Sprintf("%s %q", ref.Kind, ref.Name)
	a, err := s.open(ctx, mg)
	if err != nil {
		return connection[T]{}, fmt.Errorf("%s: %w", config, err)
	}
	return connection[T]{account: a, config: config}, nil
}

func (s *shared[T, C]) open(ctx context.Context, mg resource.ModernManaged) (*account[T], error) {
	return Opened(ctx, s.kube, s.provider.Configs, mg, s.provider.SecretLike, s.pool, func(pc client.Object, credentials C) (*account[T], error) {
		opened, err := s.provider.Open(pc, credentials)
		if err != nil {
			return nil, err
		}
		return &account[T]{Account: opened, now: s.now}, nil
	})
}
