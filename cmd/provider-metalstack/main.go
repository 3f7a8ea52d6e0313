// Provider-metalstack manages machines of metal-stack.
package main

import (
	"github.com/drover-dev/drover/apis/metalstack/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/metalstack"
	"github.com/drover-dev/drover/internal/operator"
)

func main() {
	operator.Main(operator.Operator{
		Name:        "provider-metalstack",
		Description: "Manages machines of metal-stack.",
		AddToScheme: v1alpha1.AddToScheme,
		Setup:       metalstack.Setup,
	})
}
