package gcp

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"google.golang.org/api/compute/v1"

	"github.com/drover-dev/drover/internal/inventory"
)

const (
	diskFields    = "items/*/disks(selfLink,labels,status,users,creationTimestamp)"
	addressFields = "items/*/addresses(selfLink,labels,users,creationTimestamp)"

	statusDeleting = "DELETING"
)

// ListResources lists the disks and the addresses of the project, in all zones and regions. A
// disk that is being deleted is left out.
func (p *Project) ListResources(ctx context.Context, installation string) ([]inventory.Resource, bool, error) {
	filter, err := filterFor(installation)
	if err != nil {
		return nil, false, err
	}
	found, all := map[string]inventory.Resource{}, pages{}
	if err := p.disks(ctx, filter, &all, found); err != nil {
		return nil, false, describe(err)
	}
	if err := p.addresses(ctx, filter, &all, found); err != nil {
		return nil, false, describe(err)
	}
	if all.incomplete {
		return nil, false, nil
	}
	resources := make([]inventory.Resource, 0, len(found))
	for _, r := range found {
		resources = append(resources, r)
	}
	slices.SortFunc(resources, func(a, b inventory.Resource) int { return cmp.Compare(a.ID, b.ID) })
	return resources, true, nil
}

func (p *Project) disks(ctx context.Context, filter string, all *pages, found map[string]inventory.Resource) error {
	return p.Service.Disks.AggregatedList(p.ID).Filter(filter).MaxResults(perPage).Fields(pageFields+diskFields).Pages(ctx, func(page *compute.DiskAggregatedList) error {
		all.note(page.Unreachables, "")
		if page.Warning != nil {
			all.note(nil, page.Warning.Code)
		}
		for _, scoped := range page.Items {
			if scoped.Warning != nil {
				all.note(nil, scoped.Warning.Code)
			}
			for _, d := range scoped.Disks {
				if d.Status != statusDeleting {
					add(found, "Disk", d.SelfLink, d.Labels, d.CreationTimestamp, d.Users)
				}
			}
		}
		return nil
	})
}

func (p *Project) addresses(ctx context.Context, filter string, all *pages, found map[string]inventory.Resource) error {
	return p.Service.Addresses.AggregatedList(p.ID).Filter(filter).MaxResults(perPage).Fields(pageFields+addressFields).Pages(ctx, func(page *compute.AddressAggregatedList) error {
		all.note(page.Unreachables, "")
		if page.Warning != nil {
			all.note(nil, page.Warning.Code)
		}
		for _, scoped := range page.Items {
			if scoped.Warning != nil {
				all.note(nil, scoped.Warning.Code)
			}
			for _, a := range scoped.Addresses {
				add(found, "Address", a.SelfLink, a.Labels, a.CreationTimestamp, a.Users)
			}
		}
		return nil
	})
}

func add(found map[string]inventory.Resource, typ, link string, labels map[string]string, createdAt string, users []string) {
	r := inventory.Resource{Type: typ, ID: resourceName(link), Tags: labels, CreatedAt: TimeOf(createdAt)}
	if len(users) > 0 {
		r.AttachedTo = resourceName(users[0])
	}
	found[r.ID] = r
}

// resourceName returns the end of a link that begins with projects/, which all tools accept as a
// name.
func resourceName(link string) string {
	if i := strings.Index(link, "projects/"); i >= 0 {
		return link[i:]
	}
	return link
}
