// Provider-terraform manages virtual machines that are resources of Terraform providers.
package main

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/drover-dev/drover/apis/terraform/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/terraform"
	"github.com/drover-dev/drover/internal/operator"
)

// flags are the flags that only this provider has.
type flags struct {
	PluginDir string `help:"Directory of the Terraform providers: HOST/NAMESPACE/TYPE/VERSION/OS_ARCH/terraform-provider-TYPE_vVERSION." default:"/plugins" env:"PLUGIN_DIR"`
	// StateNamespace is by default the namespace of the pod.
	StateNamespace string `help:"Namespace of the Secrets with the Terraform states. Users must not be able to read or write Secrets there. Default: where the pod runs." default:"crossplane-system" env:"STATE_NAMESPACE,POD_NAMESPACE"`
}

// concurrency is high, because a creation occupies its worker until the Terraform provider has
// completed it.
const concurrency = 200

func main() {
	f := &flags{}
	operator.Main(operator.Operator{
		Name:        "provider-terraform",
		Description: "Manages virtual machines that are resources of Terraform providers.",
		AddToScheme: v1alpha1.AddToScheme,
		Flags:       f,
		Concurrency: concurrency,
		Setup: func(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
			return terraform.Options{Plugins: f.PluginDir, Namespace: f.StateNamespace}.Setup(ctx, mgr, o)
		},
	})
}
