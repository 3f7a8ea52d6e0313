package azure

import (
	"context"
	"net/http"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/drover-dev/drover/apis/azure/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
	"github.com/drover-dev/drover/internal/native"
)

// settle is the time after which the lists certainly show each resource that Azure accepted.
const settle = time.Minute

// provider returns the provider of VMs. Its calls use the transport next, or the network if next is nil.
func provider(next http.RoundTripper) native.Provider[*v1alpha1.VirtualMachine, credentials] {
	return native.Provider[*v1alpha1.VirtualMachine, credentials]{
		Kind:   v1alpha1.VirtualMachineGroupVersionKind,
		Object: &v1alpha1.VirtualMachine{},
		List:   &v1alpha1.VirtualMachineList{},
		Configs: providerconfig.Configs{
			GroupVersion: v1alpha1.SchemeGroupVersion,
			Namespaced:   &v1alpha1.ProviderConfig{},
			Cluster:      &v1alpha1.ClusterProviderConfig{},
		},
		SecretLike: `{"tenantId": "...", "clientId": "...", "clientSecret": "..."}`,
		Open:       open(next, time.Now),
		Settle:     settle,
		Repeatable: true,
	}
}

// Setup adds all controllers of the provider.
func Setup(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	return native.Setup(mgr, o, provider(nil), native.InventoryKind[*v1alpha1.VirtualMachineInventory]{
		Kind:   v1alpha1.VirtualMachineInventoryGroupVersionKind,
		Object: &v1alpha1.VirtualMachineInventory{},
		List:   &v1alpha1.VirtualMachineInventoryList{},
	})
}
