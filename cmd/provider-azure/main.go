// Provider-azure manages virtual machines of Azure.
package main

import (
	"github.com/drover-dev/drover/apis/azure/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/azure"
	"github.com/drover-dev/drover/internal/operator"
)

func main() {
	operator.Main(operator.Operator{
		Name:        "provider-azure",
		Description: "Manages virtual machines of Azure.",
		AddToScheme: v1alpha1.AddToScheme,
		Setup:       azure.Setup,
	})
}
