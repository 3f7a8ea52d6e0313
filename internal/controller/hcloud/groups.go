package hcloud

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"golang.org/x/sync/semaphore"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/ratelimit"
)

// Placement groups of a prefix are created as servers need them. Four properties make this safe for any number of
// servers and processes:
//
//   - A group belongs to Drover by its labels: the installation and the prefix. No other group is joined or deleted.
//   - The names are prefix-1, prefix-2, and so on. Hetzner refuses a name that exists: of two processes that create a
//     group at the same time, the second one finds the group of the first one. So does a process whose response was lost.
//   - Hetzner refuses the eleventh server of a group. The server then takes another group, in the same creation.
//   - A group is deleted if a read that began after the deletion of a server shows no server, and this process is
//     creating none in it. Hetzner does not document what happens if another process creates one meanwhile.
const (
	// labelGroupPrefix is the label of Drover's placement groups, whose value is the prefix.
	labelGroupPrefix = "drover-placement-group-prefix"
	// groupServers is the number of servers that a placement group holds.
	groupServers = 10
	// groupsFor is how long a read of the groups is used to choose one.
	groupsFor = time.Minute
	// fullFor is how long a group that refused a server is not chosen. Hetzner may count a server that its list does not
	// show: https://github.com/hetznercloud/terraform-provider-hcloud/issues/1170.
	fullFor = time.Minute
	// gatherFor is how long a deleted server waits for others that share its read of the groups.
	gatherFor = time.Second
	// groupTries is the number of attempts to create a group whose name another client may take at the same time.
	groupTries = 5
)

// A groupOwner identifies the placement groups that a server may use.
type groupOwner struct{ installation, prefix string }

func (o groupOwner) labels() map[string]string {
	out := map[string]string{labelGroupPrefix: o.prefix}
	if o.installation != "" {
		out[machinev1alpha1.TagInstallation] = o.installation
	}
	return out
}

func (o groupOwner) name(n int) string { return fmt.Sprintf("%s-%d", o.prefix, n) }

// ownerOfGroup returns the owner of a group, with an empty prefix if the group is not Drover's.
func ownerOfGroup(g *hcloud.PlacementGroup) groupOwner {
	if g.Type != hcloud.PlacementGroupTypeSpread {
		return groupOwner{}
	}
	return groupOwner{installation: g.Labels[machinev1alpha1.TagInstallation], prefix: g.Labels[labelGroupPrefix]}
}

// A placementGroup is a group as the last read showed it, with the servers that this process created since.
type placementGroup struct {
	*hcloud.PlacementGroup
	// pending is the number of servers that are being created in the group.
	pending int
	// placed is the number of servers that were created in the group after the last read began.
	placed int
	// fullUntil is when the group may be chosen again after it refused a server.
	fullUntil time.Time
}

// placementGroups are the placement groups of a project. Servers that wait at the same time share the reads. All state
// can be lost: after a restart the groups are read again.
type placementGroups struct {
	client *hcloud.Client
	now    func() time.Time
	// turn is held by the server that reads, creates or deletes groups.
	turn *semaphore.Weighted

	mu sync.Mutex
	// reads is the number of reads that began, and view is the number of the last one that succeeded, 0 if none did or a
	// later one failed.
	reads, view int
	readAt      time.Time
	groups      map[int64]*placementGroup
	// gone are deleted servers that the last read still showed in their group.
	gone map[int64]bool
}

func newPlacementGroups(c *hcloud.Client, now func() time.Time) *placementGroups {
	return &placementGroups{client: c, now: now, turn: semaphore.NewWeighted(1), groups: map[int64]*placementGroup{}, gone: map[int64]bool{}}
}

// begun returns the number of reads that began.
func (p *placementGroups) begun() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reads
}

// refresh reads the groups if the last read is not a later one than the read after, or is older than groupsFor. The
// caller must have the turn.
func (p *placementGroups) refresh(ctx context.Context, after int) error {
	p.mu.Lock()
	if p.view > after && p.now().Sub(p.readAt) < groupsFor {
		p.mu.Unlock()
		return nil
	}
	p.reads++
	p.view = 0
	read, begin := p.reads, p.now()
	for _, g := range p.groups {
		g.placed = 0
	}
	p.mu.Unlock()
	found, err := p.client.PlacementGroup.AllWithOpts(ctx, hcloud.PlacementGroupListOpts{ListOpts: hcloud.ListOpts{PerPage: perPage}})
	if err != nil {
		return fmt.Errorf("cannot list placement groups: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.view, p.readAt = read, begin
	groups, gone := map[int64]*placementGroup{}, map[int64]bool{}
	for _, g := range found {
		known := p.groups[g.ID]
		if known == nil {
			known = &placementGroup{}
		}
		known.PlacementGroup = g
		groups[g.ID] = known
		for _, s := range g.Servers {
			if p.gone[s] {
				gone[s] = true
			}
		}
	}
	p.groups, p.gone = groups, gone
	return nil
}

// choose returns a place for a server in a group of the owner, and creates a group if none has room. It uses only a
// read that began after the read after.
func (p *placementGroups) choose(ctx context.Context, o groupOwner, after int) (place, error) {
	if err := p.turn.Acquire(ctx, 1); err != nil {
		return place{}, err
	}
	defer p.turn.Release(1)
	start := max(after, p.begun())
	var err error
	for range groupTries {
		if err := p.refresh(ctx, after); err != nil {
			return place{}, err
		}
		if reserved, ok := p.reserve(o); ok {
			return reserved, nil
		}
		name, foreign := p.nextName(o)
		if foreign {
			if p.viewed() > start {
				return place{}, foreignGroup(o, name)
			}
			after = p.begun() // It may have been deleted since.
			continue
		}
		err = p.create(ctx, o, name)
		switch {
		case hcloud.IsError(err, hcloud.ErrorCodeUniquenessError):
			after = p.begun()
		case err != nil:
			return place{}, err
		}
	}
	return place{}, err
}

func (p *placementGroups) viewed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.view
}

// foreignGroup is the error of a name that a group of another client has. Compositions read its class from the code.
func foreignGroup(o groupOwner, name string) error {
	return fmt.Errorf("forProvider.placementGroupPrefix: invalid value %q: the project has a placement group %q that this installation of Drover did not create; "+
		"choose another prefix, or rename or delete the group (uniqueness_error)", o.prefix, name)
}

// reserve returns a place in the oldest group of the owner that has room.
func (p *placementGroups) reserve(o groupOwner) (place, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(p.groups)) {
		g := p.groups[id]
		if ownerOfGroup(g.PlacementGroup) != o || len(g.Servers)+g.pending+g.placed >= groupServers || p.now().Before(g.fullUntil) {
			continue
		}
		g.pending++
		return place{groups: p, group: g, id: id}, true
	}
	return place{}, false
}

// nextName returns the first name that no group of the owner has. If a group of another owner has it, foreign is true.
func (p *placementGroups) nextName(o groupOwner) (name string, foreign bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	owners := map[string]groupOwner{}
	for _, g := range p.groups {
		owners[g.Name] = ownerOfGroup(g.PlacementGroup)
	}
	for n := 1; ; n++ {
		name := o.name(n)
		owner, exists := owners[name]
		if !exists || owner != o {
			return name, exists
		}
	}
}

// create a group and add it to the view.
func (p *placementGroups) create(ctx context.Context, o groupOwner, name string) error {
	res, _, err := p.client.PlacementGroup.Create(ctx, hcloud.PlacementGroupCreateOpts{Name: name, Labels: o.labels(), Type: hcloud.PlacementGroupTypeSpread})
	if hcloud.IsError(err, hcloud.ErrorCodeResourceLimitExceeded) {
		return fmt.Errorf("forProvider.placementGroupPrefix: cannot create the placement group %q: the project has reached its limit of placement groups, by default 50: %w", name, err)
	}
	if err != nil {
		return fmt.Errorf("forProvider.placementGroupPrefix: cannot create the placement group %q: %w", name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.groups[res.PlacementGroup.ID] = &placementGroup{PlacementGroup: res.PlacementGroup}
	return nil
}

// isCause reports whether a server was refused because its group is full or does not exist any more. It uses only a
// read that began after the read after. If saysFull is true, Hetzner named a full group as the cause. An empty group is
// never the cause: otherwise a wrong error would create groups without end.
func (p *placementGroups) isCause(ctx context.Context, id int64, saysFull bool, after int) (bool, error) {
	if err := p.turn.Acquire(ctx, 1); err != nil {
		return false, err
	}
	defer p.turn.Release(1)
	if err := p.refresh(ctx, after); err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.groups[id]
	switch {
	case g == nil || len(g.Servers) >= groupServers:
		return true, nil
	case saysFull && len(g.Servers) > 0:
		g.fullUntil = p.now().Add(fullFor)
		return true, nil
	}
	return false, nil
}

// deleteEmpty deletes the groups of an installation that have no server. The server with the ID gone, 0 if none, does
// not exist any more, whatever a list of the groups shows.
func (p *placementGroups) deleteEmpty(ctx context.Context, installation string, gone int64) error {
	p.mu.Lock()
	if gone != 0 {
		p.gone[gone] = true
	}
	after := p.reads
	p.mu.Unlock()
	if err := ratelimit.Sleep(ctx, gatherFor); err != nil {
		return err
	}
	if err := p.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	defer p.turn.Release(1)
	if err := p.refresh(ctx, after); err != nil {
		return err
	}
	for _, g := range p.empty(installation) {
		if err := p.remove(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// empty returns the groups of an installation in which there is no server and none is being created.
func (p *placementGroups) empty(installation string) []*hcloud.PlacementGroup {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*hcloud.PlacementGroup
	for _, id := range slices.Sorted(maps.Keys(p.groups)) {
		g := p.groups[id]
		o := ownerOfGroup(g.PlacementGroup)
		isUsed := g.pending+g.placed > 0 || slices.ContainsFunc(g.Servers, func(s int64) bool { return !p.gone[s] })
		if o.prefix != "" && o.installation == installation && !isUsed {
			out = append(out, g.PlacementGroup)
		}
	}
	return out
}

// remove deletes a group. A group that another process has just put a server in stays.
func (p *placementGroups) remove(ctx context.Context, g *hcloud.PlacementGroup) error {
	_, err := p.client.PlacementGroup.Delete(ctx, g)
	switch {
	case err == nil || hcloud.IsError(err, hcloud.ErrorCodeNotFound):
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.groups, g.ID)
		return nil
	case isInUse(err) && len(g.Servers) == 0:
		return nil
	}
	// If the list shows deleted servers, Hetzner may still count them, and the deletion is repeated.
	return fmt.Errorf("cannot delete the empty placement group %q: %w", g.Name, err)
}

// isInUse reports whether Hetzner may have refused the deletion of a group because of its servers. No code is documented
// for it: every refusal is one that is not about the token, the rate or a concurrent change.
func isInUse(err error) bool {
	var e hcloud.Error
	if !errors.As(err, &e) || e.Response() == nil || e.Response().StatusCode/100 != 4 {
		return false
	}
	return !isUnrelated(e.Code) && e.Code != hcloud.ErrorCodeLocked && e.Code != hcloud.ErrorCodeTimeout
}

// isUnrelated reports whether a code is about the token, the rate or a concurrent change, whatever the call is for.
func isUnrelated(code hcloud.ErrorCode) bool {
	switch code {
	case hcloud.ErrorCodeUnauthorized, hcloud.ErrorCodeForbidden, hcloud.ErrorCodeTokenReadonly, hcloud.ErrorCodeRateLimitExceeded,
		hcloud.ErrorCodeConflict:
		return true
	}
	return false
}

// A place is room for one server in a group.
type place struct {
	groups *placementGroups
	group  *placementGroup
	id     int64
}

// release ends the creation of the server. If the server may exist, mayExist is true.
func (l place) release(mayExist bool) {
	l.groups.mu.Lock()
	defer l.groups.mu.Unlock()
	l.group.pending--
	if mayExist {
		l.group.placed++
	}
}
