package gcp

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"time"

	"google.golang.org/api/compute/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
)

const (
	// perPage is the most that the Compute API lists at once.
	perPage = 500
	// pageFields are those of a page of any aggregated list, and vmFields those of its VMs.
	pageFields = "nextPageToken,unreachables,warning(code,message),items/*/warning(code,message),"
	vmFields   = "items/*/instances(name,zone,labels,status,statusMessage,creationTimestamp)"

	// warningEmpty is of a zone without VMs. All other warnings mean that something is missing.
	warningEmpty = "NO_RESULTS_ON_PAGE"
)

// labelValue matches what machine-gcp.yaml makes of the value of a label. No such text needs to
// be escaped in a filter.
var labelValue = regexp.MustCompile(`^[a-z0-9_-]{1,63}$`)

func filterFor(installation string) (string, error) {
	if !labelValue.MatchString(installation) {
		return "", &invalidError{"installation", installation, "1 to 63 lower-case letters, digits, hyphens or underscores"}
	}
	return fmt.Sprintf("labels.%s = %q", machinev1alpha1.TagInstallation, installation), nil
}

// pages notes whether the pages of a list are all that there is.
type pages struct{ incomplete bool }

func (p *pages) note(unreachables []string, warning string) {
	p.incomplete = p.incomplete || len(unreachables) > 0 || isGap(warning)
}

func isGap(warning string) bool { return warning != "" && warning != warningEmpty }

// List the VMs of the project, in all zones. A VM that is stopped or was preempted is in the
// list: its disks cost money.
func (p *project) List(ctx context.Context, installation string) ([]inventory.VM, bool, error) {
	filter, err := filterFor(installation)
	if err != nil {
		return nil, false, err
	}
	l := list{project: p.id, zones: map[string]string{}}
	call := p.service.Instances.AggregatedList(p.id).Filter(filter).MaxResults(perPage).Fields(pageFields + vmFields)
	if err := call.Pages(ctx, l.addPage); err != nil {
		return nil, false, describe(err)
	}
	if l.incomplete {
		return nil, false, nil
	}
	return l.vms, true, nil
}

// list collects the VMs of all pages.
type list struct {
	pages
	project string
	vms     []inventory.VM
	zones   map[string]string // by the name of a VM
}

func (l *list) addPage(page *compute.InstanceAggregatedList) error {
	l.note(page.Unreachables, "")
	if page.Warning != nil {
		l.note(nil, page.Warning.Code)
	}
	for _, scoped := range page.Items {
		if scoped.Warning != nil {
			l.note(nil, scoped.Warning.Code)
		}
		for _, i := range scoped.Instances {
			if err := l.add(i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *list) add(i *compute.Instance) error {
	zone := path.Base(i.Zone)
	switch other := l.zones[i.Name]; other {
	case "":
		l.zones[i.Name] = zone
		l.vms = append(l.vms, asListed(i, l.project, zone))
	case zone: // Pages of a list that changes may repeat a VM.
	default:
		return fmt.Errorf("the zones %s and %s both have a VM %s, by which name its managed resource finds it: nothing is concluded until one of them is deleted or loses its labels", min(other, zone), max(other, zone), i.Name)
	}
	return nil
}

// asListed has the providerID as machine-gcp.yaml and the cloud-controller-manager write it. The
// external name is the VM's name.
func asListed(i *compute.Instance, project, zone string) inventory.VM {
	text := i.Status
	if i.StatusMessage != "" {
		text += ": " + i.StatusMessage
	}
	return inventory.VM{
		ExternalName: i.Name,
		ProviderID:   "gce://" + project + "/" + zone + "/" + i.Name,
		Tags:         i.Labels,
		CreatedAt:    timeOf(i.CreationTimestamp),
		State:        states[i.Status],
		StateText:    text,
	}
}

// timeOf is zero if the text is empty or is not understood.
func timeOf(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

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
