// Provider-openstack manages instances of OpenStack.
package main

import (
	"github.com/drover-dev/drover/apis/openstack/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/openstack"
	"github.com/drover-dev/drover/internal/operator"
)

func main() {
	operator.Main(operator.Operator{
		Name:        "provider-openstack",
		Description: "Manages instances of OpenStack.",
		AddToScheme: v1alpha1.AddToScheme,
		Setup:       openstack.Setup,
	})
}
