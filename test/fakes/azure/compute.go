package azure

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	computefake "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7/fake"
	"github.com/google/uuid"
)

// A refusal is an error response.
type refusal struct {
	status        int
	code, message string
}

func (r *refusal) Error() string { return r.code + ": " + r.message }

func refuse(status int, code, format string, args ...any) *refusal {
	return &refusal{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

func notFound(typ, group, name string) *refusal {
	return refuse(http.StatusNotFound, "ResourceNotFound", "The Resource '%s/%s' under resource group '%s' was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix", typ, name, group)
}

func (v *vm) userData() []byte {
	if v.model.Properties == nil || v.model.Properties.OSProfile == nil {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(deref(v.model.Properties.OSProfile.CustomData))
	if err != nil {
		return nil
	}
	return data
}

// Sizes of VMs that exist.
var sizes = []string{"Standard_D2s_v5", "Standard_D4s_v5", "Standard_D8s_v5", "Standard_E4s_v5", "Standard_D4ps_v5"}

// images that exist, by publisher and offer.
var images = []string{"Canonical/ubuntu-24_04-lts", "Canonical/0001-com-ubuntu-server-jammy"}

// maxCustomData is the maximum size of custom data in bytes.
const maxCustomData = 65535

// computeOf returns Microsoft's fake server of VMs, with the calls of the fake. The lock is held during a call. The body of
// a creation is that of the request.
func (c *Cloud) computeOf(host string, visible func(group string) bool, body []byte) *computefake.VirtualMachinesServer {
	return &computefake.VirtualMachinesServer{
		BeginCreateOrUpdate: func(_ context.Context, group, name string, model armcompute.VirtualMachine, o *armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions) (resp azfake.PollerResponder[armcompute.VirtualMachinesClientCreateOrUpdateResponse], failed azfake.ErrorResponder) {
			v, r := c.createVM(group, name, model, o != nil && deref(o.IfNoneMatch) == "*", body)
			if r != nil {
				failed.SetError(r)
				return resp, failed
			}
			resp.SetTerminalResponse(http.StatusCreated, armcompute.VirtualMachinesClientCreateOrUpdateResponse{VirtualMachine: c.view(v, false)}, nil)
			return resp, failed
		},
		BeginDelete: func(_ context.Context, group, name string, _ *armcompute.VirtualMachinesClientBeginDeleteOptions) (resp azfake.PollerResponder[armcompute.VirtualMachinesClientDeleteResponse], failed azfake.ErrorResponder) {
			v := c.vms[c.idOf(typeVM, group, name)]
			if v == nil {
				resp.SetTerminalResponse(http.StatusNoContent, armcompute.VirtualMachinesClientDeleteResponse{}, nil)
				return resp, failed
			}
			if !v.deleting {
				v.deleting, v.provisioning, v.nextAt = true, "Deleting", time.Now().Add(c.opts.Step)
			}
			resp.SetTerminalResponse(http.StatusAccepted, armcompute.VirtualMachinesClientDeleteResponse{}, nil)
			return resp, failed
		},
		Get: func(_ context.Context, group, name string, o *armcompute.VirtualMachinesClientGetOptions) (resp azfake.Responder[armcompute.VirtualMachinesClientGetResponse], failed azfake.ErrorResponder) {
			v := c.vms[c.idOf(typeVM, group, name)]
			if v == nil {
				failed.SetError(notFound(typeVM, group, name))
				return resp, failed
			}
			withView := o != nil && deref(o.Expand) == armcompute.InstanceViewTypesInstanceView
			resp.SetResponse(http.StatusOK, armcompute.VirtualMachinesClientGetResponse{VirtualMachine: c.view(v, withView)}, nil)
			return resp, failed
		},
		NewListAllPager: func(o *armcompute.VirtualMachinesClientListAllOptions) (resp azfake.PagerResponder[armcompute.VirtualMachinesClientListAllResponse]) {
			statusOnly := o != nil && deref(o.StatusOnly) == "true"
			var all []*armcompute.VirtualMachine
			for _, v := range c.sorted() {
				if c.isListed(v.createdAt) && visible(v.group) {
					all = append(all, ptrTo(c.listedView(v, statusOnly)))
				}
			}
			for page := range pagesOf(all, c.opts.PageSize) {
				resp.AddPage(http.StatusOK, armcompute.VirtualMachinesClientListAllResponse{VirtualMachineListResult: armcompute.VirtualMachineListResult{Value: page}}, nil)
			}
			return resp
		},
		BeginStart: func(_ context.Context, group, name string, _ *armcompute.VirtualMachinesClientBeginStartOptions) (resp azfake.PollerResponder[armcompute.VirtualMachinesClientStartResponse], failed azfake.ErrorResponder) {
			v, r := c.changeable(group, name)
			if r != nil {
				failed.SetError(r)
				return resp, failed
			}
			if v.power != "running" {
				v.power, v.nextAt = "starting", time.Now().Add(c.opts.Step)
			}
			resp.SetTerminalResponse(http.StatusAccepted, armcompute.VirtualMachinesClientStartResponse{}, nil)
			return resp, failed
		},
		BeginRestart: func(_ context.Context, group, name string, _ *armcompute.VirtualMachinesClientBeginRestartOptions) (resp azfake.PollerResponder[armcompute.VirtualMachinesClientRestartResponse], failed azfake.ErrorResponder) {
			if r := c.reset(group, name, Soft); r != nil {
				failed.SetError(r)
				return resp, failed
			}
			resp.SetTerminalResponse(http.StatusAccepted, armcompute.VirtualMachinesClientRestartResponse{}, nil)
			return resp, failed
		},
		BeginRedeploy: func(_ context.Context, group, name string, _ *armcompute.VirtualMachinesClientBeginRedeployOptions) (resp azfake.PollerResponder[armcompute.VirtualMachinesClientRedeployResponse], failed azfake.ErrorResponder) {
			if r := c.reset(group, name, Hard); r != nil {
				failed.SetError(r)
				return resp, failed
			}
			resp.SetTerminalResponse(http.StatusAccepted, armcompute.VirtualMachinesClientRedeployResponse{}, nil)
			return resp, failed
		},
		RetrieveBootDiagnosticsData: func(_ context.Context, group, name string, _ *armcompute.VirtualMachinesClientRetrieveBootDiagnosticsDataOptions) (resp azfake.Responder[armcompute.VirtualMachinesClientRetrieveBootDiagnosticsDataResponse], failed azfake.ErrorResponder) {
			v := c.vms[c.idOf(typeVM, group, name)]
			switch {
			case v == nil:
				failed.SetError(notFound(typeVM, group, name))
			case v.model.Properties.DiagnosticsProfile == nil:
				failed.SetError(refuse(http.StatusConflict, "BootDiagnosticsNotEnabled", "Boot diagnostics is not enabled for virtual machine '%s'.", name))
			default:
				resp.SetResponse(http.StatusOK, armcompute.VirtualMachinesClientRetrieveBootDiagnosticsDataResponse{RetrieveBootDiagnosticsDataResult: armcompute.RetrieveBootDiagnosticsDataResult{
					SerialConsoleLogBlobURI: ptrTo("https://" + host + blobs + v.id + "?sv=2024-11-04&sig=" + signature(v.id)),
				}}, nil)
			}
			return resp, failed
		},
	}
}

// disksOf returns Microsoft's fake server of disks.
func (c *Cloud) disksOf(visible func(group string) bool) *computefake.DisksServer {
	return &computefake.DisksServer{
		Get: func(_ context.Context, group, name string, _ *armcompute.DisksClientGetOptions) (resp azfake.Responder[armcompute.DisksClientGetResponse], failed azfake.ErrorResponder) {
			o := c.other(typeDisk, group, name)
			if o == nil {
				failed.SetError(notFound(typeDisk, group, name))
				return resp, failed
			}
			resp.SetResponse(http.StatusOK, armcompute.DisksClientGetResponse{Disk: c.diskView(o)}, nil)
			return resp, failed
		},
		BeginDelete: func(_ context.Context, group, name string, _ *armcompute.DisksClientBeginDeleteOptions) (resp azfake.PollerResponder[armcompute.DisksClientDeleteResponse], failed azfake.ErrorResponder) {
			status, r := c.deleteOther(typeDisk, group, name)
			if r != nil {
				failed.SetError(r)
				return resp, failed
			}
			resp.SetTerminalResponse(status, armcompute.DisksClientDeleteResponse{}, nil)
			return resp, failed
		},
		NewListPager: func(*armcompute.DisksClientListOptions) (resp azfake.PagerResponder[armcompute.DisksClientListResponse]) {
			var all []*armcompute.Disk
			for _, o := range c.listed(typeDisk, visible) {
				all = append(all, ptrTo(c.diskView(o)))
			}
			for page := range pagesOf(all, c.opts.PageSize) {
				resp.AddPage(http.StatusOK, armcompute.DisksClientListResponse{DiskList: armcompute.DiskList{Value: page}}, nil)
			}
			return resp
		},
	}
}

// signature of the URL of a console.
func signature(id string) string { return "5ec4e7" + strings.ReplaceAll(id, "-", "") }

// changeable returns a VM that no operation changes.
func (c *Cloud) changeable(group, name string) (*vm, *refusal) {
	v := c.vms[c.idOf(typeVM, group, name)]
	switch {
	case v == nil:
		return nil, notFound(typeVM, group, name)
	case v.provisioning != "Succeeded" && v.provisioning != "Failed":
		return nil, refuse(http.StatusConflict, "AnotherOperationInProgress", "Another operation on this VM '%s' is in progress.", name)
	}
	return v, nil
}

func (c *Cloud) reset(group, name, kind string) *refusal {
	v, r := c.changeable(group, name)
	if r != nil {
		return r
	}
	if v.power != "running" {
		return refuse(http.StatusConflict, "OperationNotAllowed", "Cannot modify VM '%s' when it is not running.", name)
	}
	v.provisioning, v.nextAt = "Updating", time.Now().Add(c.opts.Step)
	c.restarted(v, kind)
	return nil
}

// createVM accepts the creation of a VM.
func (c *Cloud) createVM(group, name string, model armcompute.VirtualMachine, onlyNew bool, body []byte) (*vm, *refusal) {
	id := c.idOf(typeVM, group, name)
	if c.vms[id] != nil {
		if onlyNew {
			return nil, refuse(http.StatusPreconditionFailed, "ConditionNotMet", "The condition 'If-None-Match: *' is not met: resource '%s' exists.", id)
		}
		c.opts.Report(fmt.Errorf("%s: a request without If-None-Match would change the VM %s", CreateVM, name))
		return nil, refuse(http.StatusConflict, "PropertyChangeNotAllowed", "Changing property 'osProfile.customData' is not allowed.")
	}
	nics, r := c.checkVM(id, model)
	if r != nil {
		return nil, r
	}
	now := time.Now()
	v := &vm{
		group: group, name: name, id: uuid.NewString(), model: model, body: slices.Clone(body), createdAt: now, provisioning: "Creating", nextAt: now.Add(c.opts.Step),
		failing: c.failureOf(body),
	}
	c.vms[id] = v
	for n, nic := range nics {
		nic.user = id
		nic.deleted = deref(propertiesOf(model.Properties.NetworkProfile.NetworkInterfaces[n]).DeleteOption) == armcompute.DeleteOptionsDelete
	}
	c.addDisks(v)
	return v, nil
}

func propertiesOf(r *armcompute.NetworkInterfaceReference) armcompute.NetworkInterfaceReferenceProperties {
	return deref(r.Properties)
}

// checkVM validates a VM, and returns its network interfaces.
func (c *Cloud) checkVM(id string, model armcompute.VirtualMachine) ([]*other, *refusal) {
	p := model.Properties
	if p == nil || p.HardwareProfile == nil || p.StorageProfile == nil || p.OSProfile == nil || p.NetworkProfile == nil || len(p.NetworkProfile.NetworkInterfaces) == 0 {
		return nil, refuse(http.StatusBadRequest, "InvalidParameter", "Required parameter is missing (null).")
	}
	if size := string(deref(p.HardwareProfile.VMSize)); !slices.Contains(sizes, size) {
		return nil, refuse(http.StatusBadRequest, "InvalidParameter", "The value %s provided for the VM size is not valid. The valid sizes in the current region are: %s.", size, strings.Join(sizes, ","))
	}
	image := p.StorageProfile.ImageReference
	if image == nil {
		return nil, refuse(http.StatusBadRequest, "InvalidParameter", "Required parameter 'imageReference' is missing (null).")
	}
	if image.ID == nil && image.CommunityGalleryImageID == nil && image.SharedGalleryImageID == nil && !slices.Contains(images, deref(image.Publisher)+"/"+deref(image.Offer)) {
		return nil, refuse(http.StatusNotFound, "PlatformImageNotFound", "The platform image '%s:%s:%s:%s' is not available. Verify that all fields in the storage profile are correct.", deref(image.Publisher), deref(image.Offer), deref(image.SKU), deref(image.Version))
	}
	data, err := base64.StdEncoding.DecodeString(deref(p.OSProfile.CustomData))
	if err != nil || len(data) > maxCustomData {
		return nil, refuse(http.StatusBadRequest, "InvalidParameter", "Custom data in OSProfile must be in Base64 encoding and with a maximum length of 87380 characters.")
	}
	if linux := p.OSProfile.LinuxConfiguration; linux == nil || linux.SSH == nil || len(linux.SSH.PublicKeys) == 0 || deref(p.OSProfile.AdminUsername) == "" {
		return nil, refuse(http.StatusBadRequest, "InvalidParameter", "Authentication using either SSH or by user name and password must be enabled in Linux profile.")
	}
	var nics []*other
	for _, r := range p.NetworkProfile.NetworkInterfaces {
		nic := c.others[strings.ToLower(deref(r.ID))]
		switch {
		case nic == nil || !nic.removedAt.IsZero():
			return nil, refuse(http.StatusBadRequest, "NotFound", "The Interface %s was not found.", deref(r.ID))
		case time.Now().Before(nic.readyAt), !nic.goneAt.IsZero():
			return nil, refuse(http.StatusConflict, "ReferencedResourceNotProvisioned", "Cannot proceed with operation because resource %s used by resource %s is not in Succeeded state.", deref(r.ID), id)
		case nic.user != "" && nic.user != id:
			return nil, refuse(http.StatusBadRequest, "NicInUse", "Network Interface %s is used by existing resource %s.", deref(r.ID), nic.user)
		}
		nics = append(nics, nic)
	}
	return nics, nil
}

// addDisks adds the managed disks of a VM, which have its tags.
func (c *Cloud) addDisks(v *vm) {
	add := func(name *string, size *int32, deleted bool) {
		c.others[c.idOf(typeDisk, v.group, deref(name))] = &other{
			typ: typeDisk, group: v.group, name: deref(name), tags: v.model.Tags, createdAt: v.createdAt, size: deref(size), user: c.idOf(typeVM, v.group, v.name), deleted: deleted,
		}
	}
	s := v.model.Properties.StorageProfile
	if os := s.OSDisk; os != nil && os.DiffDiskSettings == nil {
		add(os.Name, os.DiskSizeGB, deref(os.DeleteOption) == armcompute.DiskDeleteOptionTypesDelete)
	}
	for _, d := range s.DataDisks {
		add(d.Name, d.DiskSizeGB, deref(d.DeleteOption) == armcompute.DiskDeleteOptionTypesDelete)
	}
}

// view returns a VM as Azure shows it. Custom data is never returned.
func (c *Cloud) view(v *vm, withInstance bool) armcompute.VirtualMachine {
	out := v.model
	p := deref(v.model.Properties)
	if p.OSProfile != nil {
		os := *p.OSProfile
		os.CustomData = nil
		p.OSProfile = &os
	}
	p.ProvisioningState, p.VMID, p.TimeCreated = ptrTo(v.provisioning), ptrTo(v.id), ptrTo(v.createdAt.UTC())
	if withInstance {
		p.InstanceView = v.instanceView()
	}
	out.Properties = &p
	out.ID, out.Name, out.Type = ptrTo(c.fullID(typeVM, v.group, v.name)), ptrTo(v.name), ptrTo(typeVM)
	return out
}

// listedView returns a VM as a list shows it: with its model or with its states. Lists write resource groups in upper case.
func (c *Cloud) listedView(v *vm, statusOnly bool) armcompute.VirtualMachine {
	out := c.view(v, statusOnly)
	if statusOnly {
		out = armcompute.VirtualMachine{Location: out.Location, Name: out.Name, Type: out.Type, Properties: &armcompute.VirtualMachineProperties{InstanceView: v.instanceView(), VMID: ptrTo(v.id)}}
	}
	out.ID = ptrTo(c.fullID(typeVM, strings.ToUpper(v.group), v.name))
	return out
}

func (v *vm) instanceView() *armcompute.VirtualMachineInstanceView {
	code := "ProvisioningState/" + strings.ToLower(v.provisioning)
	if v.provisioning == "Failed" && v.code != "" {
		code += "/" + v.code
	}
	out := &armcompute.VirtualMachineInstanceView{Statuses: []*armcompute.InstanceViewStatus{
		{Code: &code, Level: ptrTo(armcompute.StatusLevelTypesInfo), Message: ptrTo(v.message)},
	}}
	if v.power != "" {
		out.Statuses = append(out.Statuses, &armcompute.InstanceViewStatus{Code: ptrTo("PowerState/" + v.power), DisplayStatus: ptrTo("VM " + v.power), Level: ptrTo(armcompute.StatusLevelTypesInfo)})
	}
	return out
}

func (c *Cloud) diskView(o *other) armcompute.Disk {
	out := armcompute.Disk{
		ID: ptrTo(c.fullID(typeDisk, o.group, o.name)), Name: ptrTo(o.name), Type: ptrTo(typeDisk), Location: ptrTo(Location), Tags: o.tags,
		Properties: &armcompute.DiskProperties{ProvisioningState: ptrTo(o.provisioning()), TimeCreated: ptrTo(o.createdAt.UTC()), CreationData: &armcompute.CreationData{CreateOption: ptrTo(armcompute.DiskCreateOptionFromImage)}},
	}
	if o.user != "" {
		out.ManagedBy = ptrTo(o.user)
	}
	return out
}
