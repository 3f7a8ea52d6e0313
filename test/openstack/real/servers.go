package real

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/instanceactions"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"k8s.io/apimachinery/pkg/util/wait"
)

// A Server as Nova shows it to an administrator.
type Server struct {
	ID, Name string
	UserData []byte
	Metadata map[string]string
}

// Servers returns the servers of a project that Nova has.
func (c *Cloud) Servers(ctx context.Context, p *Project) ([]Server, error) {
	o := servers.ListOpts{AllTenants: true, TenantID: p.ID}
	pages, err := servers.List(c.compute, o).AllPages(ctx)
	if err != nil {
		return nil, err
	}
	found, err := servers.ExtractServers(pages)
	if err != nil {
		return nil, err
	}
	var out []Server
	for _, f := range found {
		s := Server{ID: f.ID, Name: f.Name, Metadata: f.Metadata}
		if f.Userdata != nil {
			if s.UserData, err = base64.StdEncoding.DecodeString(*f.Userdata); err != nil {
				return nil, fmt.Errorf("user data of %s: %w", f.ID, err)
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// actions returns the requests by which Nova recorded that it did something with a server, the oldest first.
func (c *Cloud) actions(ctx context.Context, id, action string) ([]string, error) {
	pages, err := instanceactions.List(c.compute, id, nil).AllPages(ctx)
	if err != nil {
		return nil, err
	}
	found, err := instanceactions.ExtractInstanceActions(pages)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, a := range slices.Backward(found) {
		if a.Action == action {
			out = append(out, a.RequestID)
		}
	}
	return out, nil
}

// awaitTask waits until Nova has nothing to do with a server, and returns the statuses that the server had.
func (c *Cloud) awaitTask(id string) []string {
	var statuses []string
	_ = wait.PollUntilContextCancel(context.Background(), taskInterval, true, func(ctx context.Context) (bool, error) {
		s, err := servers.Get(ctx, c.compute, id).Extract()
		if err != nil {
			return true, err
		}
		if len(statuses) == 0 || statuses[len(statuses)-1] != s.Status {
			statuses = append(statuses, s.Status)
		}
		return s.TaskState == "", nil
	})
	return statuses
}

// Stop stops a server like an administrator.
func (c *Cloud) Stop(ctx context.Context, id string) error {
	if err := servers.Stop(ctx, c.compute, id).ExtractErr(); err != nil {
		return err
	}
	if statuses := c.awaitTask(id); !slices.Contains(statuses, "SHUTOFF") {
		return fmt.Errorf("server %s was %q and is not stopped", id, statuses)
	}
	return nil
}

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

// taskInterval is the interval of polling.
const taskInterval = 50 * time.Millisecond
