package metalstack

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/metalstack/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// Prepare validates the spec and its references.
func (a *account) Prepare(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	p := vm.Spec.ForProvider
	if err := validate(p); err != nil {
		return err
	}
	if err := a.check(ctx, p); err != nil {
		return err
	}
	// The name is that of an allocation that ended before the machine ran. If the response to the next creation is
	// lost, FindLost finds its machine only without a name.
	meta.RemoveAnnotations(vm, meta.AnnotationKeyExternalName)
	return nil
}

// validate validates everything that the schema cannot validate and that needs no call.
func validate(p v1alpha1.VirtualMachineParameters) error {
	for _, k := range slices.Sorted(maps.Keys(p.Tags)) {
		if !native.IsAttributeName(k) {
			return native.Invalid("tags", "invalid key %q: must have 1 to 128 letters, digits and ._/-", k)
		}
		if !native.IsAttributeValue(p.Tags[k]) {
			return native.Invalid("tags", "invalid value of %s: must be one line of at most 256 bytes", k)
		}
	}
	for i, s := range p.DNSServers {
		if _, err := netip.ParseAddr(s); err != nil {
			return native.Invalid(fmt.Sprintf("dnsServers[%d]", i), "invalid value %q: must be an IP address", s)
		}
	}
	if d := domainOf(p); len(d.networks) == 0 {
		return native.Invalid(d.networksField, "must not be empty: it has the private network of the machine")
	}
	return nil
}

// A domain is the place of a machine: a partition with the networks.
type domain struct {
	// field that names the partition.
	field, partition string
	// networksField is the field that names the networks.
	networksField string
	networks      []string
}

// domainOf returns the place of a machine.
func domainOf(p v1alpha1.VirtualMachineParameters) domain {
	out := domain{field: "partition", partition: ptr.Deref(p.Partition, ""), networksField: "networks", networks: p.Networks}
	if p.FailureDomain == nil {
		return out
	}
	out.field, out.partition = "failureDomain", *p.FailureDomain
	i := slices.IndexFunc(p.FailureDomains, func(d v1alpha1.FailureDomain) bool { return d.Name == *p.FailureDomain })
	if i < 0 {
		return out
	}
	d, path := p.FailureDomains[i], fmt.Sprintf("failureDomains[%d].", i)
	if d.Partition != nil {
		out.field, out.partition = path+"partition", *d.Partition
	}
	if len(d.Networks) > 0 {
		out.networksField, out.networks = path+"networks", d.Networks
	}
	return out
}

// Objects of the metal-api.
type (
	partition        struct{}
	size             struct{}
	filesystemLayout struct{}

	image struct {
		ID       string   `json:"id"`
		Features []string `json:"features"`
	}

	network struct {
		Project      string `json:"projectid"`
		Partition    string `json:"partitionid"`
		Parent       string `json:"parentnetworkid"`
		PrivateSuper bool   `json:"privatesuper"`
		Underlay     bool   `json:"underlay"`
		Shared       bool   `json:"shared"`
	}
)

// lookUp returns the object with the ID, or an error that names the field. An object that does not exist is read each
// time, because a user may just have created it.
func lookUp[T any](ctx context.Context, a *account, field, kind, id, suffix string) (*T, error) {
	path := "/v1/" + kind + "/" + url.PathEscape(id) + suffix
	return native.Reference(a.refs, path, func() (*T, error) {
		out := new(T)
		err := a.call(ctx, http.MethodGet, path, nil, out)
		if isNotFound(err) {
			return nil, native.Invalid(field, "invalid value %q: metal-stack has no such %s", id, kind)
		}
		if err != nil {
			return nil, classify("cannot read "+kind+" "+id, err)
		}
		return out, nil
	})
}

// check checks that all references of a spec exist and suit each other.
func (a *account) check(ctx context.Context, p v1alpha1.VirtualMachineParameters) error {
	release, err := a.refs.Hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	d := domainOf(p)
	if _, err := lookUp[partition](ctx, a, d.field, "partition", d.partition, ""); err != nil {
		return err
	}
	if _, err := lookUp[size](ctx, a, "size", "size", ptr.Deref(p.Size, ""), ""); err != nil {
		return err
	}
	// The call with /latest also accepts an image without the last part of the version.
	i, err := lookUp[image](ctx, a, "image", "image", ptr.Deref(p.Image, ""), "/latest")
	if err != nil {
		return err
	}
	if len(i.Features) > 0 && !slices.Contains(i.Features, roleMachine) {
		return native.Invalid("image", "invalid value %q: image %s has the features %q, and must have the feature %s", *p.Image, i.ID, i.Features, roleMachine)
	}
	if p.FilesystemLayout != nil {
		if _, err := lookUp[filesystemLayout](ctx, a, "filesystemLayout", "filesystemlayout", *p.FilesystemLayout, ""); err != nil {
			return err
		}
	}
	return a.checkNetworks(ctx, d)
}

// checkNetworks checks that exactly one of the networks is private, and that it is in the project and the partition.
func (a *account) checkNetworks(ctx context.Context, d domain) error {
	private := ""
	for i, id := range d.networks {
		field := fmt.Sprintf("%s[%d]", d.networksField, i)
		n, err := lookUp[network](ctx, a, field, "network", id, "")
		switch {
		case err != nil:
			return err
		case n.Underlay || n.PrivateSuper:
			return native.Invalid(field, "invalid value %q: a machine cannot be in an underlay network or a private super network", id)
		case n.Parent == "":
			continue
		case private != "":
			return native.Invalid(field, "invalid value %q: a machine is in one private network only, which is %s", id, private)
		case n.Partition != "" && n.Partition != d.partition:
			return native.Invalid(field, "invalid value %q: the private network is in partition %s, and the machine in %s", id, n.Partition, d.partition)
		case n.Project != a.project:
			return native.Invalid(field, "invalid value %q: the private network does not belong to project %s", id, a.project)
		}
		private = id
	}
	if private == "" {
		return native.Invalid(d.networksField, "invalid value %q: one of them must be a private network", d.networks)
	}
	return nil
}
