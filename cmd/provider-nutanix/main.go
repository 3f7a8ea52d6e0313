// Provider-nutanix manages virtual machines of Nutanix AHV.
package main

import (
	"github.com/drover-dev/drover/apis/nutanix/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/nutanix"
	"github.com/drover-dev/drover/internal/operator"
)

func main() {
	operator.Main(operator.Operator{
		Name:        "provider-nutanix",
		Description: "Manages virtual machines of Nutanix AHV.",
		AddToScheme: v1alpha1.AddToScheme,
		Setup:       nutanix.Setup,
	})
}
