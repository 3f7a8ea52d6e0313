package lift

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

type testProvider struct{ provider.Provider }

func (testProvider) Metadata(_ context.Context, _ provider.MetadataRequest, r *provider.MetadataResponse) {
	r.TypeName = "test"
}
func (testProvider) Schema(context.Context, provider.SchemaRequest, *provider.SchemaResponse) {}
func (testProvider) DataSources(context.Context) []func() datasource.DataSource               { return nil }
func (testProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return testResource{} }}
}

type testResource struct{ resource.Resource }

func (testResource) Metadata(_ context.Context, _ resource.MetadataRequest, r *resource.MetadataResponse) {
	r.TypeName = "test_thing"
}

func (testResource) Schema(_ context.Context, _ resource.SchemaRequest, r *resource.SchemaResponse) {
	leaf := map[string]schema.Attribute{"x": schema.Int64Attribute{Optional: true}}
	r.Schema = schema.Schema{
		Version: 3,
		Attributes: map[string]schema.Attribute{
			"secret": schema.StringAttribute{Required: true, Sensitive: true, MarkdownDescription: "Hush."},
			"tags":   schema.MapAttribute{Optional: true, ElementType: types.ListType{ElemType: types.StringType}},
			"one":    schema.SingleNestedAttribute{Computed: true, Attributes: leaf},
			"many":   schema.ListNestedAttribute{Optional: true, NestedObject: schema.NestedAttributeObject{Attributes: leaf}},
		},
		Blocks: map[string]schema.Block{"rules": schema.SetNestedBlock{NestedObject: schema.NestedBlockObject{Attributes: leaf}}},
	}
}

// The wanted text is what terraform providers schema -json prints of it.
func TestSchemaJSONIsWhatTerraformPrints(t *testing.T) {
	const want = `{"format_version":"1.0","provider_schemas":{"example.org/a/test":{"resource_schemas":{"test_thing":{"version":3,"block":{
		"attributes":{
			"secret":{"type":"string","description":"Hush.","description_kind":"markdown","required":true,"sensitive":true},
			"tags":{"type":["map",["list","string"]],"description_kind":"plain","optional":true},
			"one":{"nested_type":{"attributes":{"x":{"type":"number","description_kind":"plain","optional":true}},"nesting_mode":"single"},"description_kind":"plain","computed":true},
			"many":{"nested_type":{"attributes":{"x":{"type":"number","description_kind":"plain","optional":true}},"nesting_mode":"list"},"description_kind":"plain","optional":true}},
		"block_types":{"rules":{"nesting_mode":"set","block":{"attributes":{"x":{"type":"number","description_kind":"plain","optional":true}},"description_kind":"plain"}}},
		"description_kind":"plain"}}}}}}`
	got, err := SchemaJSON(context.Background(), "example.org/a/test", testProvider{})
	if err != nil {
		t.Fatal(err)
	}
	var g, w any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(w, g); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
