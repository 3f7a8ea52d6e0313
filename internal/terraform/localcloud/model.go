package localcloud

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	api "github.com/drover-dev/drover/internal/localcloud"
)

type vmModel struct {
	ID         types.String   `tfsdk:"id"`
	Name       types.String   `tfsdk:"name"`
	Image      types.String   `tfsdk:"image"`
	Size       types.String   `tfsdk:"size"`
	Zone       types.String   `tfsdk:"zone"`
	UserData   types.String   `tfsdk:"user_data"`
	Tags       types.Map      `tfsdk:"tags"`
	ProviderID types.String   `tfsdk:"provider_id"`
	State      types.String   `tfsdk:"state"`
	Addresses  types.List     `tfsdk:"addresses"`
	Console    types.String   `tfsdk:"console"`
	Error      types.Object   `tfsdk:"error"`
	Timeouts   timeouts.Value `tfsdk:"timeouts"`
}

type addressModel struct {
	Type    types.String `tfsdk:"type"`
	Address types.String `tfsdk:"address"`
}

var (
	addressType = types.ObjectType{AttrTypes: map[string]attr.Type{"type": types.StringType, "address": types.StringType}}
	errorTypes  = map[string]attr.Type{"code": types.StringType, "message": types.StringType}
)

// observe takes over the state of the VM from the cloud. User data stays as it was, since the cloud never
// returns it.
func (m *vmModel) observe(ctx context.Context, vm *api.VM) diag.Diagnostics {
	var diags diag.Diagnostics
	m.ID = types.StringValue(vm.ID)
	m.Name = types.StringValue(vm.Name)
	m.Image = types.StringValue(vm.Image)
	m.Size = types.StringValue(vm.Size)
	m.Zone = types.StringValue(vm.Zone)
	m.ProviderID = types.StringValue(vm.ProviderID)
	m.State = types.StringValue(string(vm.State))

	// No tags are null or {}, as the configuration has it.
	if len(vm.Tags) > 0 || (!m.Tags.IsNull() && len(m.Tags.Elements()) > 0) {
		var d diag.Diagnostics
		m.Tags, d = types.MapValueFrom(ctx, types.StringType, vm.Tags)
		diags.Append(d...)
	}

	addresses := make([]addressModel, 0, len(vm.Addresses))
	for _, a := range vm.Addresses {
		addresses = append(addresses, addressModel{Type: types.StringValue(string(a.Type)), Address: types.StringValue(a.Address)})
	}
	l, d := types.ListValueFrom(ctx, addressType, addresses)
	diags.Append(d...)
	m.Addresses = l

	m.Console = types.StringNull()
	if vm.Console != "" {
		m.Console = types.StringValue(vm.Console)
	}
	m.Error = types.ObjectNull(errorTypes)
	if vm.Error != nil {
		m.Error, d = types.ObjectValue(errorTypes, map[string]attr.Value{
			"code": types.StringValue(vm.Error.Code), "message": types.StringValue(vm.Error.Message),
		})
		diags.Append(d...)
	}
	return diags
}

func (m *vmModel) tags(ctx context.Context) (map[string]string, diag.Diagnostics) {
	tags := map[string]string{}
	if m.Tags.IsNull() {
		return tags, nil
	}
	d := m.Tags.ElementsAs(ctx, &tags, false)
	return tags, d
}

func (m *vmModel) createRequest(ctx context.Context) (api.CreateVMRequest, diag.Diagnostics) {
	tags, d := m.tags(ctx)
	return api.CreateVMRequest{
		Name:     m.Name.ValueString(),
		Image:    m.Image.ValueString(),
		Size:     m.Size.ValueString(),
		Zone:     m.Zone.ValueString(),
		UserData: []byte(m.UserData.ValueString()),
		Tags:     tags,
	}, d
}
