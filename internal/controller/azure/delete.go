package azure

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/azure/v1alpha1"
)

// Delete deletes the VM, and then the resources beside it that Azure did not delete with it. A network interface is deleted
// before its public IP address, which it uses.
func (a *account) Delete(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	v := a.views.Recall(meta.GetExternalName(vm))
	if exists, err := a.deleteVM(ctx, vm); exists || err != nil {
		return err
	}
	for _, kinds := range [][]kind{{kindInterface}, {kindAddress, kindDisk}} {
		parts := slices.DeleteFunc(slices.Clone(v.parts), func(p part) bool { return !slices.Contains(kinds, p.kind) })
		for _, p := range parts {
			if err := a.deletePart(ctx, p); err != nil {
				return err
			}
		}
		if len(parts) > 0 {
			return nil
		}
	}
	return nil
}

// deleteVM deletes the VM of a managed resource, also if it runs, and reports whether it exists. It reads the VM first,
// because the name may be that of another VM by now.
func (a *account) deleteVM(ctx context.Context, vm *v1alpha1.VirtualMachine) (exists bool, err error) {
	m, err := a.own(ctx, vm)
	if err != nil || m == nil {
		return false, err
	}
	n := m.name()
	if m.provisioning() != provisioningDeleting {
		_, err = a.api.vms.BeginDelete(ctx, n.group, n.name, nil)
		if err != nil && !hasStatus(err, http.StatusNotFound) {
			return true, classify("cannot delete the VM", err)
		}
	}
	a.deleting.Add(m.vmID())
	return true, nil
}

func (a *account) deletePart(ctx context.Context, p part) error {
	if p.state == provisioningDeleting {
		return nil
	}
	var err error
	switch p.kind {
	case kindInterface:
		_, err = a.api.interfaces.BeginDelete(ctx, p.group, p.name.name, nil)
	case kindAddress:
		_, err = a.api.addresses.BeginDelete(ctx, p.group, p.name.name, nil)
	case kindDisk:
		_, err = a.api.disks.BeginDelete(ctx, p.group, p.name.name, nil)
	}
	if hasStatus(err, http.StatusNotFound) {
		return nil
	}
	return classify("cannot delete "+string(p.kind)+" "+p.name.name, err)
}

// listedParts returns the resources beside a VM that the lists have. For a VM that is created, they include those whose
// creation was accepted a moment ago; for one that is deleted, they include its disks.
func (a *account) listedParts(ctx context.Context, vm *v1alpha1.VirtualMachine, since time.Time) ([]part, error) {
	externalName, deleted := meta.GetExternalName(vm), meta.WasDeleted(vm)
	planned := plannedParts(vm.Spec.ForProvider, knownVM(vm), externalName)
	interfaces, err := a.listedInterfaces(ctx, since, changingFor)
	if err != nil {
		return nil, err
	}
	var out []part
	add := func(k kind, id *string, tags map[string]*string, state string) {
		n := nameOf(ptr.Deref(id, ""))
		isPlanned := slices.ContainsFunc(planned, func(p part) bool { return p.kind == k && p.is(n) })
		// A disk is deleted by its name: one that is kept has the tag as well.
		if tagOf(tags) == externalName && (isPlanned || k != kindDisk) {
			out = append(out, part{kind: k, name: n, state: strings.ToLower(state)})
		}
	}
	for _, i := range interfaces {
		if i != nil && i.Properties != nil {
			add(kindInterface, i.ID, i.Tags, string(ptr.Deref(i.Properties.ProvisioningState, "")))
		}
	}
	if deleted || slices.ContainsFunc(planned, func(p part) bool { return p.kind == kindAddress }) {
		addresses, err := a.listedAddresses(ctx, since, changingFor)
		if err != nil {
			return nil, err
		}
		for _, i := range addresses {
			if i != nil && i.Properties != nil {
				add(kindAddress, i.ID, i.Tags, string(ptr.Deref(i.Properties.ProvisioningState, "")))
			}
		}
	}
	if !deleted {
		for _, p := range planned {
			isListed := slices.ContainsFunc(out, func(o part) bool { return o.kind == p.kind && o.is(p.name) })
			if !isListed && a.accepted.Has(p.key()) {
				p.state = stateAccepted
				out = append(out, p)
			}
		}
		return out, nil
	}
	disks, err := a.listedDisks(ctx, since, changingFor)
	if err != nil {
		return nil, err
	}
	for _, d := range disks {
		if d != nil && d.Properties != nil {
			add(kindDisk, d.ID, d.Tags, ptr.Deref(d.Properties.ProvisioningState, ""))
		}
	}
	return out, nil
}

// certainParts returns the planned resources beside a VM that exist, each of which it reads.
func (a *account) certainParts(ctx context.Context, vm *v1alpha1.VirtualMachine) ([]part, error) {
	externalName := meta.GetExternalName(vm)
	var out []part
	for _, p := range plannedParts(vm.Spec.ForProvider, knownVM(vm), externalName) {
		if p.group == "" {
			continue
		}
		var tags map[string]*string
		var err error
		switch p.kind {
		case kindInterface:
			found, e := a.api.interfaces.Get(ctx, p.group, p.name.name, nil)
			if err = e; err == nil && found.Properties != nil {
				tags, p.state = found.Tags, strings.ToLower(string(ptr.Deref(found.Properties.ProvisioningState, "")))
			}
		case kindAddress:
			found, e := a.api.addresses.Get(ctx, p.group, p.name.name, nil)
			if err = e; err == nil && found.Properties != nil {
				tags, p.state = found.Tags, strings.ToLower(string(ptr.Deref(found.Properties.ProvisioningState, "")))
			}
		case kindDisk:
			found, e := a.api.disks.Get(ctx, p.group, p.name.name, nil)
			if err = e; err == nil && found.Properties != nil {
				tags, p.state = found.Tags, strings.ToLower(ptr.Deref(found.Properties.ProvisioningState, ""))
			}
		}
		switch {
		case hasStatus(err, http.StatusNotFound):
		case err != nil:
			return nil, classify("cannot read "+string(p.kind)+" "+p.name.name, err)
		case tagOf(tags) == externalName:
			out = append(out, p)
		}
	}
	return out, nil
}
