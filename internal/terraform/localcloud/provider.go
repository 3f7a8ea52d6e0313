package localcloud

import (
	"cmp"
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	api "github.com/drover-dev/drover/internal/localcloud"
)

// TypeName is the prefix of the provider's resources.
const TypeName = "localcloud"

// Address of the provider in a required_providers block.
const Address = "registry.terraform.io/drover-dev/localcloud"

// Environment variables that the provider falls back to.
const (
	EnvEndpoint = "LOCALCLOUD_ENDPOINT"
	EnvToken    = "LOCALCLOUD_TOKEN"
)

type cloudProvider struct{ version string }

// New returns the provider. Version is the one that it reports to Terraform.
func New(version string) provider.Provider { return &cloudProvider{version: version} }

type providerModel struct {
	Endpoint types.String `tfsdk:"endpoint"`
	Token    types.String `tfsdk:"token"`
	Wait     types.Bool   `tfsdk:"wait"`
}

// settings is the part of the provider's configuration that resources need.
type settings struct {
	client *api.Client
	wait   bool
}

func (p *cloudProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, resp.Version = TypeName, p.version
}

func (p *cloudProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Virtual machines of Drover's local cloud.",
		Attributes: map[string]schema.Attribute{
			"endpoint": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "URL of the API, like `http://127.0.0.1:8088`. Default: the environment variable `" + EnvEndpoint + "`.",
			},
			"token": schema.StringAttribute{
				Optional:            true,
				Sensitive:           true,
				MarkdownDescription: "Bearer token. Default: the environment variable `" + EnvToken + "`.",
			},
			"wait": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Whether creation waits until the VM runs, deletion until it is gone, and every call as long as the cloud demands " +
					"when it is busy. Default `true`. Set it to `false` if what calls the provider looks again by itself, as Crossplane does.",
			},
		},
	}
}

func (p *cloudProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var m providerModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	for name, v := range map[string]types.String{"endpoint": m.Endpoint, "token": m.Token} {
		if v.IsUnknown() {
			resp.Diagnostics.AddAttributeError(path.Root(name), "Value is not known yet",
				name+": must be known when Terraform plans. Give a value that depends on no resource, or set the environment variable.")
		}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	c, err := api.NewClient(
		cmp.Or(m.Endpoint.ValueString(), os.Getenv(EnvEndpoint)),
		cmp.Or(m.Token.ValueString(), os.Getenv(EnvToken)),
	)
	if err != nil {
		resp.Diagnostics.AddError("Cannot use the local cloud", err.Error()+". Set it in the provider block, or "+EnvEndpoint+" and "+EnvToken+".")
		return
	}
	resp.ResourceData = settings{client: c, wait: m.Wait.IsNull() || m.Wait.ValueBool()}
}

func (p *cloudProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{newVirtualMachine}
}

func (p *cloudProvider) DataSources(context.Context) []func() datasource.DataSource { return nil }
