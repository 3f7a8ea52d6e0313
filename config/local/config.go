// Package local configures the managed resources that upjet generates from the local cloud's
// Terraform provider.
package local

import (
	"context"
	"fmt"

	ujconfig "github.com/crossplane/upjet/v2/pkg/config"

	"github.com/drover-dev/drover/internal/lift"
	"github.com/drover-dev/drover/internal/terraform/localcloud"
)

// Group of the managed resources.
const Group = "local.drover.dev"

// VirtualMachine is the name of the VM resource in Terraform.
const VirtualMachine = "localcloud_virtual_machine"

// metadata replaces the data that upjet usually scrapes from Terraform's registry. The schema
// documents the fields.
const metadata = `name: drover-dev/localcloud
resources:
  localcloud_virtual_machine:
    description: A virtual machine of the local cloud.
`

// externalNames has, for each resource, the source of its name in the cloud. Resources that are not
// in the map are not generated.
var externalNames = map[string]ujconfig.ExternalName{
	// The cloud assigns it at creation.
	VirtualMachine: ujconfig.IdentifierFromProvider,
}

// Provider returns the configuration that both the generator and the controllers use.
func Provider(ctx context.Context) (*ujconfig.Provider, error) {
	p := localcloud.New("")
	schema, err := lift.SchemaJSON(ctx, localcloud.Address, p)
	if err != nil {
		return nil, fmt.Errorf("cannot configure the provider of %s: %w", Group, err)
	}
	include := make([]string, 0, len(externalNames))
	for name := range externalNames {
		include = append(include, name+"$")
	}
	pc := ujconfig.NewProvider(schema, localcloud.TypeName, lift.Module, []byte(metadata),
		ujconfig.WithRootGroup(Group),
		ujconfig.WithShortName("local"),
		ujconfig.WithBasePackages(ujconfig.BasePackages{}),
		ujconfig.WithIncludeList(nil),
		ujconfig.WithTerraformPluginFrameworkIncludeList(include),
		ujconfig.WithTerraformPluginFrameworkProvider(p),
		ujconfig.WithDefaultResourceOptions(func(r *ujconfig.Resource) {
			r.ExternalName = externalNames[r.Name]
			r.ShortGroup = "" // The kinds are in Group itself.
			r.Version = "v1alpha1"
			// The provider does not wait for the end of operations, see [lift.Kind].
			r.UseAsync = false
		}),
	)
	pc.AddResourceConfigurator(VirtualMachine, func(r *ujconfig.Resource) {
		r.Kind = "VirtualMachine"
		// The cloud's default zone is in the status. Writing it to the spec too would cost an
		// update per VM.
		r.LateInitializer.IgnoredFields = []string{"zone"}
	})
	pc.ConfigureResources()
	return pc, nil
}
