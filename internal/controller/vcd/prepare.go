package vcd

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/utils/ptr"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/apis/vcd/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// Prepare validates the spec and its references.
func (a *account) Prepare(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	p := vm.Spec.ForProvider
	if err := validate(p); err != nil {
		return err
	}
	if _, err := a.resolve(ctx, p); err != nil {
		return err
	}
	meta.RemoveAnnotations(vm, v1alpha1.AnnotationCreateTask)
	return nil
}

// validate validates everything that the schema cannot validate without Cloud Director.
func validate(p v1alpha1.VirtualMachineParameters) error {
	for _, k := range slices.Sorted(maps.Keys(p.Metadata)) {
		if !native.IsAttributeName(k) {
			return native.Invalid("metadata", "invalid name %q: must have 1 to 128 letters, digits and ._/-", k)
		}
		if !native.IsAttributeValue(p.Metadata[k]) {
			return native.Invalid("metadata", "invalid value of %s: must be one line of at most 256 characters", k)
		}
	}
	return nil
}

// A domain is the place of a VM: a VDC with its networks and a storage profile.
type domain struct {
	// field that names the VDC.
	field, vdc     string
	networksField  string
	networks       []v1alpha1.Network
	profileField   string
	storageProfile *string
}

// domainOf returns the place of a VM.
func domainOf(p v1alpha1.VirtualMachineParameters) domain {
	out := domain{
		field: "vdc", vdc: ptr.Deref(p.VDC, ""), networksField: "networks", networks: p.Networks,
		profileField: "storageProfile", storageProfile: p.StorageProfile,
	}
	if p.FailureDomain == nil {
		return out
	}
	out.field, out.vdc = "failureDomain", *p.FailureDomain
	i := slices.IndexFunc(p.FailureDomains, func(d v1alpha1.FailureDomain) bool { return d.Name == *p.FailureDomain })
	if i < 0 {
		return out
	}
	d, path := p.FailureDomains[i], fmt.Sprintf("failureDomains[%d].", i)
	if d.VDC != nil {
		out.field, out.vdc = path+"vdc", *d.VDC
	}
	if len(d.Networks) > 0 {
		out.networksField, out.networks = path+"networks", d.Networks
	}
	if d.StorageProfile != nil {
		out.profileField, out.storageProfile = path+"storageProfile", d.StorageProfile
	}
	return out
}

// resolved are the objects of the references in a spec. An empty reference stands for none.
type resolved struct {
	// vdc is the UUID of the VDC, and create the path of the call that creates a VM in it.
	vdc, create                       string
	template                          reference
	storageProfile, sizing, placement *reference
	// diskProfiles are the storage profiles of the data disks.
	diskProfiles []*reference
	networks     []v1alpha1.Network
}

// instantiate is the end of the type of the link by which a VDC offers the creation of standalone VMs.
const instantiate = "vnd.vmware.vcloud.instantiateVmTemplateParams+xml"

// resolve finds the objects of all references in a spec.
func (a *account) resolve(ctx context.Context, p v1alpha1.VirtualMachineParameters) (resolved, error) {
	var out resolved
	release, err := a.refs.Hold(ctx)
	if err != nil {
		return out, err
	}
	defer release()
	d := domainOf(p)
	out.networks = d.networks
	v, err := native.Reference(a.refs, "vdc "+d.vdc, func() (vdc, error) { return a.findVDC(ctx, d.field, d.vdc) })
	if err != nil {
		return out, classify("forProvider."+d.field, err)
	}
	out.vdc = v.uuid()
	i := slices.IndexFunc(v.Links, func(l link) bool { return l.Rel == "add" && strings.HasSuffix(l.Type, instantiate) })
	switch {
	case !v.Enabled:
		return out, native.Invalid(d.field, "%q: this virtual data center is disabled", d.vdc)
	case i < 0:
		return out, &native.Error{Class: fn.ErrorPermissionDenied, What: "forProvider." + d.field, Err: fmt.Errorf("%q: Cloud Director offers the user no creation of VMs in this virtual data center", d.vdc), Refused: true}
	}
	out.create = pathOf(v.Links[i].HREF)
	for i, n := range d.networks {
		if _, err := pick(v.Networks, fmt.Sprintf("%s[%d].name", d.networksField, i), n.Name, d.vdc, "network"); err != nil {
			return out, err
		}
	}
	if out.storageProfile, err = pickOptional(v.StorageProfiles, d.profileField, d.storageProfile, d.vdc, "storage profile"); err != nil {
		return out, err
	}
	for i, disk := range p.DataDisks {
		profile, err := pickOptional(v.StorageProfiles, fmt.Sprintf("dataDisks[%d].storageProfile", i), disk.StorageProfile, d.vdc, "storage profile")
		if err != nil {
			return out, err
		}
		out.diskProfiles = append(out.diskProfiles, profile)
	}
	catalog, name := ptr.Deref(p.Catalog, ""), ptr.Deref(p.Template, "")
	template, err := native.Reference(a.refs, "template "+catalog+"/"+name, func() (machine, error) { return a.findTemplate(ctx, catalog, name) })
	if err != nil {
		return out, classify("forProvider.template", err)
	}
	out.template = template.reference
	if err := fits(p, template); err != nil {
		return out, err
	}
	if p.SizingPolicy == nil && p.PlacementPolicy == nil {
		return out, nil
	}
	policies, err := native.Reference(a.refs, "policies "+out.vdc, func() ([]policy, error) { return a.listPolicies(ctx, out.vdc) })
	if err != nil {
		return out, classify("cannot list the compute policies of the virtual data center", err)
	}
	if out.sizing, err = a.policyOf(policies, "sizingPolicy", p.SizingPolicy, d.vdc, true); err != nil {
		return out, err
	}
	out.placement, err = a.policyOf(policies, "placementPolicy", p.PlacementPolicy, d.vdc, false)
	return out, err
}

// fits returns an error if the disks of a class do not fit those of its template.
func fits(p v1alpha1.VirtualMachineParameters, template machine) error {
	disks := template.Spec.Disks
	if len(disks) == 0 {
		// Some templates do not show their disks.
		return nil
	}
	if size := ptr.Deref(p.SystemDiskSizeGiB, 0) << 10; size > 0 && size < disks[0].SizeMiB {
		return native.Invalid("systemDiskSizeGiB", "invalid value %d: must be at least %d, the size of the template", size>>10, (disks[0].SizeMiB+1023)>>10)
	}
	if len(p.DataDisks) > 0 && len(disks) > 1 {
		return native.Invalid("dataDisks", "must be empty with the template %q, which has %d disks", ptr.Deref(p.Template, ""), len(disks))
	}
	return nil
}

// pick returns the object with a name.
func pick(all []reference, field, name, vdc, kind string) (*reference, error) {
	i := slices.IndexFunc(all, func(r reference) bool { return r.Name == name })
	if i >= 0 {
		return &all[i], nil
	}
	var names []string
	for _, r := range all {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return nil, native.Invalid(field, "%q: the virtual data center %q has no such %s, or the user may not view it: it has %s", name, vdc, kind, orNone(names))
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func pickOptional(all []reference, field string, name *string, vdc, kind string) (*reference, error) {
	if name == nil {
		return nil, nil
	}
	return pick(all, field, *name, vdc, kind)
}

// findVDC returns the VDC with a name.
func (a *account) findVDC(ctx context.Context, field, name string) (vdc, error) {
	found, _, err := query(ctx, a.client, "orgVdc", []filter{{"name", name}}, []string{"name"}, func(r *records) []reference { return r.VDCs }, func(r reference) string { return r.HREF })
	switch {
	case err != nil:
		return vdc{}, err
	case len(found) == 0:
		return vdc{}, native.Invalid(field, "%q: the organization has no such virtual data center, or the user may not view it", name)
	case len(found) > 1:
		return vdc{}, native.Invalid(field, "%q: the organization has %d virtual data centers of this name", name, len(found))
	}
	var out vdc
	err = a.client.do(ctx, request{method: http.MethodGet, path: pathOf(found[0].HREF)}, &out)
	return out, err
}

// findTemplate returns the VM of a template.
func (a *account) findTemplate(ctx context.Context, catalog, name string) (machine, error) {
	found, _, err := query(ctx, a.client, "vAppTemplate", []filter{{"name", name}, {"catalogName", catalog}}, []string{"name", "status"},
		func(r *records) []templateRecord { return r.Templates }, func(r templateRecord) string { return r.HREF })
	switch {
	case err != nil:
		return machine{}, err
	case len(found) == 0:
		return machine{}, native.Invalid("template", "%q: there is no such template in the catalog %q, or the user may not view it", name, catalog)
	case len(found) > 1:
		return machine{}, native.Invalid("template", "%q: the catalog %q has %d templates of this name", name, catalog, len(found))
	case found[0].Status != "RESOLVED" && found[0].Status != "POWERED_OFF":
		return machine{}, native.Invalid("template", "%q: the template has the status %s, and is not ready", name, found[0].Status)
	}
	var out vApp
	if err := a.client.do(ctx, request{method: http.MethodGet, path: pathOf(found[0].HREF)}, &out); err != nil {
		return machine{}, err
	}
	if len(out.VMs) != 1 {
		return machine{}, native.Invalid("template", "%q: the template has %d VMs, it must have one", name, len(out.VMs))
	}
	return out.VMs[0], nil
}

// A policy is a compute policy of a VDC.
type policy struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	IsSizingOnly bool   `json:"isSizingOnly"`
}

// listPolicies returns the compute policies of a VDC.
func (a *account) listPolicies(ctx context.Context, vdc string) ([]policy, error) {
	var out []policy
	for page := 1; page <= maxPages; page++ {
		var answer struct {
			Pages  int      `json:"pageCount"`
			Values []policy `json:"values"`
		}
		err := a.client.do(ctx, request{
			method: http.MethodGet, path: fmt.Sprintf(pathPolicies, url.PathEscape("urn:vcloud:vdc:"+vdc)), json: true,
			query: url.Values{"page": {strconv.Itoa(page)}, "pageSize": {strconv.Itoa(pageSize)}},
		}, &answer)
		if err != nil {
			return nil, err
		}
		out = append(out, answer.Values...)
		if page >= answer.Pages {
			break
		}
	}
	return out, nil
}

// policyOf returns the policy with a name. A VDC may have a sizing policy and a placement policy of the same name.
func (a *account) policyOf(all []policy, field string, name *string, vdc string, sizing bool) (*reference, error) {
	if name == nil {
		return nil, nil
	}
	var refs []reference
	for _, p := range all {
		if p.IsSizingOnly == sizing {
			refs = append(refs, reference{HREF: a.client.api.Base + "/cloudapi/1.0.0/vdcComputePolicies/" + p.ID, Name: p.Name})
		}
	}
	kind := "placement policy"
	if sizing {
		kind = "sizing policy"
	}
	return pick(refs, field, *name, vdc, kind)
}
