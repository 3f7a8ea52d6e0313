package localcloud

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	api "github.com/drover-dev/drover/internal/localcloud"
)

// Default timeouts of operations, if the timeouts block has none.
const (
	defaultCreateTimeout = 20 * time.Minute
	defaultUpdateTimeout = 5 * time.Minute
	defaultDeleteTimeout = 20 * time.Minute
	readTimeout          = 2 * time.Minute
)

// importedKey marks, in the private state, a VM whose user data is unknown.
const importedKey = "imported"

type virtualMachine struct{ settings }

var (
	_ resource.ResourceWithConfigure   = &virtualMachine{}
	_ resource.ResourceWithImportState = &virtualMachine{}
)

func newVirtualMachine() resource.Resource { return &virtualMachine{} }

func (r *virtualMachine) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_virtual_machine"
}

func (r *virtualMachine) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	fixed := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	given := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A virtual machine. Everything but its tags is fixed when it is created.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				Computed: true, PlanModifiers: given,
				MarkdownDescription: "Given by the cloud, and never used again.",
			},
			"name": schema.StringAttribute{
				Required: true, PlanModifiers: fixed,
				MarkdownDescription: "Host name: lowercase letters, digits, `-` and `.`, at most 63 bytes. Need not be unique.",
			},
			"image": schema.StringAttribute{
				Required: true, PlanModifiers: fixed,
				MarkdownDescription: "What the VM boots, like `ubuntu-24.04`.",
			},
			"size": schema.StringAttribute{
				Required: true, PlanModifiers: fixed,
				MarkdownDescription: "`small` (1 CPU, 2 GiB), `medium` (2 CPUs, 4 GiB), `large` (4 CPUs, 16 GiB) or `xlarge` (16 CPUs, 128 GiB).",
			},
			"zone": schema.StringAttribute{
				Optional: true, Computed: true,
				PlanModifiers: []planmodifier.String{
					stringplanmodifier.UseStateForUnknown(), stringplanmodifier.RequiresReplaceIfConfigured(),
				},
				MarkdownDescription: "Failure domain. Default `zone-a`.",
			},
			"user_data": schema.StringAttribute{
				Optional: true, Sensitive: true,
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplaceIf(
					replaceUnlessImported, "Replaces the VM, unless it was imported.", "Replaces the VM, unless it was imported.")},
				MarkdownDescription: "What cloud-init reads, as plain text, at most 64 KiB. The cloud never returns it.",
			},
			"tags": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Keys and values to find the VM by.",
			},
			"provider_id": schema.StringAttribute{
				Computed: true, PlanModifiers: given,
				MarkdownDescription: "What the VM's kubelet registers as the Node's `spec.providerID`.",
			},
			"state": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "`Pending`, `Running`, `Terminating` or `Failed`.",
			},
			"addresses": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "Known when the VM is `Running`.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"type":    schema.StringAttribute{Computed: true, MarkdownDescription: "`InternalIP` or `Hostname`."},
					"address": schema.StringAttribute{Computed: true, MarkdownDescription: "The address itself."},
				}},
			},
			"console": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "The end of the VM's console, at most 4 KiB, while the VM is `Failed`, or may not have joined its cluster: from 30 seconds to 30 minutes after its boot.",
			},
			"error": schema.SingleNestedAttribute{
				Computed:            true,
				MarkdownDescription: "Why the VM is `Failed`.",
				Attributes: map[string]schema.Attribute{
					"code":    schema.StringAttribute{Computed: true, MarkdownDescription: "Code, like `CapacityExhausted`."},
					"message": schema.StringAttribute{Computed: true, MarkdownDescription: "The cause for people."},
				},
			},
		},
		Blocks: map[string]schema.Block{
			"timeouts": timeouts.Block(ctx, timeouts.Opts{Create: true, Update: true, Delete: true}),
		},
	}
}

func (r *virtualMachine) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	if req.ProviderData == nil { // Terraform validates before it configures.
		return
	}
	s, ok := req.ProviderData.(settings)
	if !ok {
		resp.Diagnostics.AddError("Cannot configure the resource", fmt.Sprintf("provider data is a %T", req.ProviderData))
		return
	}
	r.settings = s
}

func (r *virtualMachine) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m vmModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	timeout, d := m.Timeouts.Create(ctx, defaultCreateTimeout)
	resp.Diagnostics.Append(d...)
	cr, d := m.createRequest(ctx)
	resp.Diagnostics.Append(d...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	vm, err := called(ctx, r.settings, func() (*api.VM, error) { return r.client.CreateVM(ctx, cr) })
	if err != nil {
		resp.Diagnostics.AddError("Cannot create virtual machine", createErrorText(err))
		return
	}
	// The state has the id from here on, whatever happens next.
	resp.Diagnostics.Append(m.observe(ctx, vm)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	if !r.wait || resp.Diagnostics.HasError() {
		return
	}
	if vm, err = r.awaitBoot(ctx, vm); err != nil {
		resp.Diagnostics.AddError("Cannot wait for virtual machine", fmt.Sprintf("%s is not running after up to %s: %s", m.ID.ValueString(), timeout, errorText(err)))
		return
	}
	resp.Diagnostics.Append(m.observe(ctx, vm)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	if vm.State == api.StateFailed && vm.Error != nil {
		resp.Diagnostics.AddError("Virtual machine failed", codeText(vm.Error.Code, vm.Error.Message))
	}
}

func (r *virtualMachine) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m vmModel
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if m.ID.ValueString() == "" { // Not created yet, as upjet requests it.
		resp.State.RemoveResource(ctx)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	vm, err := called(ctx, r.settings, func() (*api.VM, error) { return r.client.GetVM(ctx, m.ID.ValueString()) })
	if api.IsNotFound(err) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		resp.Diagnostics.AddError("Cannot read virtual machine", errorText(err))
		return
	}
	resp.Diagnostics.Append(m.observe(ctx, vm)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (r *virtualMachine) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m vmModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	timeout, d := m.Timeouts.Update(ctx, defaultUpdateTimeout)
	resp.Diagnostics.Append(d...)
	tags, d := m.tags(ctx)
	resp.Diagnostics.Append(d...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	vm, err := called(ctx, r.settings, func() (*api.VM, error) {
		return r.client.UpdateVM(ctx, m.ID.ValueString(), api.UpdateVMRequest{Tags: tags})
	})
	if err != nil {
		resp.Diagnostics.AddError("Cannot change the tags of virtual machine", errorText(err))
		return
	}
	resp.Diagnostics.Append(m.observe(ctx, vm)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, importedKey, nil)...)
}

func (r *virtualMachine) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m vmModel
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	timeout, d := m.Timeouts.Delete(ctx, defaultDeleteTimeout)
	resp.Diagnostics.Append(d...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	id := m.ID.ValueString()
	_, err := called(ctx, r.settings, func() (*api.VM, error) { return nil, r.client.DeleteVM(ctx, id) })
	if err == nil && r.wait {
		err = r.awaitGone(ctx, id)
	}
	if err != nil && !api.IsNotFound(err) {
		resp.Diagnostics.AddError("Cannot delete virtual machine", errorText(err))
	}
}

func (r *virtualMachine) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("id"), req, resp)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, importedKey, []byte("true"))...)
}

// replaceUnlessImported: user data that is configured for an imported VM counts as the user data that the VM
// was created with, since the cloud does not return it.
func replaceUnlessImported(ctx context.Context, req planmodifier.StringRequest, resp *stringplanmodifier.RequiresReplaceIfFuncResponse) {
	imported, d := req.Private.GetKey(ctx, importedKey)
	resp.Diagnostics.Append(d...)
	resp.RequiresReplace = !req.StateValue.IsNull() || imported == nil
}

// awaitBoot returns the VM when it is no longer Pending.
func (r *virtualMachine) awaitBoot(ctx context.Context, vm *api.VM) (*api.VM, error) {
	for vm.State == api.StatePending {
		if err := sleep(ctx, pollInterval); err != nil {
			return nil, err
		}
		var err error
		if vm, err = called(ctx, r.settings, func() (*api.VM, error) { return r.client.GetVM(ctx, vm.ID) }); err != nil {
			return nil, err
		}
	}
	return vm, nil
}

// awaitGone returns once the cloud no longer has the VM.
func (r *virtualMachine) awaitGone(ctx context.Context, id string) error {
	for {
		_, err := called(ctx, r.settings, func() (*api.VM, error) { return r.client.GetVM(ctx, id) })
		if api.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// called makes a call, and retries it if the provider waits.
func called(ctx context.Context, s settings, call func() (*api.VM, error)) (*api.VM, error) {
	if s.wait {
		return patiently(ctx, call)
	}
	return call()
}
