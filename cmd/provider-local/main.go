// Provider-local manages virtual machines of the local cloud.
package main

import (
	"github.com/drover-dev/drover/apis/local/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/local"
	"github.com/drover-dev/drover/internal/operator"
)

func main() {
	operator.Main(operator.Operator{
		Name:        "provider-local",
		Description: "Manages virtual machines of Drover's local cloud.",
		AddToScheme: v1alpha1.AddToScheme,
		Setup:       local.Setup,
	})
}
