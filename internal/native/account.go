package native

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/attempt"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
	"github.com/drover-dev/drover/internal/idle"
)

// Refused credentials are used again after the minimum, and then after twice as long, up to the
// maximum: a cloud may lock an account after several wrong passwords.
const refusedMin, refusedMax = time.Minute, 5 * time.Minute

// Opened returns the account of a managed resource's configuration, which is opened once per configuration and credentials C.
// Both are read each time, so that a change takes effect immediately. An example of the JSON in the Secret is for errors.
func Opened[C, A any](ctx context.Context, kube client.Client, configs providerconfig.Configs, mg resource.ModernManaged, secretLike string, pool *idle.Pool[A], open func(pc client.Object, credentials C) (A, error)) (A, error) {
	var none A
	pc, err := configs.Get(ctx, kube, mg)
	if err != nil {
		return none, err
	}
	var credentials C
	if err := providerconfig.ReadCredentials(ctx, kube, pc, &credentials, secretLike); err != nil {
		return none, err
	}
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pc)
	if err != nil {
		return none, err
	}
	k, err := idle.KeyOf(u["spec"], credentials)
	if err != nil {
		return none, err
	}
	return pool.Get(k, func() (A, error) { return open(pc, credentials) })
}

// newPool returns a pool with one account per configuration and credentials.
func newPool[T Resource](now func() time.Time) *idle.Pool[*account[T]] {
	return idle.NewPool(now, func(_ context.Context, a *account[T]) {
		if c, ok := a.Account.(io.Closer); ok {
			_ = c.Close()
		}
	})
}

// An account is an Account that pauses after its cloud refused the credentials.
type account[T Resource] struct {
	Account[T]
	now func() time.Time

	mu sync.Mutex
	// place is that of the Account, once it is known.
	place    string
	refused  error
	failures int
	retryAt  time.Time
}

// Place returns the place of the Account, which it reads once.
func (a *account[T]) Place(ctx context.Context) (string, error) {
	a.mu.Lock()
	place := a.place
	a.mu.Unlock()
	if place != "" {
		return place, nil
	}
	place, err := a.Account.Place(ctx)
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.place = place
	return place, nil
}

// do calls f. During the pause after a refusal it returns the error of the refusal instead.
func (a *account[T]) do(f func() error) error {
	if err := a.admit(); err != nil {
		return err
	}
	err := f()
	a.learn(err)
	return err
}

// admit admits one call after each pause: its result counts for all VMs of the account.
func (a *account[T]) admit() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refused == nil {
		return nil
	}
	if now := a.now(); now.Before(a.retryAt) {
		return a.refused
	}
	a.retryAt = a.now().Add(refusedMin)
	return nil
}

// learn records whether a call with the result err was refused because of the credentials.
func (a *account[T]) learn(err error) {
	var e *Error
	refused := errors.As(err, &e) && e.Credentials
	// A call that did not reach the cloud proves nothing about the credentials.
	if !refused && err != nil && hasUnknownResult(err) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !refused {
		a.refused, a.failures, a.retryAt = nil, 0, time.Time{}
		return
	}
	a.refused, a.retryAt = err, a.now().Add(attempt.Backoff(refusedMin, refusedMax, a.failures))
	a.failures++
}
