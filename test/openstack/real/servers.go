package real

import (
	"context"
	"fmt"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
)

// Delete deletes a server like an administrator.
func (c *Cloud) Delete(ctx context.Context, id string) error {
	return servers.Delete(ctx, c.compute, id).ExtractErr()
}

// Create creates a server like the user of its project, without user data, and returns its ID.
func (c *Cloud) Create(ctx context.Context, p *Project, name string, metadata map[string]string) (string, error) {
	flavor, err := c.FlavorID(ctx)
	if err != nil {
		return "", err
	}
	made, err := servers.Create(ctx, p.compute, servers.CreateOpts{
		Name: name, FlavorRef: flavor, ImageRef: c.ImageID, Networks: []servers.Network{{UUID: p.NetworkID}}, Metadata: metadata,
	}, nil).Extract()
	if err != nil {
		return "", err
	}
	return made.ID, nil
}

// FlavorID returns the ID of the flavor.
func (c *Cloud) FlavorID(ctx context.Context) (string, error) {
	pages, err := flavors.ListDetail(c.compute, nil).AllPages(ctx)
	if err != nil {
		return "", err
	}
	all, err := flavors.ExtractFlavors(pages)
	if err != nil {
		return "", err
	}
	for _, f := range all {
		if f.Name == Flavor {
			return f.ID, nil
		}
	}
	return "", fmt.Errorf("there is no flavor %s", Flavor)
}
