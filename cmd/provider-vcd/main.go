// Provider-vcd manages virtual machines of VMware Cloud Director.
package main

import (
	"github.com/drover-dev/drover/apis/vcd/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/vcd"
	"github.com/drover-dev/drover/internal/operator"
)

func main() {
	operator.Main(operator.Operator{
		Name:        "provider-vcd",
		Description: "Manages virtual machines of VMware Cloud Director.",
		AddToScheme: v1alpha1.AddToScheme,
		Setup:       vcd.Setup,
	})
}
