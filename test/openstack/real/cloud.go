package real

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/gophercloud/gophercloud/v2"
	cloud "github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/endpoints"
	identity "github.com/gophercloud/gophercloud/v2/openstack/identity/v3/services"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/external"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
)

// Env names the folder of the sockets. "make openstack" sets it.
const Env = "DROVER_OPENSTACK"

// Names in the examples of classes.
const (
	Flavor  = "m1.large"
	Image   = "ubuntu-24.04"
	Network = "nodes"
	Public  = "public"
	Zone    = "nova"
	KeyPair = "admin"
)

// A Cloud is the OpenStack.
type Cloud struct {
	*gateway
	// URL of the gateway. Keystone is at URL/identity/v3.
	URL string
	// PublicID and ImageID are those of the external network and of the image.
	PublicID, ImageID string

	server *http.Server
	admin  *gophercloud.ProviderClient
	// compute, network and identity are clients with the rights of an administrator.
	compute, network, identity *gophercloud.ServiceClient

	mu sync.Mutex
	// networks is how many projects have one.
	networks int
	// reboots and consoles are by the ID of the server, and torn by that of the project.
	reboots  map[string][]Reboot
	consoles map[string]int
	torn     map[string][]string
	// OnReboot is called when Nova has rebooted a server. It is set before a server is created.
	OnReboot func(id string)
}

// IsThere reports whether there is an OpenStack.
func IsThere() bool { return os.Getenv(Env) != "" }

// Open starts the gateway, and makes the flavor, the image and the networks that the examples use.
func Open(ctx context.Context) (*Cloud, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &Cloud{
		gateway: newGateway(os.Getenv(Env)), URL: "http://" + l.Addr().String(),
		reboots: map[string][]Reboot{}, consoles: map[string]int{}, torn: map[string][]string{},
	}
	c.gateway.before, c.gateway.after = c.beforeCall, c.afterCall
	c.server = &http.Server{Handler: c.gateway}
	go func() { _ = c.server.Serve(l) }()
	if err = c.login(ctx); err == nil {
		err = c.prepare(ctx)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("the OpenStack of %s: %w", Env, err)
	}
	return c, nil
}

// Close ends the gateway.
func (c *Cloud) Close() { _ = c.server.Close() }

// password of the administrator, who can be reached through the sockets alone.
const password = "openstack"

func (c *Cloud) login(ctx context.Context) (err error) {
	o := gophercloud.AuthOptions{
		IdentityEndpoint: c.URL + "/identity/v3", Username: "admin", Password: password, DomainName: "Default", AllowReauth: true,
		Scope: &gophercloud.AuthScope{ProjectName: "admin", DomainName: "Default"},
	}
	if c.admin, err = cloud.AuthenticatedClient(ctx, o); err != nil {
		return err
	}
	// The catalog has the addresses in the namespaces.
	at := func(path string) *gophercloud.ServiceClient {
		return &gophercloud.ServiceClient{ProviderClient: c.admin, Endpoint: c.URL + path}
	}
	c.identity, c.compute, c.network = at("/identity/v3/"), at("/compute/v2.1/"), at("/network/")
	c.network.ResourceBase = c.network.Endpoint + "v2.0/"
	// Since then servers have their user data, for administrators. Gophercloud sends the version to clients of a type alone.
	c.compute.Type, c.compute.Microversion = "compute", "2.3"
	return nil
}

// prepare makes the flavor, the image and the external network of the examples, unless another test did so.
func (c *Cloud) prepare(ctx context.Context) error {
	steps := []func(context.Context) error{c.setCatalog, c.addFlavorAndImage, c.addPublicNetwork}
	if there, err := c.find(ctx); err != nil {
		return err
	} else if there {
		steps = steps[:1]
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// find reports whether another test made these, and then finds them.
func (c *Cloud) find(ctx context.Context) (bool, error) {
	pages, err := networks.List(c.network, networks.ListOpts{Name: Public}).AllPages(ctx)
	if err != nil {
		return false, err
	}
	found, err := networks.ExtractNetworks(pages)
	if err != nil || len(found) == 0 {
		return false, err
	}
	c.PublicID = found[0].ID
	if pages, err = images.List(c.image(), images.ListOpts{Name: Image}).AllPages(ctx); err != nil {
		return false, err
	}
	all, err := images.ExtractImages(pages)
	if err != nil || len(all) == 0 {
		return false, err
	}
	c.ImageID = all[0].ID
	return true, nil
}

func (c *Cloud) image() *gophercloud.ServiceClient {
	return &gophercloud.ServiceClient{ProviderClient: c.admin, Endpoint: c.URL + "/image/", ResourceBase: c.URL + "/image/v2/"}
}

// setCatalog lets the public endpoints be those of the gateway.
func (c *Cloud) setCatalog(ctx context.Context) error {
	pages, err := identity.List(c.identity, nil).AllPages(ctx)
	if err != nil {
		return err
	}
	all, err := identity.ExtractServices(pages)
	if err != nil {
		return err
	}
	paths := map[string]string{"identity": "/identity", "compute": "/compute/v2.1", "network": "/network", "image": "/image", "placement": "/placement"}
	for _, s := range all {
		pages, err := endpoints.List(c.identity, endpoints.ListOpts{ServiceID: s.ID, Availability: gophercloud.AvailabilityPublic}).AllPages(ctx)
		if err != nil {
			return err
		}
		found, err := endpoints.ExtractEndpoints(pages)
		if err != nil {
			return err
		}
		for _, e := range found {
			if _, err := endpoints.Update(ctx, c.identity, e.ID, endpoints.UpdateOpts{URL: c.URL + paths[s.Type]}).Extract(); err != nil {
				return err
			}
		}
	}
	return nil
}

// AddFlavor makes a flavor.
func (c *Cloud) AddFlavor(ctx context.Context, name string) error {
	disk := 1
	_, err := flavors.Create(ctx, c.compute, flavors.CreateOpts{Name: name, RAM: 512, VCPUs: 1, Disk: &disk}).Extract()
	return err
}

func (c *Cloud) addFlavorAndImage(ctx context.Context) error {
	if err := c.AddFlavor(ctx, Flavor); err != nil {
		return err
	}
	client := c.image()
	visibility := images.ImageVisibilityPublic
	image, err := images.Create(ctx, client, images.CreateOpts{Name: Image, ContainerFormat: "bare", DiskFormat: "raw", Visibility: &visibility}).Extract()
	if err != nil {
		return err
	}
	c.ImageID = image.ID
	// The fake hypervisor reads nothing of it.
	return imagedata.Upload(ctx, client, image.ID, strings.NewReader("\n\n")).ExtractErr()
}

func (c *Cloud) addPublicNetwork(ctx context.Context) error {
	yes := true
	public, err := networks.Create(ctx, c.network, external.CreateOptsExt{CreateOptsBuilder: networks.CreateOpts{Name: Public}, External: &yes}).Extract()
	if err != nil {
		return err
	}
	c.PublicID = public.ID
	_, err = subnets.Create(ctx, c.network, subnets.CreateOpts{NetworkID: public.ID, Name: Public, CIDR: "203.0.113.0/24", IPVersion: gophercloud.IPv4}).Extract()
	return err
}

// The addresses of the nodes are those that the local cloud has for VMs which ask for one. Each
// project has some of its own, because all guests are in one network: the third numbers begin here, and there are as many.
const (
	firstNumber = 32
	numbers     = 32
)

// addNetwork makes the network of the nodes of a project, and a router that connects it with the external network. Only the
// owner of a network may let its ports have further addresses.
func (c *Cloud) addNetwork(ctx context.Context, p *Project) error {
	c.mu.Lock()
	number := c.networks
	c.networks++
	c.mu.Unlock()
	if number >= numbers {
		return fmt.Errorf("there are addresses for %d projects", numbers)
	}
	nodes, err := networks.Create(ctx, c.network, networks.CreateOpts{Name: Network, TenantID: p.ID}).Extract()
	if err != nil {
		return err
	}
	gateway, prefix := "10.200.255.254", fmt.Sprintf("10.200.%d.", firstNumber+number)
	subnet, err := subnets.Create(ctx, c.network, subnets.CreateOpts{
		NetworkID: nodes.ID, Name: Network, CIDR: "10.200.0.0/16", IPVersion: gophercloud.IPv4, GatewayIP: &gateway, TenantID: p.ID,
		AllocationPools: []subnets.AllocationPool{{Start: prefix + "1", End: prefix + "254"}},
	}).Extract()
	if err != nil {
		return err
	}
	// Neutron gives an address of such a subnet to each port, also to one that asks for another subnet.
	const slaac = "slaac"
	v6 := subnets.CreateOpts{
		NetworkID: nodes.ID, Name: Network + "-v6", CIDR: fmt.Sprintf("2001:db8:%x::/64", 1+number), IPVersion: gophercloud.IPv6, TenantID: p.ID,
		IPv6AddressMode: slaac, IPv6RAMode: slaac,
	}
	if _, err := subnets.Create(ctx, c.network, v6).Extract(); err != nil {
		return err
	}
	router, err := routers.Create(ctx, c.network, routers.CreateOpts{Name: Public, TenantID: p.ID, GatewayInfo: &routers.GatewayInfo{NetworkID: c.PublicID}}).Extract()
	if err != nil {
		return err
	}
	p.NetworkID, p.SubnetID = nodes.ID, subnet.ID
	_, err = routers.AddInterface(ctx, c.network, router.ID, routers.AddInterfaceOpts{SubnetID: subnet.ID}).Extract()
	return err
}

// AddNetwork makes a network of a project that no router reaches, and returns its ID.
func (c *Cloud) AddNetwork(ctx context.Context, p *Project, name, cidr string) (string, error) {
	made, err := networks.Create(ctx, c.network, networks.CreateOpts{Name: name, TenantID: p.ID}).Extract()
	if err != nil {
		return "", err
	}
	_, err = subnets.Create(ctx, c.network, subnets.CreateOpts{NetworkID: made.ID, CIDR: cidr, IPVersion: gophercloud.IPv4, TenantID: p.ID}).Extract()
	return made.ID, err
}

// beforeCall records the deletion of a port or floating IP that a server still uses.
func (c *Cloud) beforeCall(call, id string) {
	switch call {
	case "DELETE /network/v2.0/ports/{id}":
		c.noteTorn("port", id, id)
	case "DELETE /network/v2.0/floatingips/{id}":
		c.noteTorn("floating IP", id, c.portOf(id))
	}
}

// afterCall records the reboots that Nova accepted, and the consoles that it showed. The response to a reboot waits for its end.
func (c *Cloud) afterCall(call, id string, body []byte, r response) {
	if call != "POST /compute/v2.1/servers/{id}/action" {
		return
	}
	var action struct {
		Console *struct{} `json:"os-getConsoleOutput"`
		Reboot  *struct {
			Type string `json:"type"`
		} `json:"reboot"`
	}
	_ = json.Unmarshal(body, &action)
	switch {
	case action.Console != nil && r.status == http.StatusOK:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.consoles[id]++
	case action.Reboot != nil && r.status == http.StatusAccepted:
		done := Reboot{Kind: strings.ToUpper(action.Reboot.Type), Request: r.header.Get("X-Compute-Request-Id"), Statuses: c.awaitTask(id)}
		c.mu.Lock()
		c.reboots[id] = append(c.reboots[id], done)
		c.mu.Unlock()
		if c.OnReboot != nil {
			c.OnReboot(id)
		}
	}
}

// A Reboot that Nova accepted.
type Reboot struct {
	// Kind is SOFT or HARD.
	Kind string
	// Request is the ID that Nova gave to the call.
	Request string
	// Statuses that the server had from then on until Nova had nothing more to do with it.
	Statuses []string
}

// Reboots returns the reboots of a server that Nova accepted, in their order. Each of them is an action of the server in
// Nova's own records, which do not have the kind, and Nova has no other reboot of it.
func (c *Cloud) Reboots(ctx context.Context, id string) ([]Reboot, error) {
	c.mu.Lock()
	accepted := slices.Clone(c.reboots[id])
	c.mu.Unlock()
	recorded, err := c.actions(ctx, id, "reboot")
	if err != nil {
		return nil, err
	}
	var requests []string
	for _, r := range accepted {
		requests = append(requests, r.Request)
	}
	if !slices.Equal(requests, recorded) {
		return nil, fmt.Errorf("the gateway saw the reboots %q of server %s, and Nova recorded %q", requests, id, recorded)
	}
	return accepted, nil
}

// ConsoleReads returns how often Nova showed the console of a server.
func (c *Cloud) ConsoleReads(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.consoles[id]
}

// Torn describes each port and floating IP of a project that was deleted while a server had it.
func (c *Cloud) Torn(p *Project) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.torn[p.ID])
}

func (c *Cloud) noteTorn(kind, id, portID string) {
	ctx := context.Background()
	p, err := c.port(ctx, portID)
	if err != nil || p.DeviceID == "" || c.isGone(ctx, p.DeviceID) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.torn[p.ProjectID] = append(c.torn[p.ProjectID], fmt.Sprintf("%s %s was deleted while server %s had it", kind, id, p.DeviceID))
}
