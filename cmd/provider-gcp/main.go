// Provider-gcp manages virtual machines of Google Cloud.
package main

import (
	"github.com/drover-dev/drover/apis/gcp/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/gcp"
	"github.com/drover-dev/drover/internal/operator"
)

func main() {
	operator.Main(operator.Operator{
		Name:        "provider-gcp",
		Description: "Manages virtual machines of Google Cloud.",
		AddToScheme: v1alpha1.AddToScheme,
		Setup:       gcp.Setup,
	})
}
