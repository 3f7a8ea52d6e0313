package yandex

import (
	"context"

	compute "github.com/yandex-cloud/go-genproto/yandex/cloud/compute/v1"
	vpc "github.com/yandex-cloud/go-genproto/yandex/cloud/vpc/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
)

// Types of resources.
const (
	typeDisk    = "Disk"
	typeAddress = "Address"
)

// ListResources lists the disks and reserved addresses that have the label of the
// installation or are in use by one of its Instances. One that has no label and is not in use
// cannot be attributed, and is not listed.
func (l *lister) ListResources(ctx context.Context, installation string) ([]inventory.Resource, bool, error) {
	s, err := l.start(ctx)
	if err != nil {
		return nil, false, err
	}
	defer s.close()
	instances, err := s.instances(ctx)
	if err != nil {
		return nil, false, err
	}
	disks, err := s.disks(ctx)
	if err != nil {
		return nil, false, err
	}
	addresses, err := s.vpcAddresses(ctx)
	if err != nil {
		return nil, false, err
	}
	u := usersOf(instances)
	var out []inventory.Resource
	for _, r := range append(u.disksOf(disks), u.addressesOf(addresses)...) {
		if r.Tags[machinev1alpha1.TagInstallation] == installation {
			out = append(out, r)
		}
	}
	return out, true, nil
}

func (s *session) disks(ctx context.Context) ([]*compute.Disk, error) {
	conn, err := s.service(serviceCompute)
	if err != nil {
		return nil, err
	}
	service := compute.NewDiskServiceClient(conn)
	return all(s, "disks", func(token string) ([]*compute.Disk, string, error) {
		r, err := service.List(s.authorized(ctx), &compute.ListDisksRequest{FolderId: s.lister.folder, PageSize: pageSize, PageToken: token})
		return r.GetDisks(), r.GetNextPageToken(), err
	})
}

func (s *session) vpcAddresses(ctx context.Context) ([]*vpc.Address, error) {
	conn, err := s.service(serviceVPC)
	if err != nil {
		return nil, err
	}
	service := vpc.NewAddressServiceClient(conn)
	return all(s, "addresses", func(token string) ([]*vpc.Address, string, error) {
		r, err := service.List(s.authorized(ctx), &vpc.ListAddressesRequest{FolderId: s.lister.folder, PageSize: pageSize, PageToken: token})
		return r.GetAddresses(), r.GetNextPageToken(), err
	})
}

// users are the Instances, by the IDs and the addresses that they use.
type users struct{ byID, byAddress map[string]*compute.Instance }

func usersOf(instances []*compute.Instance) users {
	u := users{byID: map[string]*compute.Instance{}, byAddress: map[string]*compute.Instance{}}
	for _, i := range instances {
		u.byID[i.GetId()] = i
		for _, n := range i.GetNetworkInterfaces() {
			if a := n.GetPrimaryV4Address().GetOneToOneNat().GetAddress(); a != "" {
				u.byAddress[a] = i
			}
		}
	}
	return u
}

// attach sets the user of a resource. If the resource has no label of Drover, it gets the labels of
// its user.
func attach(r inventory.Resource, user *compute.Instance) inventory.Resource {
	r.AttachedTo = user.GetId()
	if r.Tags[machinev1alpha1.TagInstallation] == "" {
		r.Tags = user.GetLabels()
	}
	return r
}

func (u users) disksOf(disks []*compute.Disk) []inventory.Resource {
	out := make([]inventory.Resource, 0, len(disks))
	for _, d := range disks {
		if d.GetStatus() == compute.Disk_DELETING {
			continue
		}
		r := inventory.Resource{Type: typeDisk, ID: d.GetId(), Tags: d.GetLabels()}
		if created := d.GetCreatedAt(); created != nil {
			r.CreatedAt = created.AsTime()
		}
		for _, id := range d.GetInstanceIds() {
			r.AttachedTo = id
			if user := u.byID[id]; user != nil {
				r = attach(r, user)
			}
		}
		out = append(out, r)
	}
	return out
}

func (u users) addressesOf(addresses []*vpc.Address) []inventory.Resource {
	out := make([]inventory.Resource, 0, len(addresses))
	for _, a := range addresses {
		// An address that is not reserved is gone with its user.
		if !a.GetReserved() {
			continue
		}
		r := inventory.Resource{Type: typeAddress, ID: a.GetId(), Tags: a.GetLabels()}
		if created := a.GetCreatedAt(); created != nil {
			r.CreatedAt = created.AsTime()
		}
		value := a.GetExternalIpv4Address().GetAddress()
		if user := u.byAddress[value]; user != nil {
			r = attach(r, user)
		} else if a.GetUsed() {
			r.AttachedTo = "in use" // The list does not contain the ID of a user that is no Instance.
		}
		out = append(out, r)
	}
	return out
}
