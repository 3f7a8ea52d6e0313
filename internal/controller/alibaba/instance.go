package alibaba

import (
	"context"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/internal/native"
)

// tagVM is the tag of an instance with the UID of its managed resource.
const tagVM = "drover-vm"

// An instance is an instance of ECS, as DescribeInstances returns it.
type instance struct {
	InstanceId, HostName, RegionId, ZoneId, ImageId, Status, CreationTime string
	SpotStrategy                                                          string
	OperationLocks                                                        struct{ LockReason []struct{ LockReason string } }
	PublicIpAddress                                                       struct{ IpAddress []string }
	EipAddress                                                            struct{ IpAddress string }
	VpcAttributes                                                         struct {
		PrivateIpAddress struct{ IpAddress []string }
	}
	NetworkInterfaces struct {
		NetworkInterface []struct {
			PrivateIpSets struct {
				PrivateIpSet []struct{ PrivateIpAddress string }
			}
			Ipv6Sets struct {
				Ipv6Set []struct{ Ipv6Address string }
			}
		}
	}
	Tags tagList
}

// A tagList is a list of tags, as the API returns it.
type tagList struct {
	Tag []struct{ TagKey, TagValue string }
}

func (l tagList) asMap() map[string]string {
	out := map[string]string{}
	for _, t := range l.Tag {
		out[t.TagKey] = t.TagValue
	}
	return out
}

// States of instances.
const (
	statusPending  = "Pending"
	statusStarting = "Starting"
	statusRunning  = "Running"
	statusStopping = "Stopping"
	statusStopped  = "Stopped"
)

// lockRecycling is the reason for the lock of a spot instance that ECS takes back.
const lockRecycling = "Recycling"

func (i instance) locks() []string {
	var out []string
	for _, l := range i.OperationLocks.LockReason {
		out = append(out, l.LockReason)
	}
	return out
}

// text returns the state in the words of ECS.
func (i instance) text() string {
	if locks := i.locks(); len(locks) > 0 {
		return i.Status + ", locked: " + strings.Join(locks, ", ")
	}
	return i.Status
}

// stateOf returns the state of an instance. An instance that this provider created is started by ECS. The state
// StateIncomplete means that it was not.
func stateOf(i instance, created, finished bool) native.State {
	switch {
	case slices.Contains(i.locks(), lockRecycling):
		return native.StateFailed
	case i.Status == statusRunning:
		return native.StateRunning
	case i.Status == statusPending, i.Status == statusStarting:
		return native.StateCreating
	case i.Status == statusStopped && created && !finished:
		return native.StateIncomplete
	}
	return native.StateStopped
}

// isChanging reports whether the instance is in a state in which ECS refuses all changes.
func (i instance) isChanging() bool {
	return i.Status == statusPending || i.Status == statusStarting || i.Status == statusStopping
}

// providerID returns the providerID that the cloud-controller-manager of Alibaba Cloud writes.
func (i instance) providerID() string { return i.RegionId + "." + i.InstanceId }

// addresses returns the addresses that ECS assigned to the instance.
func (i instance) addresses() []nativev1alpha1.Address {
	var out []nativev1alpha1.Address
	add := func(kind, text string) {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return
		}
		address := nativev1alpha1.Address{Type: kind, Address: a.String()}
		if !slices.Contains(out, address) {
			out = append(out, address)
		}
	}
	for _, ip := range i.VpcAttributes.PrivateIpAddress.IpAddress {
		add(nativev1alpha1.AddressInternal, ip)
	}
	for _, n := range i.NetworkInterfaces.NetworkInterface {
		for _, p := range n.PrivateIpSets.PrivateIpSet {
			add(nativev1alpha1.AddressInternal, p.PrivateIpAddress)
		}
		for _, v6 := range n.Ipv6Sets.Ipv6Set {
			add(nativev1alpha1.AddressInternal, v6.Ipv6Address)
		}
	}
	for _, ip := range append(slices.Clone(i.PublicIpAddress.IpAddress), i.EipAddress.IpAddress) {
		add(nativev1alpha1.AddressExternal, ip)
	}
	return out
}

// createdAt returns the time of the creation, or the zero time. The API returns it without seconds.
func createdAt(text string) time.Time {
	for _, layout := range []string{"2006-01-02T15:04Z", time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// asListed returns the instance as an inventory lists it.
func (i instance) asListed() inventory.VM {
	vm := inventory.VM{
		ExternalName: i.InstanceId, ProviderID: i.providerID(), Name: i.HostName, Tags: i.Tags.asMap(),
		CreatedAt: createdAt(i.CreationTime), StateText: i.text(),
	}
	delete(vm.Tags, tagVM)
	switch stateOf(i, false, true) {
	case native.StateRunning:
		vm.State = inventory.StateRunning
	case native.StateCreating:
		vm.State = inventory.StatePending
	default:
		vm.State = inventory.StateStopped
	}
	return vm
}

// describe returns the instances with at most maxBatch IDs that exist.
func (a *account) describe(ctx context.Context, ids []string) (map[string]instance, error) {
	slices.Sort(ids)
	b, err := json.Marshal(slices.Compact(ids))
	if err != nil {
		return nil, err
	}
	all, err := a.describeAll(ctx, map[string]string{"InstanceIds": string(b)})
	if err != nil {
		return nil, err
	}
	out := map[string]instance{}
	for _, i := range all {
		out[i.InstanceId] = i
	}
	return out, nil
}

// withTag returns parameters that select resources by a tag.
func withTag(key, value string) map[string]string {
	return map[string]string{"Tag.1.Key": key, "Tag.1.Value": value}
}

// pageSize is the maximum number of entries of a page.
const pageSize = 100

// describeAll returns all pages of instances that the parameters select.
func (a *account) describeAll(ctx context.Context, params map[string]string) ([]instance, error) {
	return pages(ctx, a, "DescribeInstances", "cannot list instances", params, func(r struct {
		Instances struct{ Instance []instance }
		NextToken string
	}) ([]instance, string) {
		return r.Instances.Instance, r.NextToken
	})
}

// pages returns the entries of all pages of a list.
func pages[R, T any](ctx context.Context, a *account, action, what string, params map[string]string, read func(R) ([]T, string)) ([]T, error) {
	params = maps.Clone(params)
	params["MaxResults"] = strconv.Itoa(pageSize)
	var out []T
	for {
		var r R
		if err := a.callRegion(ctx, action, params, &r); err != nil {
			return nil, classify(what, err)
		}
		entries, next := read(r)
		out = append(out, entries...)
		if next == "" {
			return out, nil
		}
		params["NextToken"] = next
	}
}
