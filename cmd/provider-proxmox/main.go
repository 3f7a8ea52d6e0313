// Provider-proxmox manages virtual machines of Proxmox VE.
package main

import (
	"github.com/drover-dev/drover/apis/proxmox/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/proxmox"
	"github.com/drover-dev/drover/internal/operator"
)

func main() {
	operator.Main(operator.Operator{
		Name:        "provider-proxmox",
		Description: "Manages virtual machines of Proxmox VE.",
		AddToScheme: v1alpha1.AddToScheme,
		Setup:       proxmox.Setup,
	})
}
