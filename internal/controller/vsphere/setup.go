package vsphere

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	"github.com/drover-dev/drover/internal/attempt"
	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
	"github.com/drover-dev/drover/internal/operator"
)

// Setup adds all controllers of the provider.
func Setup(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	if err := providerconfig.Setup(mgr, o, configs, &v1alpha1.VirtualMachineList{}); err != nil {
		return fmt.Errorf("cannot set up the controllers of provider configs: %w", err)
	}
	sessions := newPool(time.Now)
	if err := mgr.Add(sessions); err != nil {
		return err
	}
	setupInventories(mgr, o, sessions)
	kind := v1alpha1.VirtualMachineGroupVersionKind
	operator.Gated(mgr, o, func() error { return setupVirtualMachines(mgr, o, sessions) }, append(configs.Kinds(), kind)...)
	return nil
}

func setupVirtualMachines(mgr ctrl.Manager, o controller.Options, sessions *pool) error {
	kind := v1alpha1.VirtualMachineGroupVersionKind
	recorder, again := mr.RecorderFor(mgr, kind), &mr.Again{}
	return mr.Controller[*v1alpha1.VirtualMachine]{
		Kind:   kind,
		Object: &v1alpha1.VirtualMachine{},
		List:   &v1alpha1.VirtualMachineList{},
		Connector: &connector{kube: mgr.GetClient(), pool: sessions, shared: &shared{
			kube:   mgr.GetClient(),
			record: recorder, again: again, memory: &attempt.Memory[note]{}, now: time.Now,
		}},
		Again:    again,
		Recorder: recorder,
		Options:  options(),
	}.Setup(mgr, o)
}

// options of the managed reconciler.
func options() []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		// The external name is the instance UUID of the VM.
		managed.WithInitializers(managed.InitializerFn(mr.NameByUID)),
		// The name is known in advance: a creation whose end was not observed can continue.
		managed.WithDeterministicExternalName(true),
		// A vCenter is consistent, and tasks are observed.
		managed.WithCreationGracePeriod(0),
	}
}
