// Provider-aws manages virtual machines of AWS.
package main

import (
	"github.com/drover-dev/drover/apis/aws/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/aws"
	"github.com/drover-dev/drover/internal/operator"
)

func main() {
	operator.Main(operator.Operator{
		Name:        "provider-aws",
		Description: "Manages virtual machines of AWS.",
		AddToScheme: v1alpha1.AddToScheme,
		Setup:       aws.Setup,
	})
}
