package gcp

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
)

const (
	// perPage is the most that the Compute API lists at once.
	perPage = 500
	// pageFields are those of a page of any aggregated list, and vmFields those of a VM.
	pageFields = "nextPageToken,unreachables,warning(code,message),items/*/warning(code,message),"
	vmFields   = "name,zone,labels,status,statusMessage,creationTimestamp"

	// warningEmpty is of a zone without VMs. All other warnings mean that something is missing.
	warningEmpty = "NO_RESULTS_ON_PAGE"
)

// labelValue matches the label values that machine-gcp.yaml writes. No such text needs to be
// escaped in a filter.
var labelValue = regexp.MustCompile(`^[a-z0-9_-]{1,63}$`)

func filterFor(installation string) (string, error) {
	if !labelValue.MatchString(installation) {
		return "", &invalidError{"installation", installation, "1 to 63 lower-case letters, digits, hyphens or underscores"}
	}
	return fmt.Sprintf("labels.%s = %q", machinev1alpha1.TagInstallation, installation), nil
}

// pages records whether the pages of a list are complete.
type pages struct{ incomplete bool }

func (p *pages) note(unreachables []string, warning string) {
	p.incomplete = p.incomplete || len(unreachables) > 0 || isGap(warning)
}

func isGap(warning string) bool { return warning != "" && warning != warningEmpty }

// List lists the VMs of the project, in all zones. A VM that is stopped or was preempted is in the
// list: its disks cost money.
func (p *Project) List(ctx context.Context, installation string) ([]inventory.VM, bool, error) {
	filter, err := filterFor(installation)
	if err != nil {
		return nil, false, err
	}
	vms, complete, err := p.vms(ctx, filter)
	if err != nil || !complete {
		return nil, false, err
	}
	if err := unique(vms); err != nil {
		return nil, false, err
	}
	return vms, true, nil
}

// vmName matches the name of a VM. No such text needs to be escaped in a filter.
var vmName = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

// perFilter is how many names one filter has, so that the URL of the call stays short.
const perFilter = 20

// Find returns the VMs with these names, regardless of their labels, in all zones. Several VMs can
// have one name. A text that cannot be the name of a VM is left out.
func (p *Project) Find(ctx context.Context, externalNames []string) ([]inventory.VM, bool, error) {
	var terms []string
	for _, n := range externalNames {
		if vmName.MatchString(n) {
			terms = append(terms, fmt.Sprintf("(name = %q)", n))
		}
	}
	var all []inventory.VM
	for part := range slices.Chunk(terms, perFilter) {
		vms, complete, err := p.vms(ctx, strings.Join(part, " OR "))
		if err != nil || !complete {
			return nil, false, err
		}
		all = append(all, vms...)
	}
	return all, true, nil
}

// vms returns the VMs that a filter selects.
func (p *Project) vms(ctx context.Context, filter string) ([]inventory.VM, bool, error) {
	l := list{project: p.ID, vms: map[string]inventory.VM{}}
	complete, err := p.Instances(ctx, filter, vmFields, func(i *compute.Instance) {
		if i.Labels[LabelVM] == "" {
			vm := asListed(i, l.project)
			l.vms[vm.ProviderID] = vm
		}
	})
	if err != nil {
		return nil, false, describe(err)
	}
	if !complete {
		return nil, false, nil
	}
	return slices.SortedFunc(maps.Values(l.vms), func(a, b inventory.VM) int { return cmp.Compare(a.ProviderID, b.ProviderID) }), true, nil
}

// list collects the VMs of all pages, by their providerIDs: pages of a list that changes may
// repeat a VM.
type list struct {
	project string
	vms     map[string]inventory.VM
}

// LabelVM is the label of the instances of provider-gcp, which lists them itself.
const LabelVM = "drover-vm"

// Instances calls add with the instances that a filter selects, in all zones, one page after the other. The fields are
// names like those of a partial response, such as "name,labels". The result is false if an instance may be missing. An
// error is that of the SDK.
func (p *Project) Instances(ctx context.Context, filter, fields string, add func(*compute.Instance)) (complete bool, err error) {
	all := pages{}
	call := p.Service.Instances.AggregatedList(p.ID).Filter(filter).MaxResults(perPage).Fields(googleapi.Field(pageFields + "items/*/instances(" + fields + ")"))
	err = call.Pages(ctx, func(page *compute.InstanceAggregatedList) error {
		all.note(page.Unreachables, "")
		if page.Warning != nil {
			all.note(nil, page.Warning.Code)
		}
		for _, scoped := range page.Items {
			if scoped.Warning != nil {
				all.note(nil, scoped.Warning.Code)
			}
			for _, i := range scoped.Instances {
				add(i)
			}
		}
		return nil
	})
	return err == nil && !all.incomplete, err
}

// unique returns an error if two VMs have one name, in two zones. A managed resource has only the
// name: it is not known which VM it claims, and an orphan could be deleted in place of the other
// VM.
func unique(vms []inventory.VM) error {
	ids := make(map[string]string, len(vms))
	for _, vm := range vms {
		if other, ok := ids[vm.ExternalName]; ok {
			return fmt.Errorf("%s and %s have the same name, by which their managed resources find them: nothing is concluded until one of them is deleted or loses its labels", other, vm.ProviderID)
		}
		ids[vm.ExternalName] = vm.ProviderID
	}
	return nil
}

// asListed has the providerID as machine-gcp.yaml and the cloud-controller-manager write it. The
// external name is the VM's name.
func asListed(i *compute.Instance, project string) inventory.VM {
	text := i.Status
	if i.StatusMessage != "" {
		text += ": " + i.StatusMessage
	}
	return inventory.VM{
		ExternalName: i.Name,
		ProviderID:   "gce://" + project + "/" + path.Base(i.Zone) + "/" + i.Name,
		Tags:         i.Labels,
		CreatedAt:    TimeOf(i.CreationTimestamp),
		State:        StateOf(i.Status),
		StateText:    text,
	}
}

// TimeOf is zero if the text is empty or is not understood.
func TimeOf(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

// StateOf returns the state of an instance with a status. It is unknown of a status that is not in the documentation.
func StateOf(status string) inventory.State { return states[status] }

// states: see https://cloud.google.com/compute/docs/instances/instance-lifecycle. A VM that is
// being repaired is started again by Google.
var states = map[string]inventory.State{
	"PENDING":        inventory.StatePending,
	"PROVISIONING":   inventory.StatePending,
	"STAGING":        inventory.StatePending,
	"REPAIRING":      inventory.StatePending,
	"RUNNING":        inventory.StateRunning,
	"PENDING_STOP":   inventory.StateStopped,
	"STOPPING":       inventory.StateStopped,
	"STOPPED":        inventory.StateStopped,
	"SUSPENDING":     inventory.StateStopped,
	"SUSPENDED":      inventory.StateStopped,
	"TERMINATED":     inventory.StateStopped,
	"DEPROVISIONING": inventory.StateStopped,
}
