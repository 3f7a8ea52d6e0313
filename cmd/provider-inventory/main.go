// Provider-inventory lists the VMs of clouds whose VMs are resources of other providers.
package main

import (
	"time"

	"github.com/drover-dev/drover/internal/controller/inventories"
	"github.com/drover-dev/drover/internal/operator"
)

func main() {
	operator.Main(operator.Operator{
		Name:        "provider-inventory",
		Description: "Lists the VMs of clouds whose VMs are resources of other providers.",
		// An inventory has an interval of its own in its spec.
		Poll:        5 * time.Minute,
		AddToScheme: inventories.AddToScheme,
		Setup:       inventories.Setup,
	})
}
