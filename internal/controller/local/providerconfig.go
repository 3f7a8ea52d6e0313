package local

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/providerconfig"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/local/v1alpha1"
	"github.com/drover-dev/drover/internal/operator"
)

// setupProviderConfigs adds the controllers that count the users of provider
// configs, and keep those that have some.
func setupProviderConfigs(mgr ctrl.Manager, o controller.Options) error {
	usage := v1alpha1.CRDGroupVersion.WithKind(v1alpha1.ProviderConfigUsageKind)
	for kind, obj := range map[string]client.Object{
		v1alpha1.ProviderConfigKind:        &v1alpha1.ProviderConfig{},
		v1alpha1.ClusterProviderConfigKind: &v1alpha1.ClusterProviderConfig{},
	} {
		config := v1alpha1.CRDGroupVersion.WithKind(kind)
		operator.Gated(mgr, o, func() error {
			name := providerconfig.ControllerName(config.GroupKind().String())
			r := providerconfig.NewReconciler(mgr, resource.ProviderConfigKinds{
				Config:    config,
				Usage:     usage,
				UsageList: usage.GroupVersion().WithKind(usage.Kind + "List"),
			},
				providerconfig.WithLogger(o.Logger.WithValues("controller", name)),
				//lint:ignore SA1019 What crossplane-runtime takes.
				providerconfig.WithRecorder(event.NewAPIRecorder(mgr.GetEventRecorderFor(name))))
			return ctrl.NewControllerManagedBy(mgr).
				Named(name).
				WithOptions(o.ForControllerRuntime()).
				For(obj).
				Watches(&v1alpha1.ProviderConfigUsage{}, &resource.EnqueueRequestForProviderConfig{Kind: kind}).
				Complete(ratelimiter.NewReconciler(name, r, o.GlobalRateLimiter))
		}, config, usage)
	}
	return nil
}
