package jointoken

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/userdata"
)

// minTTL keeps renewals rare.
const minTTL = time.Minute

// A Request is the join request of the bootstrap step in a Machine's pipeline. A lease is renewed after half of
// its duration. If Frozen, the Secret must not change, no other secret half is minted, and the token is renewed
// until the end of its total life.
type Request plan.JoinRequest

// Hash of the template and its encoding.
func (r Request) Hash() string { return userdata.Hash(plan.JoinRequest(r).Template(), r.Encoding) }

func (r Request) check() error {
	if r.TTL.Duration < minTTL {
		return fmt.Errorf("bootstrap request: ttl: invalid value %s: must be %s or more", r.TTL.Duration, minTTL)
	}
	if r.MaxLife.Duration < r.TTL.Duration {
		return fmt.Errorf("bootstrap request: maxLife: invalid value %s: must be the ttl (%s) or more", r.MaxLife.Duration, r.TTL.Duration)
	}
	return nil
}

// form of the user data.
func (r Request) form() userdata.Form {
	return userdata.Form{Encoding: r.Encoding, MaxBytes: r.MaxBytes}
}

// groups as the token has them.
func (r Request) groups() string {
	return strings.Join(slices.Sorted(slices.Values(r.Groups)), ",")
}

// endOfLife of a secret half. Tokens expire at full seconds.
func (r Request) endOfLife(minted time.Time) time.Time {
	return minted.Add(r.MaxLife.Duration).Truncate(time.Second)
}

// expiration of a lease that begins now.
func (r Request) expiration(minted, now time.Time) time.Time {
	return earlier(now.Add(r.TTL.Duration).Truncate(time.Second), r.endOfLife(minted))
}

// isSpent reports whether a secret half must not get another lease. If no VM can have it yet,
// it is spent as soon as less than the Machine's creation timeout is left: a VM that is created
// now needs that time to join.
func (r Request) isSpent(minted, now time.Time) bool {
	left := r.endOfLife(minted).Sub(now)
	if r.Frozen {
		return left <= 0
	}
	return left <= max(r.TTL.Duration/2, r.MaxLife.Duration-plan.TokenSlack)
}

// renewal returns when a lease has to be renewed, or its secret half replaced; zero if
// never.
func (r Request) renewal(l lease, now time.Time) time.Time {
	if r.Frozen && (r.isSpent(l.minted, now) || !l.expires.Before(r.endOfLife(l.minted))) {
		return time.Time{}
	}
	return l.expires.Add(-r.TTL.Duration / 2)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// A State is the state of a Machine's token and user data.
type State struct {
	// Published means that the Secret holds all that a kubelet needs to join, with user
	// data made from the template with the Hash, and that the token in it is valid, or
	// the last Request was Frozen. A process that has just started knows only the first
	// lease of a token, and reports a renewed one as not Published before Apply has read
	// it.
	Published bool
	// Hash of the template that the Secret's user data was made from.
	Hash string
	// Details are the data of the Secret, nil if there is none. They must not be changed.
	Details map[string][]byte
	// OwnUserData describes the user's Secret that the Secret was filled from, nil if Drover wrote the user data.
	OwnUserData *OwnUserData
	// Revoked means that the token is known to be gone.
	Revoked bool
	// Renew is when Apply has to be called to renew the lease. It is zero if that is
	// never, or not known before Apply was called.
	Renew time.Time
}
