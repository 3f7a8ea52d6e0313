package jointoken

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/identity"
)

// Options of a Keeper.
type Options struct {
	// Connect returns the target cluster of a Machine.
	Connect ConnectFor
	// Client writes the Secrets beside Machines.
	Client client.Client
	// Live reads them from the API server.
	Live client.Reader
	// Record receives the events of Machines.
	Record event.Recorder
	// Now returns the time, by default time.Now.
	Now func() time.Time
}

// A Keeper keeps the tokens and the user data of Machines. It remembers one entry per
// Machine, with the Machine's Secret, until Forget. A restart loses the entries, and
// costs a read of the Secret per Machine and, until it has joined, of its token. Calls
// for the same Machine must not overlap; calls for different Machines may.
type Keeper struct {
	Options

	mu      sync.Mutex
	entries map[types.UID]entry
}

// NewKeeper returns a Keeper that remembers nothing.
func NewKeeper(o Options) *Keeper {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Keeper{Options: o, entries: map[types.UID]entry{}}
}

// Observe returns the state of a Machine's token and user data. In a process, the first call and each call
// after an error read the Secret beside the Machine. The target cluster is never called.
func (k *Keeper) Observe(ctx context.Context, m *machinev1alpha1.Machine) (State, error) {
	e, err := k.entry(ctx, m)
	if err != nil {
		return State{}, err
	}
	return e.state(m, k.Now()), nil
}

// Apply carries out a Request: it mints, renews or revokes the token, and publishes the user data. If nothing
// has to be done, nothing is called or written. After an error, it returns the State from before the call. A
// token that was revoked in this process is not minted again.
func (k *Keeper) Apply(ctx context.Context, m *machinev1alpha1.Machine, r Request) (State, error) {
	e, err := k.entry(ctx, m)
	if err != nil {
		return State{}, err
	}
	now := k.Now()
	next, err := k.carryOut(ctx, m, r, e, now)
	if err != nil {
		k.Forget(m.GetUID()) // A write may have been carried out although its answer was lost.
		return e.state(m, now), err
	}
	k.remember(m.GetUID(), next)
	return next.state(m, now), nil
}

// Forget removes the entry of a Machine that no longer exists, or whose Secret was changed or deleted.
func (k *Keeper) Forget(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.entries, uid)
}

func (k *Keeper) remember(uid types.UID, e entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.entries[uid] = e
}

// entry returns the entry of a Machine, from memory if possible.
func (k *Keeper) entry(ctx context.Context, m *machinev1alpha1.Machine) (entry, error) {
	k.mu.Lock()
	e, ok := k.entries[m.GetUID()]
	k.mu.Unlock()
	if ok {
		return e, nil
	}
	s, err := k.readSecret(ctx, m)
	if err != nil {
		return entry{}, err
	}
	e = entry{secret: s}
	k.remember(m.GetUID(), e)
	return e, nil
}

// carryOut carries out a Request, and returns the new entry.
func (k *Keeper) carryOut(ctx context.Context, m *machinev1alpha1.Machine, r Request, e entry, now time.Time) (entry, error) {
	e.frozen = r.Frozen
	switch {
	case e.revoked:
		return e, nil
	case r.Revoked:
		return k.revoke(ctx, m, e)
	}
	if err := r.check(); err != nil {
		return e, err
	}
	var own *source
	if !r.Frozen {
		var err error
		if own, err = k.readOwn(ctx, m, r); err != nil {
			return e, err
		}
	}
	if !e.isAtRest(m, r, own, now) {
		var err error
		if e, err = k.keep(ctx, m, r, own, e, now); err != nil {
			return e, err
		}
	}
	if e.renew = (time.Time{}); e.lease != nil {
		e.renew = r.renewal(*e.lease, now)
	}
	return e, nil
}

// keep keeps a token, and the user data with it. It checks the Node of the Machine, its version and the
// endpoint first. If the Node is not allowed, the API server does not support the kubelet, or the configuration
// is invalid, no token is minted.
func (k *Keeper) keep(ctx context.Context, m *machinev1alpha1.Machine, r Request, own *source, e entry, now time.Time) (entry, error) {
	c, err := k.Connect(ctx, m)
	if err != nil {
		return e, err
	}
	at := endpoint{}
	if !r.Frozen {
		if c.CheckNode != nil {
			if err := c.CheckNode(m); err != nil {
				return e, err
			}
		}
		if err := c.checkVersion(ctx, m); err != nil {
			return e, err
		}
		if at, err = c.endpoint(ctx); err != nil {
			return e, err
		}
	}
	half := e.credential(m)
	if e.lease == nil || !e.lease.isCurrent(r, now) {
		var l lease
		if half, l, err = k.keepToken(ctx, m, c, r, half, now); err != nil {
			return e, err
		}
		e.lease = &l
	}
	if r.Frozen {
		return e, nil
	}
	p, err := newPublication(m, c, r, own, at, half, *e.lease)
	if err != nil {
		return e, err
	}
	e.secret, err = k.publish(ctx, m, p, e.secret)
	return e, err
}

// keepToken creates or updates the token in the target cluster, with the published secret half if possible.
func (k *Keeper) keepToken(ctx context.Context, m *machinev1alpha1.Machine, c Cluster, r Request, published credential, now time.Time) (credential, lease, error) {
	if published.secret == "" {
		// A Machine without a Secret usually has no token yet: a read of it would be an additional call per Machine.
		half, l, err := k.createToken(ctx, m, c, r, credential{}, now)
		if !kerrors.IsAlreadyExists(err) {
			return half, l, err
		}
	}
	existing, err := c.token(ctx, m)
	if err != nil {
		return credential{}, lease{}, err
	}
	half := r.choose(published, credentialIn(existing, identity.TokenID(m)), now)
	switch {
	case r.Frozen && r.isSpent(half.minted, now):
		return half, lease{minted: half.minted}, nil // It is left to expire.
	case existing == nil:
		return k.createToken(ctx, m, c, r, half, now)
	}
	return k.updateToken(ctx, m, c, r, half, existing, now)
}

// createToken creates the token with the secret half, or with a new one if that is empty.
func (k *Keeper) createToken(ctx context.Context, m *machinev1alpha1.Machine, c Cluster, r Request, half credential, now time.Time) (credential, lease, error) {
	if half.secret == "" {
		var err error
		if half, err = mint(now); err != nil {
			return half, lease{}, err
		}
	}
	s := tokenSecret(m, c, r, half, nil, now)
	s, err := c.Kube.CoreV1().Secrets(s.GetNamespace()).Create(ctx, s, metav1.CreateOptions{})
	if err != nil {
		return half, lease{}, c.Classify(err)
	}
	return half, leaseOf(s, half.minted), nil
}

// updateToken updates the token to the secret half, or to a new one if that is empty.
func (k *Keeper) updateToken(ctx context.Context, m *machinev1alpha1.Machine, c Cluster, r Request, half credential, existing *corev1.Secret, now time.Time) (credential, lease, error) {
	isNew := half.secret == ""
	if isNew {
		var err error
		if half, err = mint(now); err != nil {
			return half, lease{}, err
		}
	}
	s := tokenSecret(m, c, r, half, existing, now)
	if equality.Semantic.DeepEqual(s, existing) {
		return half, leaseOf(existing, half.minted), nil
	}
	s, err := c.Kube.CoreV1().Secrets(s.GetNamespace()).Update(ctx, s, metav1.UpdateOptions{})
	if err != nil {
		return half, lease{}, c.Classify(err)
	}
	l := leaseOf(s, half.minted)
	switch id := identity.TokenID(m); {
	case isNew:
		k.Record.Event(m, event.Normal(machinev1alpha1.EventTokenReplaced, fmt.Sprintf("Minted bootstrap token %s again: its total life of %s is over; valid until %s", id, r.MaxLife.Duration, l.expires.Format(time.RFC3339))))
	case !l.expires.Equal(expiration(existing)):
		k.Record.Event(m, event.Normal(machinev1alpha1.EventTokenRenewed, fmt.Sprintf("Renewed bootstrap token %s: no Node has joined yet; valid until %s", id, l.expires.Format(time.RFC3339))))
	}
	return half, l, nil
}

// revoke deletes the token. The Secret beside the Machine stays, for a VM that reads its user data at every
// start.
func (k *Keeper) revoke(ctx context.Context, m *machinev1alpha1.Machine, e entry) (entry, error) {
	c, err := k.Connect(ctx, m)
	if err != nil {
		return e, err
	}
	uid := types.UID("")
	if e.lease != nil {
		uid = e.lease.uid
	}
	if uid == "" {
		existing, err := c.token(ctx, m)
		if err != nil && !errors.Is(err, errForeign) {
			return e, err
		}
		if existing == nil { // The token belongs to another object.
			return e.withoutToken(), nil
		}
		uid = existing.GetUID()
	}
	if err := c.deleteToken(ctx, bootstraputil.BootstrapTokenSecretName(identity.TokenID(m)), uid); err != nil {
		return e, err
	}
	return e.withoutToken(), nil
}

// An entry is the process-local memory of a Machine. It is never changed in place.
type entry struct {
	// secret beside the Machine, nil if there is none.
	secret *corev1.Secret
	// lease of the token, nil if this process has not read or written the token.
	lease *lease
	// renew is when the lease has to be renewed for the last Request.
	renew time.Time
	// frozen is that of the last Request.
	frozen bool
	// revoked means that the token is known to be gone.
	revoked bool
}

func (e entry) withoutToken() entry {
	e.lease, e.renew, e.revoked = nil, time.Time{}, true
	return e
}

// isAtRest reports whether nothing has to be done for a Request that is not revoked.
func (e entry) isAtRest(m *machinev1alpha1.Machine, r Request, own *source, now time.Time) bool {
	switch {
	case r.Frozen && e.credential(m).secret == "":
		return true // No VM knows the token, and none can be given another.
	case !r.Frozen && (!e.isComplete(m) || e.hash() != r.Hash() || !e.isOf(own)):
		return false
	}
	return e.lease != nil && e.lease.isCurrent(r, now)
}

// credential that is published.
func (e entry) credential(m *machinev1alpha1.Machine) credential {
	if e.secret == nil {
		return credential{}
	}
	half := credential{
		secret: secretHalf(identity.TokenID(m), string(e.secret.Data[clusterv1alpha1.ConnectionToken])),
		minted: mintedAt(e.secret),
	}
	if e.lease != nil {
		half.minted = earlierKnown(half.minted, e.lease.minted)
	}
	return half
}

// isComplete reports whether the Secret has all that a kubelet needs to join.
func (e entry) isComplete(m *machinev1alpha1.Machine) bool {
	return e.credential(m).secret != "" && len(e.secret.Data[clusterv1alpha1.ConnectionServer]) > 0 && len(e.secret.Data[clusterv1alpha1.ConnectionCA]) > 0
}

// isOf reports whether the Secret was filled from a user's own, or from none.
func (e entry) isOf(own *source) bool {
	text, err := own.annotation()
	return err == nil && e.secret != nil && e.secret.GetAnnotations()[annotationOwn] == text
}

func (e entry) hash() string {
	if e.secret == nil {
		return ""
	}
	return e.secret.GetAnnotations()[annotationTemplate]
}

// isValid reports whether the token is known to be valid.
func (e entry) isValid(now time.Time) bool {
	switch {
	case e.revoked || e.secret == nil:
		return false
	case e.lease != nil:
		return now.Before(e.lease.expires)
	}
	return now.Before(parseTime(e.secret.GetAnnotations()[annotationExpires]))
}

func (e entry) state(m *machinev1alpha1.Machine, now time.Time) State {
	s := State{Hash: e.hash(), Revoked: e.revoked, Renew: e.renew}
	if e.secret != nil {
		s.Details, s.OwnUserData = e.secret.Data, ownIn(e.secret)
		s.Published = s.Hash != "" && e.isComplete(m) && (e.frozen || e.isValid(now))
	}
	return s
}
