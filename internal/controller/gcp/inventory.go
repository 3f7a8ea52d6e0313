package gcp

import (
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/api/compute/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	cloudgcp "github.com/drover-dev/drover/internal/cloud/gcp"
	"github.com/drover-dev/drover/internal/inventory"
)

const (
	// labelVM is the label of an instance with the UID of its managed resource.
	labelVM = cloudgcp.LabelVM
	// fields of an instance in a list. The metadata, which has the user data, is not among them.
	fields = "name,id,zone,labels,status,statusMessage,creationTimestamp,machineType,hostname,scheduling(provisioningModel)," +
		"networkInterfaces(networkIP,ipv6Address,accessConfigs(natIP),ipv6AccessConfigs(externalIpv6))"
	// perFilter is the number of external names in one filter, so that the URL of the call is short.
	perFilter = 20
)

// Ages of a list of the instances, which all VMs of the account share: of VMs that change, and of VMs at rest.
const changingFor, restingFor = 2 * time.Second, 20 * time.Second

// listed returns all instances with the label, from a list that was read after since and is not older than age. The
// second value is false if one may be missing.
func (a *account) listed(ctx context.Context, since time.Time, age time.Duration) ([]*compute.Instance, bool, error) {
	p, err := a.project(ctx)
	if err != nil {
		return nil, false, err
	}
	return a.vms.Get(ctx, a.now, since, age, func() ([]*compute.Instance, bool, error) {
		return read(ctx, p, "labels."+labelVM+":*")
	})
}

// read returns the instances that a filter selects, by their numbers: pages of a list that changes may repeat one.
func read(ctx context.Context, p *cloudgcp.Project, filter string) ([]*compute.Instance, bool, error) {
	found := map[uint64]*compute.Instance{}
	complete, err := p.Instances(ctx, filter, fields, func(i *compute.Instance) { found[i.Id] = i })
	if err != nil {
		return nil, false, classify("cannot list the instances", err)
	}
	out := make([]*compute.Instance, 0, len(found))
	for _, id := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[id])
	}
	return out, complete, nil
}

// List lists the instances of an installation by their label, in all zones.
func (a *account) List(ctx context.Context, installation string) ([]inventory.VM, bool, error) {
	all, complete, err := a.listed(ctx, time.Time{}, changingFor)
	if err != nil {
		return nil, false, err
	}
	var out []inventory.VM
	for _, i := range all {
		if i.Labels[machinev1alpha1.TagInstallation] == installation {
			out = append(out, a.asListed(i))
		}
	}
	return out, complete, nil
}

var isLabelValue = regexp.MustCompile(`^[a-z0-9_-]{1,63}$`)

// Find returns the instances with the external names. A text that no label can have is left out.
func (a *account) Find(ctx context.Context, externalNames []string) ([]inventory.VM, bool, error) {
	p, err := a.project(ctx)
	if err != nil {
		return nil, false, err
	}
	var terms []string
	for _, n := range externalNames {
		if isLabelValue.MatchString(n) {
			terms = append(terms, fmt.Sprintf("(labels.%s = %q)", labelVM, n))
		}
	}
	var out []inventory.VM
	complete := true
	for part := range slices.Chunk(terms, perFilter) {
		found, all, err := read(ctx, p, strings.Join(part, " OR "))
		if err != nil {
			return nil, false, err
		}
		complete = complete && all
		for _, i := range found {
			out = append(out, a.asListed(i))
		}
	}
	return out, complete, nil
}

// ListResources lists the disks and the addresses of an installation. The provider gives new disks the labels of their
// instance.
func (a *account) ListResources(ctx context.Context, installation string) ([]inventory.Resource, bool, error) {
	p, err := a.project(ctx)
	if err != nil {
		return nil, false, err
	}
	out, complete, err := p.ListResources(ctx, installation)
	if err != nil {
		return nil, false, classify("cannot list the disks and addresses", err)
	}
	for _, r := range out {
		delete(r.Tags, labelVM)
	}
	return out, complete, nil
}

// asListed returns an instance as an inventory lists it.
func (a *account) asListed(i *compute.Instance) inventory.VM {
	vm := inventory.VM{
		ExternalName: i.Labels[labelVM], ProviderID: a.providerID(i), Name: i.Name, Tags: maps.Clone(i.Labels),
		CreatedAt: cloudgcp.TimeOf(i.CreationTimestamp), State: cloudgcp.StateOf(i.Status), StateText: textOf(i),
	}
	delete(vm.Tags, labelVM)
	return vm
}

// providerID returns the providerID that the cloud-controller-manager of Google Cloud writes.
func (a *account) providerID(i *compute.Instance) string {
	return "gce://" + a.id + "/" + path.Base(i.Zone) + "/" + i.Name
}
