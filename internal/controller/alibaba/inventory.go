package alibaba

import (
	"context"
	"maps"
	"slices"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
)

// List lists the instances of an installation by their tag, in all zones of the region.
func (a *account) List(ctx context.Context, installation string) ([]inventory.VM, bool, error) {
	all, err := a.describeAll(ctx, withTag(machinev1alpha1.TagInstallation, installation))
	if err != nil {
		return nil, false, err
	}
	var out []inventory.VM
	for _, i := range all {
		out = append(out, i.asListed())
	}
	return out, true, nil
}

// Find returns the instances with the IDs that exist.
func (a *account) Find(ctx context.Context, externalNames []string) ([]inventory.VM, bool, error) {
	var out []inventory.VM
	for ids := range slices.Chunk(slices.Clone(externalNames), maxBatch) {
		found, err := a.describe(ctx, ids)
		if err != nil {
			return nil, false, err
		}
		for _, id := range slices.Sorted(maps.Keys(found)) {
			out = append(out, found[id].asListed())
		}
	}
	return out, true, nil
}

// resourceDisk is the type of a disk in an inventory.
const resourceDisk = "Disk"

// A disk is a cloud disk, as DescribeDisks returns it.
type disk struct {
	DiskId, InstanceId, CreationTime string
	Tags                             tagList
}

// ListResources lists the disks of an installation. ECS gives them the tags of the instance that they were
// created with.
func (a *account) ListResources(ctx context.Context, installation string) ([]inventory.Resource, bool, error) {
	all, err := pages(ctx, a, "DescribeDisks", "cannot list disks", withTag(machinev1alpha1.TagInstallation, installation), func(r struct {
		Disks     struct{ Disk []disk }
		NextToken string
	}) ([]disk, string) {
		return r.Disks.Disk, r.NextToken
	})
	if err != nil {
		return nil, false, err
	}
	var out []inventory.Resource
	for _, d := range all {
		r := inventory.Resource{Type: resourceDisk, ID: d.DiskId, Tags: d.Tags.asMap(), CreatedAt: createdAt(d.CreationTime), AttachedTo: d.InstanceId}
		delete(r.Tags, tagVM)
		out = append(out, r)
	}
	return out, true, nil
}
