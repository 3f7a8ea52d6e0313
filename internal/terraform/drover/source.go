package drover

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/client-go/dynamic"
)

// A source reads an object of a kind.
type source struct {
	kind   kind
	client dynamic.Interface
}

var _ datasource.DataSourceWithConfigure = &source{}

type sourceModel struct {
	Namespace   types.String  `tfsdk:"namespace"`
	Name        types.String  `tfsdk:"name"`
	Labels      types.Map     `tfsdk:"labels"`
	Annotations types.Map     `tfsdk:"annotations"`
	Spec        types.Dynamic `tfsdk:"spec"`
	Status      types.Dynamic `tfsdk:"status"`
	UID         types.String  `tfsdk:"uid"`
}

func (s *source) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + s.kind.name
}

func (s *source) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A " + s.kind.gvk.Kind + " that is there.",
		Attributes: map[string]schema.Attribute{
			"namespace":   schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: "Default `default`."},
			"name":        schema.StringAttribute{Required: true},
			"labels":      schema.MapAttribute{Computed: true, ElementType: types.StringType},
			"annotations": schema.MapAttribute{Computed: true, ElementType: types.StringType},
			"spec":        schema.DynamicAttribute{Computed: true, MarkdownDescription: "`spec` as the API server has it, with all defaults."},
			"status":      schema.DynamicAttribute{Computed: true, MarkdownDescription: "`status`, such as `status.availableReplicas`."},
			"uid":         schema.StringAttribute{Computed: true},
		},
	}
}

func (s *source) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	s.client = clientOf(req.ProviderData, &resp.Diagnostics)
}

func (s *source) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m sourceModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	if m.Namespace.IsNull() {
		m.Namespace = types.StringValue("default")
	}
	title := s.kind.title(m.Namespace.ValueString(), m.Name.ValueString())
	if s.client == nil {
		resp.Diagnostics.AddError("Cannot read "+title, "The cluster is not known: the settings of the provider depend on what is not there yet.")
		return
	}
	is, err := (&object{kind: s.kind, client: s.client}).get(ctx, m.Namespace.ValueString(), m.Name.ValueString())
	if err != nil || is == nil {
		text := "There is none."
		if err != nil {
			text = err.Error()
		}
		resp.Diagnostics.AddError("Cannot read "+title, text)
		return
	}
	m.UID = types.StringValue(string(is.GetUID()))
	for name, into := range map[string]*types.Dynamic{"spec": &m.Spec, "status": &m.Status} {
		if is.Object[name] == nil {
			*into = types.DynamicNull()
			continue
		}
		v, err := fromAny(is.Object[name])
		if err != nil {
			resp.Diagnostics.AddError("Cannot read "+title, name+": "+err.Error())
			return
		}
		*into = types.DynamicValue(v)
	}
	labels, diags := types.MapValueFrom(ctx, types.StringType, is.GetLabels())
	resp.Diagnostics.Append(diags...)
	annotations, diags := types.MapValueFrom(ctx, types.StringType, is.GetAnnotations())
	resp.Diagnostics.Append(diags...)
	m.Labels, m.Annotations = labels, annotations
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}
