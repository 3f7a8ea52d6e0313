package drover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// Default timeouts of operations, if the timeouts block has none.
const (
	defaultCreateTimeout = 30 * time.Minute
	defaultUpdateTimeout = 2 * time.Hour
	defaultDeleteTimeout = time.Hour
)

// An object of a kind as a resource.
type object struct {
	kind   kind
	client dynamic.Interface
}

var (
	_ resource.ResourceWithConfigure   = &object{}
	_ resource.ResourceWithImportState = &object{}
	_ resource.ResourceWithModifyPlan  = &object{}
)

type objectModel struct {
	Namespace   types.String   `tfsdk:"namespace"`
	Name        types.String   `tfsdk:"name"`
	Labels      types.Map      `tfsdk:"labels"`
	Annotations types.Map      `tfsdk:"annotations"`
	Spec        types.Dynamic  `tfsdk:"spec"`
	Wait        types.Bool     `tfsdk:"wait"`
	UID         types.String   `tfsdk:"uid"`
	Timeouts    timeouts.Value `tfsdk:"timeouts"`
}

func (r *object) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + r.kind.name
}

func (r *object) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	fixed := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	resp.Schema = schema.Schema{
		MarkdownDescription: r.kind.description,
		Attributes: map[string]schema.Attribute{
			"namespace": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString("default"), PlanModifiers: fixed,
				MarkdownDescription: "Default `default`.",
			},
			"name": schema.StringAttribute{Required: true, PlanModifiers: fixed},
			"labels": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Labels of the object. Others that it has are left alone.",
			},
			"annotations": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Annotations of the object. Others that it has are left alone.",
			},
			"spec": schema.DynamicAttribute{
				Required: true,
				MarkdownDescription: "`spec` of the object, with the names that its kind has in Kubernetes. Terraform owns the fields that stand here, and no others. " +
					"Leave out what others write, such as `replicas` where the cluster-autoscaler does.",
			},
			"wait": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(true),
				MarkdownDescription: "Whether an apply waits until all is as `spec` wants it. Default `true`. A deletion always waits: for the last VM.",
			},
			"uid": schema.StringAttribute{
				Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				MarkdownDescription: "Given by the API server.",
			},
			"timeouts": timeouts.Attributes(ctx, timeouts.Opts{
				Create: true, Update: true, Delete: true,
				CreateDescription: "Default `30m`.", UpdateDescription: "Default `2h`: a rollout drains Nodes.", DeleteDescription: "Default `1h`.",
			}),
		},
	}
}

func (r *object) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.client = clientOf(req.ProviderData, &resp.Diagnostics)
}

func clientOf(data any, diags *diag.Diagnostics) dynamic.Interface {
	if data == nil {
		return nil
	}
	c, ok := data.(dynamic.Interface)
	if !ok {
		diags.AddError("Wrong provider data", fmt.Sprintf("It is a %T.", data))
	}
	return c
}

// ModifyPlan checks by a dry run whether the API server accepts the change.
func (r *object) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return
	}
	var plan, state objectModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	isNew := req.State.Raw.IsNull()
	if !isNew {
		if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
			return
		}
		if plan.equals(state) {
			return
		}
	}
	if !isNew && r.kind.isImmutable && !plan.Spec.Equal(state.Spec) {
		resp.RequiresReplace = append(resp.RequiresReplace, path.Root("spec"))
		isNew = true
	}
	if !isNew && (!plan.Name.Equal(state.Name) || !plan.Namespace.Equal(state.Namespace)) {
		isNew = true
	}
	want, err := r.wanted(plan)
	switch {
	case errors.Is(err, errUnknown):
		return
	case err != nil:
		resp.Diagnostics.AddAttributeError(path.Root("spec"), "Cannot read spec", err.Error())
		return
	case r.client == nil:
		resp.Diagnostics.AddWarning("The plan is not checked", "The cluster is not known before the apply, so that the API server cannot validate "+r.kind.title(want.GetNamespace(), want.GetName())+".")
		return
	}
	if isNew && r.kind.isImmutable && !state.Name.IsNull() && state.Name.Equal(plan.Name) && state.Namespace.Equal(plan.Namespace) {
		// The existing object prevents a dry run.
		return
	}
	if err := r.apply(ctx, want, true); err != nil {
		r.refused(&resp.Diagnostics, want, err)
	}
}

func (m objectModel) equals(o objectModel) bool {
	return m.Namespace.Equal(o.Namespace) && m.Name.Equal(o.Name) && m.Labels.Equal(o.Labels) && m.Annotations.Equal(o.Annotations) && m.Spec.Equal(o.Spec)
}

func (r *object) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan objectModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := plan.Timeouts.Create(ctx, defaultCreateTimeout)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	want, ok := r.ready(plan, &resp.Diagnostics)
	if !ok {
		return
	}
	if there, err := r.get(ctx, want.GetNamespace(), want.GetName()); err != nil || there != nil {
		if err == nil {
			err = fmt.Errorf("there is one already. To take it over, import it: terraform import ADDRESS %s/%s", want.GetNamespace(), want.GetName())
		}
		resp.Diagnostics.AddError("Cannot create "+r.kind.title(want.GetNamespace(), want.GetName()), err.Error())
		return
	}
	if err := r.apply(ctx, want, false); err != nil {
		r.refused(&resp.Diagnostics, want, err)
		return
	}
	plan.UID = types.StringValue(string(want.GetUID()))
	// Terraform must know of the object whatever happens next.
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	r.wait(ctx, plan, timeout, &resp.Diagnostics)
}

func (r *object) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state objectModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := plan.Timeouts.Update(ctx, defaultUpdateTimeout)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	want, ok := r.ready(plan, &resp.Diagnostics)
	if !ok {
		return
	}
	if err := r.letGo(ctx, state, want); err != nil {
		r.refused(&resp.Diagnostics, want, err)
		return
	}
	if err := r.apply(ctx, want, false); err != nil {
		r.refused(&resp.Diagnostics, want, err)
		return
	}
	plan.UID = types.StringValue(string(want.GetUID()))
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	r.wait(ctx, plan, timeout, &resp.Diagnostics)
}

// ready returns the desired object, if it can be applied.
func (r *object) ready(plan objectModel, diags *diag.Diagnostics) (*unstructured.Unstructured, bool) {
	if r.client == nil {
		diags.AddError("The cluster is not known", "The settings of the provider depend on what is not there yet. Apply that first, with -target.")
		return nil, false
	}
	want, err := r.wanted(plan)
	if err != nil {
		diags.AddAttributeError(path.Root("spec"), "Cannot read spec", err.Error())
	}
	return want, err == nil
}

func (r *object) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state objectModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() || r.client == nil {
		return
	}
	is, err := r.get(ctx, state.Namespace.ValueString(), state.Name.ValueString())
	switch {
	case err != nil:
		resp.Diagnostics.AddError("Cannot read "+r.kind.title(state.Namespace.ValueString(), state.Name.ValueString()), err.Error())
		return
	case is == nil:
		resp.State.RemoveResource(ctx)
		return
	}
	if err := state.read(ctx, is); err != nil {
		resp.Diagnostics.AddError("Cannot read "+r.kind.title(is.GetNamespace(), is.GetName()), err.Error())
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

func (r *object) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state objectModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := state.Timeouts.Delete(ctx, defaultDeleteTimeout)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	if r.client == nil {
		resp.Diagnostics.AddError("The cluster is not known", "The settings of the provider depend on what is not there.")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := r.remove(ctx, state, timeout); err != nil {
		resp.Diagnostics.AddError("Cannot delete "+r.kind.title(state.Namespace.ValueString(), state.Name.ValueString()), err.Error())
	}
}

// ImportState imports namespace/name, or a name in the namespace default. Terraform then owns the fields of
// spec that clients applied; if none did, all existing ones.
func (r *object) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	namespace, name, found := strings.Cut(req.ID, "/")
	if !found {
		namespace, name = "default", req.ID
	}
	if name == "" || namespace == "" || strings.Contains(name, "/") {
		resp.Diagnostics.AddError("Wrong ID", fmt.Sprintf("The ID %q must be NAMESPACE/NAME.", req.ID))
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("namespace"), namespace)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), name)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("wait"), true)...)
}
