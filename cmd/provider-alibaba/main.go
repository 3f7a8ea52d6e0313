// Provider-alibaba manages virtual machines of Alibaba Cloud.
package main

import (
	"github.com/drover-dev/drover/apis/alibaba/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/alibaba"
	"github.com/drover-dev/drover/internal/operator"
)

func main() {
	operator.Main(operator.Operator{
		Name:        "provider-alibaba",
		Description: "Manages virtual machines of Alibaba Cloud.",
		AddToScheme: v1alpha1.AddToScheme,
		Setup:       alibaba.Setup,
	})
}
