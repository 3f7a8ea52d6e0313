package azure

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v7"
	"k8s.io/utils/ptr"
)

// Ages of the lists: for VMs that change, for VMs at rest, and for the addresses of VMs at rest.
const changingFor, restingFor, addressesFor = 4 * time.Second, 20 * time.Second, 10 * time.Minute

// A machine is a VM with its power state, such as running. The power state is empty if Azure shows none.
type machine struct {
	*armcompute.VirtualMachine
	power string
}

// listed returns all VMs of the subscription, from lists that were read after since and are not older than age.
func (a *account) listed(ctx context.Context, since time.Time, age time.Duration) ([]machine, error) {
	all, _, err := a.vms.Get(ctx, a.now, since, age, func() ([]machine, bool, error) {
		all, err := a.readVMs(ctx)
		return all, true, err
	})
	return all, err
}

// readVMs reads the models of all VMs, and their power states if one of them is Drover's.
func (a *account) readVMs(ctx context.Context) ([]machine, error) {
	models := map[string]machine{}
	isTagged := false
	err := pages(ctx, a.api.vms.NewListAllPager(nil), func(page armcompute.VirtualMachinesClientListAllResponse) {
		for _, v := range page.Value {
			if v != nil && v.ID != nil {
				models[strings.ToLower(*v.ID)] = machine{VirtualMachine: v}
				isTagged = isTagged || tagOf(v.Tags) != ""
			}
		}
	})
	if err != nil {
		return nil, classify("cannot list the VMs", err)
	}
	if isTagged {
		err = pages(ctx, a.api.vms.NewListAllPager(&armcompute.VirtualMachinesClientListAllOptions{StatusOnly: ptr.To("true")}), func(page armcompute.VirtualMachinesClientListAllResponse) {
			for _, v := range page.Value {
				if v == nil || v.ID == nil {
					continue
				}
				if m, ok := models[strings.ToLower(*v.ID)]; ok {
					m.power = powerOf(v)
					models[strings.ToLower(*v.ID)] = m
				}
			}
		})
		if err != nil {
			return nil, classify("cannot list the states of the VMs", err)
		}
	}
	out := make([]machine, 0, len(models))
	for _, id := range slices.Sorted(maps.Keys(models)) {
		out = append(out, models[id])
	}
	return out, nil
}

// pages calls f for each page of a list.
func pages[T any](ctx context.Context, pager *runtime.Pager[T], f func(T)) error {
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return err
		}
		f(page)
	}
	return nil
}

func (a *account) listedInterfaces(ctx context.Context, since time.Time, age time.Duration) ([]*armnetwork.Interface, error) {
	all, _, err := a.interfaces.Get(ctx, a.now, since, age, func() (out []*armnetwork.Interface, complete bool, err error) {
		err = pages(ctx, a.api.interfaces.NewListAllPager(nil), func(page armnetwork.InterfacesClientListAllResponse) { out = append(out, page.Value...) })
		return out, true, classify("cannot list the network interfaces", err)
	})
	return all, err
}

func (a *account) listedAddresses(ctx context.Context, since time.Time, age time.Duration) ([]*armnetwork.PublicIPAddress, error) {
	all, _, err := a.addresses.Get(ctx, a.now, since, age, func() (out []*armnetwork.PublicIPAddress, complete bool, err error) {
		err = pages(ctx, a.api.addresses.NewListAllPager(nil), func(page armnetwork.PublicIPAddressesClientListAllResponse) { out = append(out, page.Value...) })
		return out, true, classify("cannot list the public IP addresses", err)
	})
	return all, err
}

func (a *account) listedDisks(ctx context.Context, since time.Time, age time.Duration) ([]*armcompute.Disk, error) {
	all, _, err := a.disks.Get(ctx, a.now, since, age, func() (out []*armcompute.Disk, complete bool, err error) {
		err = pages(ctx, a.api.disks.NewListPager(nil), func(page armcompute.DisksClientListResponse) { out = append(out, page.Value...) })
		return out, true, classify("cannot list the disks", err)
	})
	return all, err
}
