package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
	"github.com/drover-dev/drover/internal/native"
	"github.com/drover-dev/drover/internal/target"
)

const (
	// settle is longer than a creation may take: an API server shows an object as soon as it is written.
	settle = 30 * time.Second
	// answerTimeout ends a call that the API server does not answer.
	answerTimeout = 20 * time.Second
)

// credentials of a cluster. Without a kubeconfig they are those of the provider's own pod.
type credentials struct {
	Kubeconfig string `json:"kubeconfig"`
}

// A dial returns the client of a cluster. It makes no call.
type dial func(credentials) (client.Client, error)

// secretLike is an example of the JSON in the Secret, for errors.
const secretLike = `{"kubeconfig": "..."}`

func configs() providerconfig.Configs {
	return providerconfig.Configs{GroupVersion: v1alpha1.SchemeGroupVersion, Cluster: &v1alpha1.ClusterProviderConfig{}}
}

// open returns the account of a configuration. It makes no call.
func open(pc client.Object, c credentials, to dial, now func() time.Time) (*account, error) {
	config, ok := pc.(*v1alpha1.ClusterProviderConfig)
	if !ok {
		return nil, errors.New("spec.providerConfigRef: must be a ClusterProviderConfig")
	}
	if config.CredentialsSecret() != nil && c.Kubeconfig == "" {
		// Without it, the identity of the pod would be used.
		return nil, errors.New("credentials: kubeconfig: must not be empty with source Secret")
	}
	kube, err := to(c)
	if err != nil {
		return nil, err
	}
	return &account{kube: kube, spec: config.Spec, now: now, kinds: map[schema.GroupKind]keptKind{}}, nil
}

// provider returns the provider of VMs, whose calls go through the clients of dial.
func provider(to dial, now func() time.Time) native.Provider[*v1alpha1.VirtualMachine, credentials] {
	return native.Provider[*v1alpha1.VirtualMachine, credentials]{
		Kind:       v1alpha1.VirtualMachineGroupVersionKind,
		Object:     &v1alpha1.VirtualMachine{},
		List:       &v1alpha1.VirtualMachineList{},
		Configs:    configs(),
		SecretLike: secretLike,
		Open: func(pc client.Object, c credentials) (native.Account[*v1alpha1.VirtualMachine], error) {
			return open(pc, c, to, now)
		},
		Users:  []providerconfig.UserList{&v1alpha1.BootstrapList{}},
		Settle: settle,
	}
}

// Setup adds all controllers of the provider.
func Setup(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	if err := setupBootstraps(mgr, o); err != nil {
		return err
	}
	return native.Setup(mgr, o, provider(connect(mgr.GetConfig()), time.Now), native.InventoryKind[*v1alpha1.VirtualMachineInventory]{
		Kind:   v1alpha1.VirtualMachineInventoryGroupVersionKind,
		Object: &v1alpha1.VirtualMachineInventory{},
		List:   &v1alpha1.VirtualMachineInventoryList{},
	})
}

// connect returns a dial that uses own for credentials without a kubeconfig.
func connect(own *rest.Config) dial {
	return func(c credentials) (client.Client, error) {
		cfg := rest.CopyConfig(own)
		if c.Kubeconfig != "" {
			var err error
			if cfg, err = target.ParseKubeconfig([]byte(c.Kubeconfig)); err != nil {
				return nil, fmt.Errorf("credentials: kubeconfig: %w", err)
			}
		}
		cfg.UserAgent, cfg.Timeout = "drover", answerTimeout
		// The API server limits the rate of calls itself.
		cfg.QPS, cfg.Burst = -1, 0
		s := runtime.NewScheme()
		if err := clientgoscheme.AddToScheme(s); err != nil {
			return nil, err
		}
		kube, err := client.New(cfg, client.Options{Scheme: s})
		if err != nil {
			return nil, errors.New("credentials: kubeconfig: its certificates or its key are not in PEM format, or do not belong together")
		}
		return kube, nil
	}
}
