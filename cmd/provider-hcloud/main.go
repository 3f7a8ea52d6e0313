// Provider-hcloud manages servers of Hetzner Cloud.
package main

import (
	"time"

	"github.com/drover-dev/drover/apis/hcloud/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/hcloud"
	"github.com/drover-dev/drover/internal/operator"
)

func main() {
	operator.Main(operator.Operator{
		Name:        "provider-hcloud",
		Description: "Manages servers of Hetzner Cloud.",
		// A look at a server is a call, and Hetzner takes 3600 an hour of a project: so
		// 150 servers at rest need half of them.
		Poll:        5 * time.Minute,
		AddToScheme: v1alpha1.AddToScheme,
		Setup:       hcloud.Setup,
	})
}
