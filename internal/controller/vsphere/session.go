package vsphere

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/attempt"
	"github.com/drover-dev/drover/internal/idle"
)

const (
	// callTimeout is the timeout of a call that the vCenter does not answer.
	callTimeout = 30 * time.Second

	// A failed login is retried after the minimum, and then after twice as long, up to the maximum.
	// By default a vCenter locks an account after five wrong passwords in three minutes.
	refusedMin, refusedMax         = time.Minute, 5 * time.Minute
	unreachableMin, unreachableMax = 2 * time.Second, 30 * time.Second
)

// An endpoint is a vCenter and an account there.
type endpoint struct {
	// Server is a host or URL.
	Server   string
	Insecure bool
	// CA is a PEM bundle. Optional.
	CA             []byte
	User, Password string
}

// A pool has one session per endpoint: the sessions of a vCenter are limited.
type pool struct {
	*idle.Pool[*vcenter]
	now func() time.Time
}

func newPool(now func() time.Time) *pool {
	return &pool{Pool: idle.NewPool(now, func(ctx context.Context, v *vcenter) { v.logout(ctx) }), now: now}
}

// get returns the session of an endpoint, which may not be logged in yet.
func (p *pool) get(e endpoint) (*vcenter, error) {
	key, err := idle.KeyOf(e)
	if err != nil {
		return nil, err
	}
	return p.Get(key, func() (*vcenter, error) { return &vcenter{endpoint: e, now: p.now}, nil })
}

// A vcenter is a session at a vCenter.
type vcenter struct {
	endpoint
	now func() time.Time

	mu      sync.Mutex
	client  *vim25.Client
	tagging *rest.Client
	// State of a failed login.
	failed   error
	failures int
	retryAt  time.Time
	// rules by vSphere cluster.
	rules map[types.ManagedObjectReference]*clusterRules
}

// do calls f with a client that is logged in, and a second time if the session has ended, so f must
// allow two calls.
func (v *vcenter) do(ctx context.Context, f func(*vim25.Client) error) error {
	c, err := v.login(ctx, nil)
	if err != nil {
		return err
	}
	if err = f(c); !is[*types.NotAuthenticated](err) {
		return err
	}
	if c, err = v.login(ctx, c); err != nil {
		return err
	}
	return f(c)
}

// login returns a client that is logged in. It reuses the present one, unless that is the one that
// ended.
func (v *vcenter) login(ctx context.Context, ended *vim25.Client) (*vim25.Client, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.client != nil && v.client != ended {
		return v.client, nil
	}
	if v.now().Before(v.retryAt) {
		return nil, v.failed
	}
	v.client, v.tagging = nil, nil
	c, err := v.connect(ctx)
	if err != nil {
		v.failed = classify(fmt.Sprintf("cannot log in to vCenter %s as %s", v.Server, v.User), err)
		first, most := unreachableMin, unreachableMax
		if classOf(err) == fn.ErrorPermissionDenied {
			first, most = refusedMin, refusedMax
		}
		v.retryAt = v.now().Add(attempt.Backoff(first, most, v.failures))
		v.failures++
		return nil, v.failed
	}
	v.client, v.failed, v.failures, v.retryAt = c, nil, 0, time.Time{}
	return c, nil
}

func (v *vcenter) connect(ctx context.Context) (*vim25.Client, error) {
	u, err := soap.ParseURL(v.Server)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	u.User = nil
	sc := soap.NewClient(u, v.Insecure)
	sc.Timeout = callTimeout
	if len(v.CA) > 0 {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(v.CA) {
			return nil, errors.New("caBundle: has no PEM certificate")
		}
		sc.DefaultTransport().TLSClientConfig.RootCAs = roots
	}
	c, err := vim25.NewClient(ctx, sc)
	if err != nil {
		return nil, err
	}
	if !c.IsVC() {
		return nil, errors.New("the server is an ESXi host: only a vCenter can clone VMs")
	}
	return c, session.NewManager(c).Login(ctx, url.UserPassword(v.User, v.Password))
}

// tags calls f with a client for tags, which have an API and sessions of their own.
func (v *vcenter) tags(ctx context.Context, c *vim25.Client, f func(*rest.Client) error) error {
	v.mu.Lock()
	rc := v.tagging
	v.mu.Unlock()
	if rc != nil {
		if err := f(rc); !rest.IsStatusError(err, 401) {
			return err
		}
	}
	rc = rest.NewClient(c)
	if err := rc.Login(ctx, url.UserPassword(v.User, v.Password)); err != nil {
		return err
	}
	v.mu.Lock()
	v.tagging = rc
	v.mu.Unlock()
	return f(rc)
}

// logout ends the session on a best-effort basis: the vCenter ends it after some time as well.
func (v *vcenter) logout(ctx context.Context) {
	v.mu.Lock()
	defer v.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if v.tagging != nil {
		_ = v.tagging.Logout(ctx)
	}
	if v.client != nil {
		_ = session.NewManager(v.client).Logout(ctx)
	}
	v.client, v.tagging = nil, nil
}
