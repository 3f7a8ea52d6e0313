package hcloud

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
	"k8s.io/apimachinery/pkg/labels"
)

// spread is the only type of placement groups:
// https://docs.hetzner.com/cloud/placement-groups/overview.
const spread = "spread"

// The limits of https://docs.hetzner.com/cloud/placement-groups/overview: 10 servers per group of the type spread, and
// 50 groups per project.
const (
	groupServers = 10
	groupLimit   = 50
)

// A group is a placement group. Its servers are those that name it.
type group struct {
	schema.PlacementGroup
	// left are the ends of the deletions of its servers.
	left map[int64]time.Time
}

// leaveGroup records the end of a server's deletion at its group.
func (p *project) leaveGroup(s *server) {
	if s.PlacementGroup == nil {
		return
	}
	if g := p.groups[s.PlacementGroup.ID]; g != nil {
		if g.left == nil {
			g.left = map[int64]time.Time{}
		}
		g.left[s.ID] = s.goneAt
	}
}

// viewGroup returns a group as the API shows it now.
func (p *project) viewGroup(g *group, now time.Time) schema.PlacementGroup {
	out := g.PlacementGroup
	out.Servers = []int64{}
	for _, s := range p.servers {
		if s.PlacementGroup != nil && s.PlacementGroup.ID == g.ID && s.there(now) {
			out.Servers = append(out.Servers, s.ID)
		}
	}
	slices.Sort(out.Servers)
	return out
}

// viewGroup returns a group with the deleted servers that it still shows.
func (c *call) viewGroup(g *group) schema.PlacementGroup {
	out := c.project.viewGroup(g, c.now)
	for id, at := range g.left {
		if !slices.Contains(out.Servers, id) && c.now.Before(at.Add(c.opts.GroupsKeep)) {
			out.Servers = append(out.Servers, id)
		}
	}
	slices.Sort(out.Servers)
	return out
}

func (c *call) group(id int64) (*group, *failure) {
	if g := c.project.groups[id]; g != nil {
		return g, nil
	}
	return nil, fail(http.StatusNotFound, "not_found", "placement_group with ID '%d' not found", id)
}

// listGroups implements GET /placement_groups with its filters name, label_selector and type:
// https://docs.hetzner.cloud/reference/cloud#placement-groups.
func (c *call) listGroups() (int, any, *failure) {
	selector, err := labels.Parse(c.query.Get("label_selector"))
	if err != nil {
		return 0, nil, invalid("label_selector", err.Error())
	}
	found := []schema.PlacementGroup{}
	for _, g := range c.project.groups {
		name, kind := c.query.Get("name"), c.query.Get("type")
		if (name == "" || name == g.Name) && (kind == "" || kind == g.Type) && selector.Matches(labels.Set(g.Labels)) {
			found = append(found, c.viewGroup(g))
		}
	}
	slices.SortFunc(found, func(a, b schema.PlacementGroup) int { return cmp.Compare(a.ID, b.ID) })
	return page(c, "placement_groups", found)
}

// createGroup implements POST /placement_groups. "Name of the Resource. Must be unique per Project." The codes of a name
// that exists and of a limit are the general ones, https://docs.hetzner.cloud/reference/cloud#errors; the words of the
// limit are assumed, like those of servers.
func (c *call) createGroup() (int, any, *failure) {
	var r schema.PlacementGroupCreateRequest
	if problem := c.body(&r); problem != nil {
		return 0, nil, problem
	}
	if r.Name == "" {
		return 0, nil, invalid("name", "must not be empty")
	}
	if r.Type != spread {
		return 0, nil, invalid("type", "must be one of: spread")
	}
	g := &group{PlacementGroup: schema.PlacementGroup{Name: r.Name, Type: r.Type, Created: c.now, Labels: map[string]string{}}}
	if r.Labels != nil {
		g.Labels = *r.Labels
	}
	for k, v := range g.Labels {
		if !labelValue.MatchString(v) {
			return 0, nil, invalid("labels", fmt.Sprintf("value of label %q is invalid", k))
		}
	}
	for _, other := range c.project.groups {
		if other.Name == r.Name {
			return 0, nil, fail(http.StatusConflict, "uniqueness_error", "placement group name is already used")
		}
	}
	if len(c.project.groups) >= cmp.Or(c.opts.GroupLimit, groupLimit) {
		return 0, nil, fail(http.StatusForbidden, "resource_limit_exceeded", "placement group limit exceeded")
	}
	g.ID = c.id()
	c.project.groups[g.ID] = g
	return http.StatusCreated, schema.PlacementGroupCreateResponse{PlacementGroup: c.viewGroup(g)}, nil
}

// deleteGroup implements DELETE /placement_groups/{id}, which answers 204. Hetzner documents no error for a group with
// servers; resource_in_use is its code for firewalls.
func (c *call) deleteGroup(id int64) (int, any, *failure) {
	g, problem := c.group(id)
	if problem != nil {
		return 0, nil, problem
	}
	if len(c.viewGroup(g).Servers) > 0 && !c.opts.DeletesGroupsInUse {
		return 0, nil, fail(http.StatusUnprocessableEntity, "resource_in_use", "placement group still has servers")
	}
	for _, s := range c.project.servers {
		if s.PlacementGroup != nil && s.PlacementGroup.ID == id {
			s.PlacementGroup = nil
		}
	}
	delete(c.project.groups, id)
	return http.StatusNoContent, nil, nil
}

// checkGroup checks the group of a server that is created. The code and the words of a full one are from
// https://github.com/hetznercloud/terraform-provider-hcloud/issues/1170; its status is assumed. Those of a group that
// does not exist are the ones of GET /placement_groups/{id}.
func (c *call) checkGroup(id int64) *failure {
	if id == 0 {
		return nil
	}
	g, problem := c.group(id)
	if problem != nil {
		return problem
	}
	if len(c.viewGroup(g).Servers) >= groupServers {
		return fail(http.StatusUnprocessableEntity, "placement_group_member_limit_reached", "placement group with ID %d contains already %d servers", id, groupServers)
	}
	return nil
}

// Groups of a project, by name, with the servers that exist.
func (c *Cloud) Groups(name string) map[string]schema.PlacementGroup {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, out := c.projects[name], map[string]schema.PlacementGroup{}
	for _, g := range p.groups {
		out[g.Name] = p.viewGroup(g, time.Now())
	}
	return out
}

// CreateGroup creates a placement group like the owner of its project, and returns its ID.
func (c *Cloud) CreateGroup(project, name string, labels map[string]string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := &group{PlacementGroup: schema.PlacementGroup{ID: c.id(), Name: name, Type: spread, Created: time.Now(), Labels: labels}}
	c.projects[project].groups[g.ID] = g
	return g.ID
}

// LoseGroup deletes a placement group behind the provider's back. Its servers stay.
func (c *Cloud) LoseGroup(project string, id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.projects[project]
	for _, s := range p.servers {
		if s.PlacementGroup != nil && s.PlacementGroup.ID == id {
			s.PlacementGroup = nil
		}
	}
	delete(p.groups, id)
}

// FillGroup creates a number of servers in a placement group, like the owner of the project.
func (c *Cloud) FillGroup(project string, id int64, servers int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := &call{Cloud: c, project: c.projects[project], now: time.Now()}
	for range servers {
		s := in.made(schema.ServerCreateRequest{Name: fmt.Sprintf("other-%d", c.lastID), ServerType: schema.IDOrName{Name: "cpx21"}, PlacementGroup: id})
		in.project.servers[s.ID] = s
	}
}
