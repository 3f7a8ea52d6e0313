// Terraform-provider-drover is the Terraform plugin for NodePools, MachineDeployments and classes.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/drover-dev/drover/internal/terraform/drover"
)

var version = "dev" // set by the linker

func main() {
	debug := flag.Bool("debug", false, "run for a debugger to attach to")
	flag.Parse()
	err := providerserver.Serve(context.Background(), func() provider.Provider { return drover.New(version) },
		providerserver.ServeOpts{Address: drover.Address, Debug: *debug})
	if err != nil {
		log.Fatal(err)
	}
}
