package lift

import (
	"context"
	"encoding/json"
	"fmt"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// schemaFormat is the version that upjet reads, of the output of
// "terraform providers schema -json".
const schemaFormat = "1.0"

// SchemaJSON returns the output of "terraform providers schema -json" for a provider's resources, without
// Terraform. Address is the provider's.
func SchemaJSON(ctx context.Context, address string, p provider.Provider) ([]byte, error) {
	resp, err := providerserver.NewProtocol6(p)().GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, fmt.Errorf("cannot get the schema of %s: %w", address, err)
	}
	for _, d := range resp.Diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			return nil, fmt.Errorf("cannot get the schema of %s: %s: %s", address, d.Summary, d.Detail)
		}
	}
	resources := make(map[string]*tfjson.Schema, len(resp.ResourceSchemas))
	for name, s := range resp.ResourceSchemas {
		b, err := block(s.Block)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		resources[name] = &tfjson.Schema{Version: uint64(max(0, s.Version)), Block: b}
	}
	return json.Marshal(&tfjson.ProviderSchemas{
		FormatVersion: schemaFormat,
		Schemas:       map[string]*tfjson.ProviderSchema{address: {ResourceSchemas: resources}},
	})
}

func block(b *tfprotov6.SchemaBlock) (*tfjson.SchemaBlock, error) {
	attrs, err := attributes(b.Attributes)
	if err != nil {
		return nil, err
	}
	out := &tfjson.SchemaBlock{
		Attributes:      attrs,
		NestedBlocks:    make(map[string]*tfjson.SchemaBlockType, len(b.BlockTypes)),
		Description:     b.Description,
		DescriptionKind: descriptionKind(b.DescriptionKind),
		Deprecated:      b.Deprecated,
	}
	for _, n := range b.BlockTypes {
		nb, err := block(n.Block)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.TypeName, err)
		}
		out.NestedBlocks[n.TypeName] = &tfjson.SchemaBlockType{
			NestingMode: blockNesting[n.Nesting], Block: nb,
			MinItems: uint64(max(0, n.MinItems)), MaxItems: uint64(max(0, n.MaxItems)),
		}
	}
	return out, nil
}

func attributes(in []*tfprotov6.SchemaAttribute) (map[string]*tfjson.SchemaAttribute, error) {
	out := make(map[string]*tfjson.SchemaAttribute, len(in))
	for _, a := range in {
		ja := &tfjson.SchemaAttribute{
			Description:     a.Description,
			DescriptionKind: descriptionKind(a.DescriptionKind),
			Deprecated:      a.Deprecated,
			Required:        a.Required,
			Optional:        a.Optional,
			Computed:        a.Computed,
			Sensitive:       a.Sensitive,
		}
		var err error
		if a.NestedType != nil {
			ja.AttributeNestedType, err = nested(a.NestedType)
		} else {
			ja.AttributeType, err = ctyType(a.Type)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.Name, err)
		}
		out[a.Name] = ja
	}
	return out, nil
}

func nested(o *tfprotov6.SchemaObject) (*tfjson.SchemaNestedAttributeType, error) {
	attrs, err := attributes(o.Attributes)
	if err != nil {
		return nil, err
	}
	return &tfjson.SchemaNestedAttributeType{Attributes: attrs, NestingMode: objectNesting[o.Nesting]}, nil
}

// ctyType converts a type through JSON, the form that both libraries share.
func ctyType(t tftypes.Type) (cty.Type, error) {
	b, err := t.MarshalJSON()
	if err != nil {
		return cty.NilType, err
	}
	return ctyjson.UnmarshalType(b)
}

func descriptionKind(k tfprotov6.StringKind) tfjson.SchemaDescriptionKind {
	if k == tfprotov6.StringKindMarkdown {
		return tfjson.SchemaDescriptionKindMarkdown
	}
	return tfjson.SchemaDescriptionKindPlain
}

var objectNesting = map[tfprotov6.SchemaObjectNestingMode]tfjson.SchemaNestingMode{
	tfprotov6.SchemaObjectNestingModeSingle: tfjson.SchemaNestingModeSingle,
	tfprotov6.SchemaObjectNestingModeList:   tfjson.SchemaNestingModeList,
	tfprotov6.SchemaObjectNestingModeSet:    tfjson.SchemaNestingModeSet,
	tfprotov6.SchemaObjectNestingModeMap:    tfjson.SchemaNestingModeMap,
}

var blockNesting = map[tfprotov6.SchemaNestedBlockNestingMode]tfjson.SchemaNestingMode{
	tfprotov6.SchemaNestedBlockNestingModeSingle: tfjson.SchemaNestingModeSingle,
	tfprotov6.SchemaNestedBlockNestingModeList:   tfjson.SchemaNestingModeList,
	tfprotov6.SchemaNestedBlockNestingModeSet:    tfjson.SchemaNestingModeSet,
	tfprotov6.SchemaNestedBlockNestingModeMap:    tfjson.SchemaNestingModeMap,
	tfprotov6.SchemaNestedBlockNestingModeGroup:  tfjson.SchemaNestingModeGroup,
}
