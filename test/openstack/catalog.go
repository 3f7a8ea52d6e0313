//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	cloud "github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/hypervisors"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/endpoints"
	identity "github.com/gophercloud/gophercloud/v2/openstack/identity/v3/services"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/agents"
)

// A listed service is in the catalog. It has a port in the namespace, and a socket of its name outside of it.
type listed struct {
	name, kind string
	port       int
	path       string
}

// catalog has the services beside Keystone, whose own entry its bootstrap makes.
var catalog = []listed{
	{"placement", "placement", 8778, ""},
	{"image", "image", 9292, ""},
	{"network", "network", 9696, ""},
	{"compute", "compute", 8774, "/v2.1"},
}

func login(ctx context.Context) (*gophercloud.ProviderClient, error) {
	return cloud.AuthenticatedClient(ctx, gophercloud.AuthOptions{
		IdentityEndpoint: "http://127.0.0.1:5000/v3", Username: "admin", Password: password, DomainName: "Default",
		Scope: &gophercloud.AuthScope{ProjectName: "admin", DomainName: "Default"}, AllowReauth: true,
	})
}

// fillCatalog adds the services to Keystone's catalog, by their addresses in the namespace.
func fillCatalog(ctx context.Context) error {
	admin, err := login(ctx)
	if err != nil {
		return err
	}
	c, err := cloud.NewIdentityV3(admin, gophercloud.EndpointOpts{})
	if err != nil {
		return err
	}
	for _, s := range catalog {
		made, err := identity.Create(ctx, c, identity.CreateOpts{Type: s.kind, Extra: map[string]any{"name": s.name}}).Extract()
		if err != nil {
			return err
		}
		for _, where := range []gophercloud.Availability{gophercloud.AvailabilityInternal, gophercloud.AvailabilityPublic} {
			o := endpoints.CreateOpts{Availability: where, Name: s.name, Region: "RegionOne", ServiceID: made.ID, URL: fmt.Sprintf("http://127.0.0.1:%d%s", s.port, s.path)}
			if _, err := endpoints.Create(ctx, c, o).Extract(); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitHosts waits until Nova has its host, and Neutron an agent that binds ports there.
func (o *openstack) awaitHosts(ctx context.Context) error {
	for {
		err := hostsAreUp(ctx)
		if err == nil {
			return nil
		}
		select {
		case failed := <-o.failed:
			return failed
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(5 * poll):
		}
	}
}

func hostsAreUp(ctx context.Context) error {
	admin, err := login(ctx)
	if err != nil {
		return err
	}
	compute, err := cloud.NewComputeV2(admin, gophercloud.EndpointOpts{Region: "RegionOne"})
	if err != nil {
		return err
	}
	pages, err := hypervisors.List(compute, nil).AllPages(ctx)
	if err != nil {
		return err
	}
	hosts, err := hypervisors.ExtractHypervisors(pages)
	if err != nil || len(hosts) == 0 || hosts[0].State != "up" {
		return fmt.Errorf("nova has no host that is up: %w", err)
	}
	network, err := cloud.NewNetworkV2(admin, gophercloud.EndpointOpts{Region: "RegionOne"})
	if err != nil {
		return err
	}
	if pages, err = agents.List(network, agents.ListOpts{}).AllPages(ctx); err != nil {
		return err
	}
	found, err := agents.ExtractAgents(pages)
	if err != nil || len(found) == 0 || !found[0].Alive {
		return fmt.Errorf("neutron has no agent that is alive: %w", err)
	}
	return nil
}

// forward listens on the socket of each service, and connects it with the port in the namespace.
func forward(dir string) error {
	for _, s := range append([]listed{{name: "identity", port: 5000}}, catalog...) {
		file := filepath.Join(dir, s.name)
		l, err := net.Listen("unix", file)
		if err != nil {
			return err
		}
		if err := os.Chmod(file, 0o666); err != nil {
			return err
		}
		go accept(l, net.JoinHostPort("127.0.0.1", fmt.Sprint(s.port)))
	}
	return nil
}

func accept(l net.Listener, to string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = conn.Close() }()
			there, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer func() { _ = there.Close() }()
			go func() {
				_, _ = io.Copy(there, conn)
				_ = there.(*net.TCPConn).CloseWrite()
			}()
			_, _ = io.Copy(conn, there)
		}()
	}
}
