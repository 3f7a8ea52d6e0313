package azure

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v7"
	networkfake "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v7/fake"
)

// pagesOf returns the pages of a list, of which an empty one has one.
func pagesOf[T any](all []T, size int) iter.Seq[[]T] {
	if len(all) == 0 {
		return slices.Values([][]T{{}})
	}
	return slices.Chunk(all, size)
}

// other returns a resource beside VMs, or nil if there is none.
func (c *Cloud) other(typ, group, name string) *other {
	o := c.others[c.idOf(typ, group, name)]
	if o == nil || !o.removedAt.IsZero() {
		return nil
	}
	return o
}

// listed returns the resources of a type that lists show.
func (c *Cloud) listed(typ string, visible func(group string) bool) []*other {
	var out []*other
	for _, id := range slices.Sorted(maps.Keys(c.others)) {
		if o := c.others[id]; o.typ == typ && c.isListed(o.createdAt) && visible(o.group) {
			out = append(out, o)
		}
	}
	return out
}

func (o *other) provisioning() string {
	switch {
	case !o.goneAt.IsZero():
		return "Deleting"
	case time.Now().Before(o.readyAt):
		return "Updating"
	}
	return "Succeeded"
}

// inUse has the code for a resource that is in use.
var inUse = map[string]string{typeInterface: "NicInUse", typeAddress: "PublicIPAddressCannotBeDeleted", typeDisk: "OperationNotAllowed"}

// deleteOther begins to delete a resource beside VMs.
func (c *Cloud) deleteOther(typ, group, name string) (status int, r *refusal) {
	o := c.other(typ, group, name)
	switch {
	case o == nil:
		return http.StatusNoContent, nil
	case o.user != "":
		return 0, refuse(http.StatusBadRequest, inUse[typ], "Resource %s is in use by %s.", c.fullID(typ, group, name), o.user)
	case o.goneAt.IsZero():
		o.goneAt = time.Now().Add(c.opts.Step / 2)
	}
	return http.StatusAccepted, nil
}

// add adds a resource, or replaces one that a repeated request creates.
func (c *Cloud) add(o *other) (*other, *refusal) {
	id := c.idOf(o.typ, o.group, o.name)
	if old := c.other(o.typ, o.group, o.name); old != nil {
		if !old.goneAt.IsZero() {
			return nil, refuse(http.StatusConflict, "AnotherOperationInProgress", "Another operation on this or dependent resource is in progress.")
		}
		old.tags, old.nic, old.address = o.tags, o.nic, o.address
		return old, nil
	}
	c.addrs++
	now := time.Now()
	o.createdAt, o.readyAt = now, now.Add(c.opts.NetworkStep)
	o.ip = fmt.Sprintf("10.1.%d.%d", c.addrs/250, c.addrs%250+4)
	if o.typ == typeAddress {
		o.ip = fmt.Sprintf("203.0.113.%d", c.addrs%250+4)
	}
	o.own = o.ip
	c.others[id] = o
	return o, nil
}

// interfacesOf returns Microsoft's fake server of network interfaces.
func (c *Cloud) interfacesOf(visible func(group string) bool) *networkfake.InterfacesServer {
	return &networkfake.InterfacesServer{
		BeginCreateOrUpdate: func(_ context.Context, group, name string, model armnetwork.Interface, _ *armnetwork.InterfacesClientBeginCreateOrUpdateOptions) (resp azfake.PollerResponder[armnetwork.InterfacesClientCreateOrUpdateResponse], failed azfake.ErrorResponder) {
			addresses, r := c.checkInterface(c.idOf(typeInterface, group, name), model)
			var o *other
			if r == nil {
				o, r = c.add(&other{typ: typeInterface, group: group, name: name, tags: model.Tags, nic: &model})
			}
			if r != nil {
				failed.SetError(r)
				return resp, failed
			}
			for a, deleted := range addresses {
				a.user, a.deleted = c.idOf(typeInterface, group, name), deleted
			}
			resp.SetTerminalResponse(http.StatusCreated, armnetwork.InterfacesClientCreateOrUpdateResponse{Interface: c.interfaceView(o)}, nil)
			return resp, failed
		},
		BeginDelete: func(_ context.Context, group, name string, _ *armnetwork.InterfacesClientBeginDeleteOptions) (resp azfake.PollerResponder[armnetwork.InterfacesClientDeleteResponse], failed azfake.ErrorResponder) {
			status, r := c.deleteOther(typeInterface, group, name)
			if r != nil {
				failed.SetError(r)
				return resp, failed
			}
			resp.SetTerminalResponse(status, armnetwork.InterfacesClientDeleteResponse{}, nil)
			return resp, failed
		},
		Get: func(_ context.Context, group, name string, _ *armnetwork.InterfacesClientGetOptions) (resp azfake.Responder[armnetwork.InterfacesClientGetResponse], failed azfake.ErrorResponder) {
			o := c.other(typeInterface, group, name)
			if o == nil {
				failed.SetError(notFound(typeInterface, group, name))
				return resp, failed
			}
			resp.SetResponse(http.StatusOK, armnetwork.InterfacesClientGetResponse{Interface: c.interfaceView(o)}, nil)
			return resp, failed
		},
		NewListAllPager: func(*armnetwork.InterfacesClientListAllOptions) (resp azfake.PagerResponder[armnetwork.InterfacesClientListAllResponse]) {
			var all []*armnetwork.Interface
			for _, o := range c.listed(typeInterface, visible) {
				all = append(all, ptrTo(c.interfaceView(o)))
			}
			for page := range pagesOf(all, c.opts.PageSize) {
				resp.AddPage(http.StatusOK, armnetwork.InterfacesClientListAllResponse{InterfaceListResult: armnetwork.InterfaceListResult{Value: page}}, nil)
			}
			return resp
		},
	}
}

// checkInterface validates a network interface. It returns its public IP addresses, and whether each is deleted with it.
func (c *Cloud) checkInterface(id string, model armnetwork.Interface) (map[*other]bool, *refusal) {
	addresses := map[*other]bool{}
	if model.Properties == nil || len(model.Properties.IPConfigurations) == 0 {
		return nil, refuse(http.StatusBadRequest, "NetworkInterfaceMustHaveIpConfigurations", "Network Interface %s must have one or more IpConfigurations.", id)
	}
	for _, i := range model.Properties.IPConfigurations {
		if i.Properties == nil || i.Properties.Subnet == nil {
			return nil, refuse(http.StatusBadRequest, "InvalidRequestFormat", "An IP configuration of %s has no subnet.", id)
		}
		if subnet := deref(i.Properties.Subnet.ID); subnet != c.Subnet("nodes") && subnet != c.Subnet("other") {
			return nil, refuse(http.StatusBadRequest, "InvalidResourceReference", "Resource %s referenced by resource %s was not found. Please make sure that the referenced resource exists, and that both resources are in the same region.", subnet, id)
		}
		if i.Properties.PublicIPAddress == nil {
			continue
		}
		at := deref(i.Properties.PublicIPAddress.ID)
		a := c.others[strings.ToLower(at)]
		switch {
		case a == nil || !a.removedAt.IsZero():
			return nil, refuse(http.StatusBadRequest, "InvalidResourceReference", "Resource %s referenced by resource %s was not found.", at, id)
		case a.user != "" && a.user != id:
			return nil, refuse(http.StatusBadRequest, "PublicIPAddressInUse", "Resource %s is referencing public IP address %s that is already allocated to resource %s.", id, at, a.user)
		case time.Now().Before(a.readyAt):
			return nil, refuse(http.StatusConflict, "ReferencedResourceNotProvisioned", "Cannot proceed with operation because resource %s used by resource %s is not in Succeeded state.", at, id)
		}
		p := i.Properties.PublicIPAddress.Properties
		addresses[a] = p != nil && deref(p.DeleteOption) == armnetwork.DeleteOptionsDelete
	}
	return addresses, nil
}

// interfaceView returns a network interface as Azure shows it.
func (c *Cloud) interfaceView(o *other) armnetwork.Interface {
	out := deref(o.nic)
	p := deref(out.Properties)
	p.ProvisioningState = ptrTo(armnetwork.ProvisioningState(o.provisioning()))
	if strings.Contains(o.user, "/virtualmachines/") {
		p.VirtualMachine = &armnetwork.SubResource{ID: ptrTo(o.user)}
	}
	list := p.IPConfigurations
	p.IPConfigurations = nil
	for n, i := range list {
		properties := deref(i.Properties)
		address := o.ip
		if deref(properties.PrivateIPAddressVersion) == armnetwork.IPVersionIPv6 {
			address = fmt.Sprintf("fd00::%x", len(o.name)+n)
		} else if n > 0 {
			address = strings.Replace(o.own, "10.1.", fmt.Sprintf("10.%d.", n+1), 1)
		}
		properties.PrivateIPAddress = &address
		p.IPConfigurations = append(p.IPConfigurations, &armnetwork.InterfaceIPConfiguration{Name: i.Name, Properties: &properties})
	}
	out.Properties = &p
	out.ID, out.Name, out.Type = ptrTo(c.fullID(typeInterface, o.group, o.name)), ptrTo(o.name), ptrTo(typeInterface)
	return out
}

// addressesOf returns Microsoft's fake server of public IP addresses.
func (c *Cloud) addressesOf(visible func(group string) bool) *networkfake.PublicIPAddressesServer {
	return &networkfake.PublicIPAddressesServer{
		BeginCreateOrUpdate: func(_ context.Context, group, name string, model armnetwork.PublicIPAddress, _ *armnetwork.PublicIPAddressesClientBeginCreateOrUpdateOptions) (resp azfake.PollerResponder[armnetwork.PublicIPAddressesClientCreateOrUpdateResponse], failed azfake.ErrorResponder) {
			o, r := c.add(&other{typ: typeAddress, group: group, name: name, tags: model.Tags, address: &model})
			if r != nil {
				failed.SetError(r)
				return resp, failed
			}
			resp.SetTerminalResponse(http.StatusCreated, armnetwork.PublicIPAddressesClientCreateOrUpdateResponse{PublicIPAddress: c.addressView(o)}, nil)
			return resp, failed
		},
		BeginDelete: func(_ context.Context, group, name string, _ *armnetwork.PublicIPAddressesClientBeginDeleteOptions) (resp azfake.PollerResponder[armnetwork.PublicIPAddressesClientDeleteResponse], failed azfake.ErrorResponder) {
			status, r := c.deleteOther(typeAddress, group, name)
			if r != nil {
				failed.SetError(r)
				return resp, failed
			}
			resp.SetTerminalResponse(status, armnetwork.PublicIPAddressesClientDeleteResponse{}, nil)
			return resp, failed
		},
		Get: func(_ context.Context, group, name string, _ *armnetwork.PublicIPAddressesClientGetOptions) (resp azfake.Responder[armnetwork.PublicIPAddressesClientGetResponse], failed azfake.ErrorResponder) {
			o := c.other(typeAddress, group, name)
			if o == nil {
				failed.SetError(notFound(typeAddress, group, name))
				return resp, failed
			}
			resp.SetResponse(http.StatusOK, armnetwork.PublicIPAddressesClientGetResponse{PublicIPAddress: c.addressView(o)}, nil)
			return resp, failed
		},
		NewListAllPager: func(*armnetwork.PublicIPAddressesClientListAllOptions) (resp azfake.PagerResponder[armnetwork.PublicIPAddressesClientListAllResponse]) {
			var all []*armnetwork.PublicIPAddress
			for _, o := range c.listed(typeAddress, visible) {
				all = append(all, ptrTo(c.addressView(o)))
			}
			for page := range pagesOf(all, c.opts.PageSize) {
				resp.AddPage(http.StatusOK, armnetwork.PublicIPAddressesClientListAllResponse{PublicIPAddressListResult: armnetwork.PublicIPAddressListResult{Value: page}}, nil)
			}
			return resp
		},
	}
}

// addressView returns a public IP address as Azure shows it.
func (c *Cloud) addressView(o *other) armnetwork.PublicIPAddress {
	out := deref(o.address)
	p := deref(out.Properties)
	p.ProvisioningState, p.IPAddress = ptrTo(armnetwork.ProvisioningState(o.provisioning())), ptrTo(o.ip)
	out.Properties = &p
	out.ID, out.Name, out.Type = ptrTo(c.fullID(typeAddress, o.group, o.name)), ptrTo(o.name), ptrTo(typeAddress)
	return out
}
