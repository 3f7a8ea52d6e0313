package metalstack

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/metalstack/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// A request is the request for the allocation of a machine.
type request struct {
	Partition        string           `json:"partitionid"`
	Project          string           `json:"projectid"`
	Size             string           `json:"sizeid"`
	Image            string           `json:"imageid"`
	Name             string           `json:"name"`
	Hostname         string           `json:"hostname"`
	Description      string           `json:"description,omitempty"`
	Networks         []requestNetwork `json:"networks"`
	SSHKeys          []string         `json:"ssh_pub_keys"`
	Tags             []string         `json:"tags"`
	PlacementTags    []string         `json:"placement_tags,omitempty"`
	FilesystemLayout *string          `json:"filesystemlayoutid,omitempty"`
	DNSServers       []dnsServer      `json:"dns_servers,omitempty"`
	NTPServers       []ntpServer      `json:"ntp_servers,omitempty"`
	UserData         string           `json:"user_data,omitempty"`
}

type requestNetwork struct {
	ID   string `json:"networkid"`
	Auto bool   `json:"autoacquire"`
}

type dnsServer struct {
	IP string `json:"ip"`
}

type ntpServer struct {
	Address string `json:"address"`
}

// requestOf returns the request for the allocation of a machine. The metal-api passes the user data to the machine
// unchanged.
func requestOf(p v1alpha1.VirtualMachineParameters, project, uid, userData string) request {
	d := domainOf(p)
	out := request{
		Partition: d.partition, Project: project, Size: ptr.Deref(p.Size, ""), Image: ptr.Deref(p.Image, ""),
		Name: ptr.Deref(p.Name, ""), Hostname: ptr.Deref(p.Name, ""), Description: ptr.Deref(p.Description, ""),
		SSHKeys: slices.Concat([]string{}, p.SSHKeys), Tags: []string{tagVM + "=" + uid}, PlacementTags: p.PlacementTags,
		FilesystemLayout: p.FilesystemLayout, UserData: userData,
	}
	for _, n := range d.networks {
		out.Networks = append(out.Networks, requestNetwork{ID: n, Auto: true})
	}
	for _, k := range slices.Sorted(maps.Keys(p.Tags)) {
		if k != tagVM {
			out.Tags = append(out.Tags, k+"="+p.Tags[k])
		}
	}
	for _, s := range p.DNSServers {
		out.DNSServers = append(out.DNSServers, dnsServer{IP: s})
	}
	for _, s := range p.NTPServers {
		out.NTPServers = append(out.NTPServers, ntpServer{Address: s})
	}
	return out
}

// Create allocates a machine.
func (a *account) Create(ctx context.Context, vm *v1alpha1.VirtualMachine, userData native.UserData) error {
	data, err := userData(ctx)
	if err != nil {
		return err
	}
	body := requestOf(vm.Spec.ForProvider, a.project, string(vm.GetUID()), data)
	var m machine
	if err := a.call(ctx, http.MethodPost, "/v1/machine/allocate", body, &m); err != nil {
		return classify("cannot allocate a machine", err)
	}
	if m.ID == "" || !m.isIn(a.project) || !slices.Contains(m.Tags, body.Tags[0]) {
		// The search by tag decides.
		return errors.New("the response to the allocation has another machine")
	}
	meta.SetExternalName(vm, m.externalName())
	return nil
}
