// Command drover-karpenter is Karpenter with Drover as its cloud provider: pods that do not fit get Machines. It runs for one
// target cluster, whose kubeconfig is that of KUBECONFIG or of the cluster that it runs in.
//
// "drover-karpenter crds" prints the CustomResourceDefinitions that the target cluster needs.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/lifecycle"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator"
	karpenteroptions "sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/karpenter/apis"
	"github.com/drover-dev/drover/karpenter/apis/v1alpha1"
	"github.com/drover-dev/drover/karpenter/internal/control"
	"github.com/drover-dev/drover/karpenter/internal/controller"
	"github.com/drover-dev/drover/karpenter/internal/drover"
	"github.com/drover-dev/drover/karpenter/internal/offer"
	"github.com/drover-dev/drover/karpenter/internal/options"
	"github.com/drover-dev/drover/karpenter/internal/provider"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "crds" {
		lo.Must0(crds())
		return
	}
	lo.Must0(v1alpha1.AddToScheme(scheme.Scheme))
	karpenteroptions.Injectables = append(karpenteroptions.Injectables, &options.Options{})
	// A Node has this taint until Drover has found it. Karpenter must not take it for one of the Node's own: it would start
	// another Node for the pods that wait for this one.
	scheduling.KnownEphemeralTaints = append(scheduling.KnownEphemeralTaints, corev1.Taint{Key: drover.TaintUninitialized, Effect: corev1.TaintEffectNoSchedule})

	ctx, op := operator.NewOperator()
	if err := run(ctx, op); err != nil {
		ctrl.Log.Error(err, "cannot start")
		os.Exit(1)
	}
}

func run(ctx context.Context, op *operator.Operator) error {
	o := options.FromContext(ctx)
	if err := o.Validate(); err != nil {
		return err
	}
	// The time of the providers: physical machines take longer than Karpenter allows a cloud by default.
	lifecycle.LaunchTimeout = o.VMTimeout
	config, err := controlConfig(o.ControlKubeconfig, op.GetConfig())
	if err != nil {
		return err
	}
	system, err := op.KubernetesInterface.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("cannot identify the target cluster: %w", err)
	}
	controlCluster, cluster, err := control.New(config, o.MachineNamespace, string(system.UID))
	if err != nil {
		return err
	}
	if err := op.Add(cluster); err != nil {
		return err
	}
	undecorated := provider.New(op.GetClient(), controlCluster, offer.NewUnavailable(clock.RealClock{}), o.VMTimeout)
	decorated := overlay.Decorate(undecorated, op.GetClient(), op.InstanceTypeStore)
	op.WithControllers(ctx, controllers.NewControllers(
		ctx, op.Manager, op.Clock, op.GetClient(), op.EventRecorder, decorated, undecorated,
		state.NewCluster(op.Clock, op.GetClient(), decorated), op.InstanceTypeStore,
	)...).WithControllers(ctx,
		&controller.NodeClass{Target: op.GetClient(), Control: controlCluster, Cache: cluster.GetCache()},
		&controller.Machine{
			Target: op.GetClient(), Live: op.GetAPIReader(), Control: controlCluster, Cache: cluster.GetCache(),
			Recorder: op.GetEventRecorderFor("drover-karpenter"),
		},
	).Start(ctrl.SetupSignalHandler())
	return nil
}

// controlConfig returns the access to the control cluster.
func controlConfig(kubeconfig string, target *rest.Config) (*rest.Config, error) {
	switch kubeconfig {
	case "":
		return rest.CopyConfig(target), nil
	case options.InCluster:
		return rest.InClusterConfig()
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--control-kubeconfig: %q: %w", kubeconfig, err)
	}
	config.QPS, config.Burst = target.QPS, target.Burst
	return config, nil
}

func crds() error {
	all, err := apis.CRDs()
	if err != nil {
		return err
	}
	for _, crd := range all {
		b, err := yaml.Marshal(crd)
		if err != nil {
			return err
		}
		fmt.Printf("---\n%s", b)
	}
	return nil
}
