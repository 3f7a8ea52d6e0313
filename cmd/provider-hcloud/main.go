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
		// Each observation of a server is a request, and Hetzner allows 3600 per hour and project.
		// With this interval, 150 idle servers use half of them.
		Poll:        5 * time.Minute,
		AddToScheme: v1alpha1.AddToScheme,
		Setup:       hcloud.Setup,
	})
}
