// Terraform-provider-localcloud is the Terraform plugin of the local cloud.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/drover-dev/drover/internal/terraform/localcloud"
)

var version = "dev" // set by the linker

func main() {
	debug := flag.Bool("debug", false, "run for a debugger to attach to")
	flag.Parse()
	err := providerserver.Serve(context.Background(), func() provider.Provider { return localcloud.New(version) },
		providerserver.ServeOpts{Address: localcloud.Address, Debug: *debug})
	if err != nil {
		log.Fatal(err)
	}
}
