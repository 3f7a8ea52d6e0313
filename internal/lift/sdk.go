package lift

import (
	"encoding/json"
	"fmt"

	ujconfig "github.com/crossplane/upjet/v2/pkg/config"
	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/zclconf/go-cty/cty"
)

// An SDKProvider is a Terraform provider written with terraform-plugin-sdk.
type SDKProvider struct {
	// Name of the provider in Terraform's registry, like hetznercloud/hcloud.
	Name string
	// Prefix of its resources, without _, like hcloud.
	Prefix string
	// Group of the managed resources, and the short name by which kubectl has them all.
	Group, ShortName string
	// Provider itself. The configuration of a resource changes its schema.
	Provider *schema.Provider
	// Descriptions of the lifted resources, by their names in Terraform. The cloud gives them their external
	// names.
	Descriptions map[string]string
	// Rules of the lifted resources, by their names in Terraform, which has no such rules in its schema.
	Rules map[string][]Rule
}

// A Rule is a validation rule of the spec of a managed resource.
type Rule struct {
	// Rule is in CEL, and self is the spec. Message is the error, which names the fields.
	Rule, Message string
}

// RuleMarker begins the line of a rule in the comment of a managed resource's type, until the generator moves it to the
// spec.
const RuleMarker = "// +kubebuilder:validation:XValidation:"

func (r Rule) marker() string {
	return fmt.Sprintf("\n%srule=%q,message=%q", RuleMarker, r.Rule, r.Message)
}

// Configuration is the configuration that both the generator and the controllers use,
// to which the resources' own are to be added.
func (p SDKProvider) Configuration() (*ujconfig.Provider, error) {
	schemaJSON, metadata, include, err := p.documents()
	if err != nil {
		return nil, err
	}
	return ujconfig.NewProvider(schemaJSON, p.Prefix, Module, metadata,
		ujconfig.WithRootGroup(p.Group),
		ujconfig.WithShortName(p.ShortName),
		ujconfig.WithBasePackages(ujconfig.BasePackages{}),
		ujconfig.WithIncludeList(nil),
		ujconfig.WithTerraformPluginSDKIncludeList(include),
		ujconfig.WithTerraformProvider(p.Provider),
		ujconfig.WithDefaultResourceOptions(func(r *ujconfig.Resource) {
			r.ExternalName = ujconfig.IdentifierFromProvider
			r.ShortGroup = "" // The kinds are in Group itself.
			r.Version = "v1alpha1"
			r.UseAsync = false
		}),
	), nil
}

// documents that upjet reads. The schema of a resource is taken from the provider
// itself; the JSON only has to name it.
func (p SDKProvider) documents() (schemaJSON, metadata []byte, include []string, err error) {
	type described struct {
		Description string `json:"description"`
	}
	named, about := map[string]*tfjson.Schema{}, map[string]described{}
	for name, description := range p.Descriptions {
		named[name] = &tfjson.Schema{Block: &tfjson.SchemaBlock{Attributes: map[string]*tfjson.SchemaAttribute{
			"id": {AttributeType: cty.String, Computed: true},
		}}}
		// upjet copies the description into the comment of the type.
		for _, r := range p.Rules[name] {
			description += r.marker()
		}
		about[name] = described{description}
		include = append(include, name+"$")
	}
	schemaJSON, err = json.Marshal(&tfjson.ProviderSchemas{
		FormatVersion: schemaFormat,
		Schemas:       map[string]*tfjson.ProviderSchema{"registry.terraform.io/" + p.Name: {ResourceSchemas: named}},
	})
	if err != nil {
		return nil, nil, nil, err
	}
	metadata, err = json.Marshal(map[string]any{"name": p.Name, "resources": about})
	return schemaJSON, metadata, include, err
}

// Hide hides fields of a resource from its users: Terraform then uses its own defaults. They are still shown in
// the status.
func Hide(r *ujconfig.Resource, fields ...string) {
	for _, f := range fields {
		r.TerraformResource.Schema[f].Default = nil
	}
	ujconfig.MoveToStatus(r.TerraformResource, fields...)
}
