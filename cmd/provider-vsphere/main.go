// Provider-vsphere manages virtual machines of vCenters.
package main

import (
	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/vsphere"
	"github.com/drover-dev/drover/internal/operator"
)

func main() {
	operator.Main(operator.Operator{
		Name:        "provider-vsphere",
		Description: "Manages virtual machines of vCenters.",
		AddToScheme: v1alpha1.AddToScheme,
		Setup:       vsphere.Setup,
	})
}
