package drover

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TypeName is the prefix of the provider's resources.
const TypeName = "drover"

// Address of the provider in a required_providers block.
const Address = "registry.terraform.io/drover-dev/drover"

type droverProvider struct{ version string }

// New returns the provider. Version is the one that it reports to Terraform.
func New(version string) provider.Provider { return &droverProvider{version: version} }

type providerModel struct {
	ConfigPath           types.String `tfsdk:"config_path"`
	ConfigContext        types.String `tfsdk:"config_context"`
	Host                 types.String `tfsdk:"host"`
	Token                types.String `tfsdk:"token"`
	ClusterCACertificate types.String `tfsdk:"cluster_ca_certificate"`
}

func (p *droverProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, resp.Version = TypeName, p.version
}

func (p *droverProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Pools of worker machines in a Kubernetes cluster with Drover. Without any settings, the cluster is the one that kubectl talks to: " +
			"`KUBECONFIG`, or else `~/.kube/config`, or else the ServiceAccount of the pod.",
		Attributes: map[string]schema.Attribute{
			"config_path": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Path of a kubeconfig.",
			},
			"config_context": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Context of the kubeconfig. Default: its current context.",
			},
			"host": schema.StringAttribute{
				Optional: true, MarkdownDescription: "URL of the API server. It wins over the one of the kubeconfig.",
			},
			"token": schema.StringAttribute{
				Optional: true, Sensitive: true, MarkdownDescription: "Bearer token. It wins over the credentials of the kubeconfig.",
			},
			"cluster_ca_certificate": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Certificates of the API server's authority, in PEM. They win over those of the kubeconfig.",
			},
		},
	}
}

func (p *droverProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var m providerModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	for _, v := range []types.String{m.ConfigPath, m.ConfigContext, m.Host, m.Token, m.ClusterCACertificate} {
		if v.IsUnknown() {
			// The cluster is created in the same apply. Plans warn, and continue without it.
			return
		}
	}
	config, err := m.restConfig()
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("config_path"), "Cannot find the cluster", err.Error())
		return
	}
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		resp.Diagnostics.AddError("Cannot talk to the cluster", err.Error())
		return
	}
	resp.ResourceData, resp.DataSourceData = c, c
}

func (m providerModel) restConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = m.ConfigPath.ValueString()
	overrides := &clientcmd.ConfigOverrides{
		CurrentContext: m.ConfigContext.ValueString(),
		AuthInfo:       clientcmdapi.AuthInfo{Token: m.Token.ValueString()},
		ClusterInfo: clientcmdapi.Cluster{
			Server: m.Host.ValueString(), CertificateAuthorityData: []byte(m.ClusterCACertificate.ValueString()),
		},
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, err
	}
	// A plan of many pools sends requests for each.
	config.QPS, config.Burst = 50, 100
	config.UserAgent = "terraform-provider-drover"
	return config, nil
}

func (p *droverProvider) Resources(context.Context) []func() resource.Resource {
	var out []func() resource.Resource
	for _, k := range kinds {
		out = append(out, func() resource.Resource { return &object{kind: k} })
	}
	return out
}

func (p *droverProvider) DataSources(context.Context) []func() datasource.DataSource {
	var out []func() datasource.DataSource
	for _, k := range kinds {
		out = append(out, func() datasource.DataSource { return &source{kind: k} })
	}
	return out
}

// errorOf returns the first error of diagnostics, nil if there is none.
func errorOf(diags diag.Diagnostics) error {
	for _, d := range diags.Errors() {
		return fmt.Errorf("%s: %s", d.Summary(), d.Detail())
	}
	return nil
}
