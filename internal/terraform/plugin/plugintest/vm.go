package plugintest

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

type vm struct{ cloud cloud }

var (
	_ resource.ResourceWithConfigure    = &vm{}
	_ resource.ResourceWithImportState  = &vm{}
	_ resource.ResourceWithUpgradeState = &vm{}
)

type vmModel struct {
	ID       types.String `tfsdk:"id"`
	Name     types.String `tfsdk:"name"`
	Size     types.String `tfsdk:"size"`
	UserData types.String `tfsdk:"user_data"`
	Tags     types.Map    `tfsdk:"tags"`
	State    types.String `tfsdk:"state"`
	IP       types.String `tfsdk:"ip"`
	Nics     []nicModel   `tfsdk:"nic"`
}

type nicModel struct {
	Network types.String `tfsdk:"network"`
	MAC     types.String `tfsdk:"mac"`
}

func (*vm) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "fake_vm"
}

// schemaVersion is the second one: the first had the attribute size under the name flavor.
const schemaVersion = 1

func (*vm) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Version: schemaVersion,
		Attributes: map[string]schema.Attribute{
			"id":        schema.StringAttribute{Computed: true},
			"name":      schema.StringAttribute{Required: true},
			"size":      schema.StringAttribute{Optional: true, Computed: true, Validators: []validator.String{stringvalidator.OneOf("small", "large")}},
			"user_data": schema.StringAttribute{Optional: true},
			"tags":      schema.MapAttribute{Optional: true, ElementType: types.StringType},
			"state":     schema.StringAttribute{Computed: true},
			"ip":        schema.StringAttribute{Computed: true},
		},
		Blocks: map[string]schema.Block{"nic": schema.ListNestedBlock{NestedObject: schema.NestedBlockObject{
			Attributes: map[string]schema.Attribute{
				"network": schema.StringAttribute{Required: true},
				"mac":     schema.StringAttribute{Computed: true},
			},
		}}},
	}
}

// UpgradeState renames flavor to size.
func (*vm) UpgradeState(context.Context) map[int64]resource.StateUpgrader {
	return map[int64]resource.StateUpgrader{0: {
		PriorSchema: &schema.Schema{Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{Computed: true}, "name": schema.StringAttribute{Required: true},
			"flavor": schema.StringAttribute{Optional: true},
		}},
		StateUpgrader: func(ctx context.Context, req resource.UpgradeStateRequest, resp *resource.UpgradeStateResponse) {
			m := vmModel{Tags: types.MapNull(types.StringType)}
			for name, into := range map[string]*types.String{"id": &m.ID, "name": &m.Name, "flavor": &m.Size} {
				resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root(name), into)...)
			}
			resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
		},
	}}
}

func (v *vm) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	if c, ok := req.ProviderData.(cloud); ok {
		v.cloud = c
	}
}

// observe reads a VM of the cloud.
func (m *vmModel) observe(r *Record) {
	m.ID, m.Name, m.Size = types.StringValue(r.ID), types.StringValue(r.Name), types.StringValue(r.Size)
	m.State, m.IP = types.StringValue(r.State), types.StringValue("10.0.0.7")
	if m.Tags.IsNull() {
		m.Tags = types.MapNull(types.StringType)
	}
	for i := range m.Nics {
		m.Nics[i].MAC = types.StringValue("52:54:00:00:00:01")
	}
}

func (v *vm) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m vmModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	name := m.Name.ValueString()
	if strings.HasPrefix(name, Refused) {
		resp.Diagnostics.AddError("quota exceeded", "the account may have no more VMs; user_data was "+m.UserData.ValueString())
		return
	}
	if strings.HasPrefix(name, "slow") {
		time.Sleep(slow)
	}
	r := &Record{
		ID: "id-" + name, Name: name, Size: m.Size.ValueString(), UserData: m.UserData.ValueString(),
		State: "running", Tags: map[string]string{}, PID: os.Getpid(),
	}
	if r.Size == "" {
		r.Size = "small"
	}
	for k, t := range m.Tags.Elements() {
		if s, ok := t.(types.String); ok {
			r.Tags[k] = s.ValueString()
		}
	}
	if err := v.cloud.write(r); err != nil {
		resp.Diagnostics.AddError("cannot create the VM", err.Error())
		return
	}
	switch {
	case strings.HasPrefix(name, Crash):
		os.Exit(3)
	case strings.HasPrefix(name, Lost):
		resp.Diagnostics.AddError("cannot create the VM", "see the next error")
		resp.Diagnostics.AddError("cannot create the VM", `Post "https://cloud.example.org/vms": unexpected EOF`)
		return
	case strings.HasPrefix(name, HalfMade):
		resp.Diagnostics.AddError("the VM does not start", "no host has room for it")
	}
	m.observe(r)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (v *vm) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m vmModel
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	r, err := v.cloud.read(m.ID.ValueString())
	if os.IsNotExist(err) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		resp.Diagnostics.AddError("cannot read the VM", err.Error())
		return
	}
	m.observe(r)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (*vm) Update(_ context.Context, _ resource.UpdateRequest, resp *resource.UpdateResponse) {
	resp.Diagnostics.AddError("a VM is never changed", "")
}

func (v *vm) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m vmModel
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if err := os.Remove(v.cloud.file(m.ID.ValueString())); err != nil && !os.IsNotExist(err) {
		resp.Diagnostics.AddError("cannot delete the VM", err.Error())
	}
}

func (*vm) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("id"), req, resp)
}
