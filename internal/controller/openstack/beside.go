package openstack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
)

// A port and a floating IP are identified by the description, which is a part of the call that creates
// them. Tags of Neutron are set by a second call, which a provider that dies in between never sends.

// besidePrefix begins the description of a port or floating IP of a Machine. The IDs of the installation
// and the Machine, and the namespace and name of the Machine, follow.
const besidePrefix = "drover "

// tagsIn returns the tags of a Machine that a description has, nil if it is not one of Drover.
func tagsIn(description string) map[string]string {
	parts := strings.Split(description, " ")
	if len(parts) != 4 || !strings.HasPrefix(description, besidePrefix) {
		return nil
	}
	namespace, name, ok := strings.Cut(parts[3], "/")
	if !ok || parts[1] == "" {
		return nil
	}
	return map[string]string{
		machinev1alpha1.TagInstallation: parts[1], machinev1alpha1.TagMachineUID: parts[2],
		machinev1alpha1.TagNamespace: namespace, machinev1alpha1.TagMachine: name,
	}
}

// besideUnknown reports whether a creation of a port or a floating IP that ended with the error may have
// created it. The Terraform provider knows the ID only after a second call, whose error comes from its
// function for waiting.
func besideUnknown(err error) bool {
	return creationUnknown(err) || strings.Contains(err.Error(), "Error waiting for openstack_networking_")
}

var errNoDescription = errors.New("spec.forProvider.description: must not be empty: it identifies the resource if the answer to its creation is lost")

// findPort returns the ID of the oldest port with the name and the description, "" if there is none.
func (p *project) findPort(ctx context.Context, name, description string) (string, error) {
	if description == "" {
		return "", errNoDescription
	}
	found, err := p.ports(ctx, ports.ListOpts{Name: name, Description: description})
	if err != nil {
		return "", err
	}
	isOf := func(f ports.Port) bool { return f.Name == name && f.Description == description }
	return oldest(found, isOf, func(f ports.Port) time.Time { return f.CreatedAt }).ID, nil
}

// findFloatingIP returns the ID of the oldest floating IP with the description, "" if there is none.
func (p *project) findFloatingIP(ctx context.Context, description string) (string, error) {
	if description == "" {
		return "", errNoDescription
	}
	found, err := p.floatingIPs(ctx, floatingips.ListOpts{Description: description})
	if err != nil {
		return "", err
	}
	isOf := func(f floatingips.FloatingIP) bool { return f.Description == description }
	return oldest(found, isOf, func(f floatingips.FloatingIP) time.Time { return f.CreatedAt }).ID, nil
}

func (p *project) ports(ctx context.Context, o ports.ListOpts) ([]ports.Port, error) {
	c, err := p.network()
	if err != nil {
		return nil, err
	}
	pages, err := ports.List(c, o).AllPages(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot list ports: %w", err)
	}
	return ports.ExtractPorts(pages)
}

func (p *project) floatingIPs(ctx context.Context, o floatingips.ListOpts) ([]floatingips.FloatingIP, error) {
	c, err := p.network()
	if err != nil {
		return nil, err
	}
	pages, err := floatingips.List(c, o).AllPages(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot list floating IPs: %w", err)
	}
	return floatingips.ExtractFloatingIPs(pages)
}

// beside returns the ports and floating IPs of the project that Machines have or had. Neutron finds
// descriptions only as a whole, so that both lists are read entirely.
func (p *project) beside(ctx context.Context) ([]inventory.Resource, error) {
	allPorts, err := p.ports(ctx, ports.ListOpts{})
	if err != nil {
		return nil, err
	}
	ips, err := p.floatingIPs(ctx, floatingips.ListOpts{})
	if err != nil {
		return nil, err
	}
	var out []inventory.Resource
	device := map[string]string{}
	for _, port := range allPorts {
		device[port.ID] = port.DeviceID
		if tags := tagsIn(port.Description); tags != nil {
			out = append(out, inventory.Resource{Type: "Port", ID: port.ID, Tags: tags, CreatedAt: port.CreatedAt, AttachedTo: port.DeviceID})
		}
	}
	for _, ip := range ips {
		tags := tagsIn(ip.Description)
		if tags == nil {
			continue
		}
		// A floating IP that leads to a port without an instance is of no use.
		to, known := device[ip.PortID]
		if !known {
			to = ip.PortID
		}
		out = append(out, inventory.Resource{Type: "FloatingIP", ID: ip.ID, Tags: tags, CreatedAt: ip.CreatedAt, AttachedTo: to})
	}
	return out, nil
}

// ListResources lists the ports and floating IPs of the Machines of an installation.
func (l lister) ListResources(ctx context.Context, installation string) ([]inventory.Resource, bool, error) {
	all, err := l.project.beside(ctx)
	if err != nil {
		return nil, false, err
	}
	var out []inventory.Resource
	for _, r := range all {
		if r.Tags[machinev1alpha1.TagInstallation] == installation {
			out = append(out, r)
		}
	}
	return out, true, nil
}
