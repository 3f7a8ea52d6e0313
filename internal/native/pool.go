package native

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// idleAfter is how long an unused account is kept: each rotation of credentials leaves one behind.
	idleAfter = 10 * time.Minute
	// sweepEvery is the interval between searches for idle accounts.
	sweepEvery = time.Minute

	// Refused credentials are used again after the minimum, and then after twice as long, up to the
	// maximum: a cloud may lock an account after several wrong passwords.
	refusedMin, refusedMax = time.Minute, 5 * time.Minute
)

type key [sha256.Size]byte

// keyOf returns the key of a configuration and its credentials: a change of either opens another
// account.
func keyOf(config client.Object, credentials any) (key, error) {
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
	if err != nil {
		return key{}, err
	}
	b, err := json.Marshal([]any{u["spec"], credentials})
	return sha256.Sum256(b), err
}

// A pool has one account per configuration and credentials. It closes unused ones.
type pool[T Resource] struct {
	now func() time.Time

	mu       sync.Mutex
	accounts map[key]*account[T]
}

func newPool[T Resource](now func() time.Time) *pool[T] {
	return &pool[T]{now: now, accounts: map[key]*account[T]{}}
}

// get returns the account of a key. It opens a new one.
func (p *pool[T]) get(k key, open func() (Account[T], error)) (*account[T], error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.accounts[k]
	if a == nil {
		opened, err := open()
		if err != nil {
			return nil, err
		}
		a = &account[T]{Account: opened, now: p.now}
		p.accounts[k] = a
	}
	a.used = p.now()
	return a, nil
}

// Start sweeps until ctx is done, and then closes all accounts.
func (p *pool[T]) Start(ctx context.Context) error {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			p.sweep(idleAfter)
		case <-ctx.Done():
			p.sweep(0)
			return nil
		}
	}
}

// sweep closes the accounts that were unused for this time.
func (p *pool[T]) sweep(idle time.Duration) {
	var unused []io.Closer
	p.mu.Lock()
	for k, a := range p.accounts {
		if p.now().Sub(a.used) < idle {
			continue
		}
		delete(p.accounts, k)
		if c, ok := a.Account.(io.Closer); ok {
			unused = append(unused, c)
		}
	}
	p.mu.Unlock()
	for _, c := range unused {
		_ = c.Close()
	}
}

// An account is an Account that pauses after its cloud refused the credentials.
type account[T Resource] struct {
	Account[T]
	now  func() time.Time
	used time.Time // guarded by the pool

	mu       sync.Mutex
	refused  error
	failures int
	retryAt  time.Time
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
	a.refused, a.retryAt = err, a.now().Add(backoff(refusedMin, refusedMax, a.failures))
	a.failures++
}
