package inventories

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/drover-dev/drover/internal/inventory"
)

const (
	// maxListers of a cloud. With more, the one that was unused for the longest time is dropped.
	maxListers = 64
	// unusedFor is how long a Lister is kept that no inventory uses.
	unusedFor = time.Hour
)

// listers keep the Listers of a cloud between looks. A Lister has a token that is valid for an hour
// and connections: a new one for each look would request both again.
//
// A Lister is replaced when its configuration or the content of its Secret changes, and dropped
// when a look fails: the cloud may have revoked its token, and a file that a pod's identity is read
// from may have changed. One that is throttled is kept, because it knows when its next call is due.
type listers struct {
	now func() time.Time

	mu   sync.Mutex
	kept map[place]*kept
}

// A place is what one Lister lists.
type place struct{ config, region, namespace string }

func placeOf(i inventory.Inventory) place {
	p := place{region: i.Asked().Region, namespace: i.Asked().Namespace}
	if ref := i.GetProviderConfigReference(); ref != nil {
		p.config = ref.Name
	}
	return p
}

type kept struct {
	made   fingerprint
	lister inventory.Lister
	used   time.Time
}

// A fingerprint is of all that a Lister is made of. It holds no credentials.
type fingerprint [sha256.Size]byte

// fingerprintOf a configuration and the content of its Secret, nil if the credentials are those of
// the pod.
func fingerprintOf(c config, secret []byte) fingerprint {
	return sha256.Sum256(fmt.Appendf(nil, "%s %d %t %s", c.GetUID(), c.GetGeneration(), secret == nil, secret))
}

func newListers() *listers { return &listers{now: time.Now, kept: map[place]*kept{}} }

// get the Lister of a place, which is made if none has the fingerprint.
func (l *listers) get(p place, f fingerprint, create func() (inventory.Lister, error)) (inventory.Lister, error) {
	if known := l.find(p, f); known != nil {
		return known, nil
	}
	// Not locked: it may look for the identity of the pod.
	made, err := create()
	if err != nil {
		l.drop(p)
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept[p] = &kept{made: f, lister: made, used: l.now()}
	if len(l.kept) > maxListers {
		delete(l.kept, slices.MinFunc(slices.Collect(maps.Keys(l.kept)), func(a, b place) int {
			return cmp.Or(l.kept[a].used.Compare(l.kept[b].used), cmp.Compare(a.config, b.config))
		}))
	}
	return made, nil
}

func (l *listers) find(p place, f fingerprint) inventory.Lister {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	maps.DeleteFunc(l.kept, func(_ place, k *kept) bool { return now.Sub(k.used) > unusedFor })
	k := l.kept[p]
	if k == nil || k.made != f {
		return nil
	}
	k.used = now
	return k.lister
}

// fail the Lister of a place by an error of its cloud.
func (l *listers) fail(p place, err error) {
	if !inventory.IsThrottled(err) {
		l.drop(p)
	}
}

// drop the Lister of a place.
func (l *listers) drop(p place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.kept, p)
}
