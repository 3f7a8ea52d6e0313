package real

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/instanceactions"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"k8s.io/apimachinery/pkg/util/wait"
)

// A Server as Nova shows it to an administrator.
type Server struct {
	ID, Name, Status, Project string
	// IP is the first IPv4 address.
	IP       string
	UserData []byte
	Metadata map[string]string
	// Deleting means that its deletion was requested.
	Deleting bool
}

// Servers returns the servers of a project that Nova has, or if the project is nil those of all.
func (c *Cloud) Servers(ctx context.Context, p *Project) ([]Server, error) {
	o := servers.ListOpts{AllTenants: true}
	if p != nil {
		o.TenantID = p.ID
	}
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
		s := Server{ID: f.ID, Name: f.Name, Status: f.Status, Project: f.TenantID, Metadata: f.Metadata, Deleting: f.TaskState == "deleting"}
		if s.IP, err = fixedIP(f.Addresses); err != nil {
			return nil, err
		}
		if f.Userdata != nil {
			if s.UserData, err = base64.StdEncoding.DecodeString(*f.Userdata); err != nil {
				return nil, fmt.Errorf("user data of %s: %w", f.ID, err)
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// fixedIP returns the first fixed IPv4 address, "" if there is none.
func fixedIP(addresses map[string]any) (string, error) {
	b, err := json.Marshal(addresses[Network])
	if err != nil {
		return "", err
	}
	var all []struct {
		Address string `json:"addr"`
		Version int    `json:"version"`
		Type    string `json:"OS-EXT-IPS:type"`
	}
	if err := json.Unmarshal(b, &all); err != nil {
		return "", fmt.Errorf("addresses: %w", err)
	}
	for _, a := range all {
		if a.Version == 4 && a.Type == "fixed" {
			return a.Address, nil
		}
	}
	return "", nil
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

// isGone reports whether Nova answers that it has no such server.
func (c *Cloud) isGone(ctx context.Context, id string) bool {
	_, err := servers.Get(ctx, c.compute, id).Extract()
	return gophercloud.ResponseCodeIs(err, http.StatusNotFound)
}

func (c *Cloud) port(ctx context.Context, id string) (*ports.Port, error) {
	return ports.Get(ctx, c.network, id).Extract()
}

// portOf returns the port that a floating IP leads to.
func (c *Cloud) portOf(id string) string {
	f, err := floatingips.Get(context.Background(), c.network, id).Extract()
	if err != nil {
		return ""
	}
	return f.PortID
}

// Beside returns the ports and floating IPs of a project that Nova did not create.
func (c *Cloud) Beside(ctx context.Context, p *Project) ([]string, error) {
	var out []string
	pages, err := ports.List(c.network, ports.ListOpts{ProjectID: p.ID}).AllPages(ctx)
	if err != nil {
		return nil, err
	}
	all, err := ports.ExtractPorts(pages)
	if err != nil {
		return nil, err
	}
	for _, port := range all {
		if port.Description != "" {
			out = append(out, "port "+port.Name)
		}
	}
	if pages, err = floatingips.List(c.network, floatingips.ListOpts{ProjectID: p.ID}).AllPages(ctx); err != nil {
		return nil, err
	}
	ips, err := floatingips.ExtractFloatingIPs(pages)
	if err != nil {
		return nil, err
	}
	for _, ip := range ips {
		out = append(out, "floating IP "+ip.FloatingIP)
	}
	return out, nil
}

// Intervals of polling.
const (
	watchInterval = 500 * time.Millisecond
	taskInterval  = 50 * time.Millisecond
)

// Watch calls boot for each server that Nova built, and stop for each of those that is gone, until the context ends.
func (c *Cloud) Watch(ctx context.Context, boot, stop func(Server), failed func(error)) {
	booted := map[string]Server{}
	_ = wait.PollUntilContextCancel(ctx, watchInterval, true, func(ctx context.Context) (bool, error) {
		all, err := c.Servers(ctx, nil)
		if err != nil {
			if ctx.Err() == nil {
				failed(fmt.Errorf("cannot list servers: %w", err))
			}
			return false, nil
		}
		isThere := map[string]bool{}
		for _, s := range all {
			isThere[s.ID] = true
			if _, ok := booted[s.ID]; !ok && s.Status == "ACTIVE" && !s.Deleting {
				booted[s.ID] = s
				go boot(s)
			}
		}
		for id, s := range booted {
			// Nova leaves the servers of a cell that answers late out of a list.
			if !isThere[id] && c.isGone(ctx, id) {
				delete(booted, id)
				go stop(s)
			}
		}
		return false, nil
	})
}
