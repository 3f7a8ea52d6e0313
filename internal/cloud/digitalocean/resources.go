package digitalocean

import (
	"context"
	"strconv"

	"github.com/digitalocean/godo"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
)

// ListResources lists the volumes that have the tag of the installation or are attached to
// one of its Droplets, and the reserved IPs that are assigned to one of its Droplets. A
// reserved IP has no tags: one that is assigned to nothing cannot be attributed, and is not
// listed. Neither list has a filter for tags, so that each reads the whole account.
func (l *lister) ListResources(ctx context.Context, installation string) ([]inventory.Resource, bool, error) {
	droplets, complete, err := l.droplets(ctx, installation)
	if err != nil || !complete {
		return nil, false, err
	}
	tags := map[int]map[string]string{}
	for _, d := range droplets {
		tags[d.ID] = tagsOf(d.Tags)
	}
	volumes, complete, err := all(ctx, "volumes", func(v godo.Volume) string { return v.ID },
		func(ctx context.Context, page *godo.ListOptions) ([]godo.Volume, *godo.Response, error) {
			return l.client.Storage.ListVolumes(ctx, &godo.ListVolumeParams{ListOptions: page})
		})
	if err != nil || !complete {
		return nil, false, err
	}
	ips, complete, err := all(ctx, "reserved IPs", func(ip godo.ReservedIP) string { return ip.IP }, l.client.ReservedIPs.List)
	if err != nil || !complete {
		return nil, false, err
	}
	return append(volumesOf(volumes, installation, tags), reservedIPsOf(ips, tags)...), true, nil
}

func volumesOf(volumes []godo.Volume, installation string, dropletTags map[int]map[string]string) []inventory.Resource {
	var out []inventory.Resource
	for _, v := range volumes {
		r := inventory.Resource{Type: typeVolume, ID: v.ID, Tags: tagsOf(v.Tags), CreatedAt: v.CreatedAt}
		for _, id := range v.DropletIDs {
			r.AttachedTo = strconv.Itoa(id)
			if tags, ok := dropletTags[id]; ok && r.Tags[machinev1alpha1.TagInstallation] == "" {
				r.Tags = tags
			}
		}
		if r.Tags[machinev1alpha1.TagInstallation] == installation {
			out = append(out, r)
		}
	}
	return out
}

func reservedIPsOf(ips []godo.ReservedIP, dropletTags map[int]map[string]string) []inventory.Resource {
	var out []inventory.Resource
	for _, ip := range ips {
		if ip.Droplet == nil {
			continue
		}
		if tags, ok := dropletTags[ip.Droplet.ID]; ok {
			out = append(out, inventory.Resource{Type: typeReservedIP, ID: ip.IP, Tags: tags, AttachedTo: strconv.Itoa(ip.Droplet.ID)})
		}
	}
	return out
}
