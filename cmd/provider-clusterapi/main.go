// Provider-clusterapi manages VMs of the infrastructure providers of Cluster API.
package main

import (
	"github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/clusterapi"
	"github.com/drover-dev/drover/internal/operator"
)

func main() {
	operator.Main(operator.Operator{
		Name:        "provider-clusterapi",
		Description: "Manages VMs of the infrastructure providers of Cluster API.",
		AddToScheme: v1alpha1.AddToScheme,
		Setup:       clusterapi.Setup,
	})
}
