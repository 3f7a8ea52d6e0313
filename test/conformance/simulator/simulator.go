package simulator

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpresource "github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/crossplane/upjet/v2/pkg/controller/handler"
	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/test/kit/guest"
)

// Times of a provider. The backoff is short, because its cloud is local. The poll interval is the
// default of upjet and provider-kubernetes: no test waits for it.
const (
	pollInterval = 10 * time.Minute
	minBackoff   = 200 * time.Millisecond
	maxBackoff   = 3 * time.Second
)

// A Simulator plays one provider and its cloud.
type Simulator struct {
	cloud  *cloud
	client client.Client
	events map[schema.GroupVersionKind]*handler.EventHandler
	stop   context.CancelFunc
	done   sync.WaitGroup

	// withoutPolicies are the namespaces whose resources are reconciled by a provider that runs
	// without management policies.
	withoutPolicies sync.Map
	restarts        *restarts
}

// Start starts a Simulator that plays a description, on a control plane with its CRDs.
func Start(config *rest.Config, d *Description, host *guest.Host) (*Simulator, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 200, 400
	m, err := manager.New(config, manager.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, Logger: logr.Discard()})
	if err != nil {
		return nil, err
	}
	life, stop := context.WithCancel(context.Background())
	s := &Simulator{cloud: newCloud(d, host, m.GetClient()), client: m.GetClient(), events: map[schema.GroupVersionKind]*handler.EventHandler{}, stop: stop}
	s.restarts = newRestarts(func(namespace string) { s.startAgain(life, namespace) })
	for i := range d.Resources {
		if err := s.play(life, m, &d.Resources[i]); err != nil {
			stop()
			return nil, err
		}
	}
	s.done.Go(func() {
		if err := m.Start(life); err != nil && host.Failed != nil {
			host.Failed(fmt.Errorf("simulator of %s: %w", d.Provider, err))
		}
	})
	return s, nil
}

// Stop stops the Simulator. The cloud keeps its VMs and companions.
func (s *Simulator) Stop() {
	s.stop()
	s.done.Wait()
}

func (s *Simulator) play(life context.Context, m manager.Manager, kind *Resource) error {
	gvk := kind.GroupVersionKind()
	km := newKindManager(m, gvk)
	events := handler.NewEventHandler(handler.WithLogger(logging.NewNopLogger()))
	s.events[gvk] = events
	c := &connector{cloud: s.cloud, kind: kind, client: m.GetClient(), restarts: s.restarts}
	if kind.Async {
		c.operations = &operations{client: km.client, events: events, runsCLI: s.cloud.Runtime == TerraformCLI, life: life, all: &s.done, of: map[types.UID]*operation{}}
	}
	options := []managed.ReconcilerOption{
		managed.WithExternalConnector(c), managed.WithPollInterval(pollInterval), managed.WithPollIntervalHook(s.cloud.intervalOf),
		// The cloud finds a resource as soon as it has created it.
		managed.WithCreationGracePeriod(0),
	}
	var initializers []managed.Initializer
	if kind.ExternalName == "" {
		initializers = append(initializers, managed.NewNameAsExternalName(km.client))
	}
	if kind.TagsItself {
		initializers = append(initializers, &tagger{kind: kind, client: km.client})
	}
	options = append(options, managed.WithInitializers(initializers...))
	disabled := managed.NewReconciler(km, xpresource.ManagedKind(gvk), options...)
	enabled := managed.NewReconciler(km, xpresource.ManagedKind(gvk), append(options, managed.WithManagementPolicies())...)
	r := s.restarts.reconcilerOf(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		if _, off := s.withoutPolicies.Load(req.Namespace); off {
			return disabled.Reconcile(ctx, req)
		}
		return enabled.Reconcile(ctx, req)
	}))
	watched := &unstructured.Unstructured{}
	watched.SetGroupVersionKind(gvk)
	return ctrl.NewControllerManagedBy(m).
		Named(strings.ToLower(s.cloud.Provider+"-"+kind.Kind)).
		// As in real providers, a write to a status enqueues no reconcile.
		WithEventFilter(xpresource.DesiredStateChanged()).
		Watches(watched, events).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 4,
			SkipNameValidation:      ptr.To(true),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff),
		}).
		Complete(r)
}

// VMs returns the VMs that the cloud has for the Machines of a namespace.
func (s *Simulator) VMs(namespace string) []CloudVM { return s.cloud.vms(namespace) }

// Beside returns the companions of the Machines of a namespace, and a description of each attempt
// to delete one while its VM used it.
func (s *Simulator) Beside(namespace string) (things, torn []string) {
	return s.cloud.beside(namespace)
}

// Companions returns the companions of the Machines of a namespace, as the cloud has them.
func (s *Simulator) Companions(namespace string) []Companion { return s.cloud.companions(namespace) }

// Refuse makes the cloud refuse the VM of a Machine, until Accept.
func (s *Simulator) Refuse(machine types.NamespacedName, code fn.ErrorCode) error {
	return s.cloud.refuse(machine, code)
}

// Accept ends the refusal or the failing allocation of the VM of a Machine. The provider retries by
// itself.
func (s *Simulator) Accept(ctx context.Context, machine types.NamespacedName) error {
	return s.cloud.accept(ctx, machine)
}

// Lose deletes a VM at the cloud without the provider, which gets no notification.
func (s *Simulator) Lose(ctx context.Context, id string) error { return s.cloud.lose(ctx, id) }

// Interrupt makes the cloud stop a spot VM. A provider that observes the VM then shows that. The
// Node stays.
func (s *Simulator) Interrupt(ctx context.Context, id string) error {
	return s.cloud.interrupt(ctx, id)
}

// PassOver deletes a VM at the cloud without the provider, which still shows the old state. The
// Node stays.
func (s *Simulator) PassOver(ctx context.Context, id string) error { return s.cloud.pass(ctx, id) }

// AddVM adds a VM that no provider created, for the Machines of a namespace. It returns its
// external name.
func (s *Simulator) AddVM(namespace, name string, tags map[string]string, forProvider map[string]any) (string, error) {
	return s.cloud.addVM(namespace, name, tags, forProvider)
}

// FailAllocation makes the cloud accept the VM of a Machine and then fail to place it, until
// Accept.
func (s *Simulator) FailAllocation(machine types.NamespacedName) error {
	return s.cloud.failAllocation(machine)
}

// AskedFor returns how often the provider requested the VM of a Machine.
func (s *Simulator) AskedFor(machine types.NamespacedName) int { return s.cloud.askedFor(machine) }

// SlowDown makes the VMs of a namespace take this long to start. Their provider then ignores the
// annotation poll-interval, as one with an older crossplane-runtime does.
func (s *Simulator) SlowDown(namespace string, start time.Duration) {
	s.cloud.slowDown(namespace, start)
}

// DieAtCreation makes the provider of a namespace die when the cloud has created its next VM and
// the provider has not recorded it yet. The provider then restarts.
func (s *Simulator) DieAtCreation(namespace string) { s.restarts.at(namespace) }

// Died returns how often the provider of a namespace died.
func (s *Simulator) Died(namespace string) int { return s.restarts.count(namespace) }

// RunWithPolicies restarts the provider of a namespace, with management policies or without.
func (s *Simulator) RunWithPolicies(ctx context.Context, namespace string, enabled bool) error {
	if enabled {
		s.withoutPolicies.Delete(namespace)
	} else {
		s.withoutPolicies.Store(namespace, true)
	}
	return s.poke(ctx, namespace)
}

// Admit sets the only password that the cloud accepts from a ProviderConfig.
func (s *Simulator) Admit(config, password string) { s.cloud.admit(config, password) }

// startAgain restarts the provider of a namespace after its death: a process that starts reconciles
// all resources.
func (s *Simulator) startAgain(life context.Context, namespace string) {
	s.done.Go(func() {
		select {
		case <-life.Done():
		case <-time.After(downTime):
			_ = s.poke(life, namespace)
		}
	})
}

// poke enqueues a reconcile of all resources of a namespace.
func (s *Simulator) poke(ctx context.Context, namespace string, options ...client.ListOption) error {
	for gvk, events := range s.events {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := s.client.List(ctx, l, append(options, client.InNamespace(namespace))...); err != nil {
			return err
		}
		for _, o := range l.Items {
			events.RequestReconcile(handler.NoRateLimiter, client.ObjectKeyFromObject(&o), nil)
		}
	}
	return nil
}

// Objects returns the objects that Crossplane would create for the provider's package: the kind of
// its configurations, and the right of Crossplane to compose its resources.
func (d *Description) Objects() []client.Object {
	gvk := schema.FromAPIVersionAndKind(d.ProviderConfig.APIVersion, d.ProviderConfig.Kind)
	plural := strings.ToLower(gvk.Kind) + "s"
	open := extv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	crd := &extv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: extv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + gvk.Group},
		Spec: extv1.CustomResourceDefinitionSpec{
			Group: gvk.Group, Scope: extv1.ClusterScoped,
			Names: extv1.CustomResourceDefinitionNames{Kind: gvk.Kind, ListKind: gvk.Kind + "List", Plural: plural, Singular: strings.ToLower(gvk.Kind)},
			Versions: []extv1.CustomResourceDefinitionVersion{{
				Name: gvk.Version, Served: true, Storage: true,
				Schema: &extv1.CustomResourceValidation{OpenAPIV3Schema: &extv1.JSONSchemaProps{
					Type: "object", Properties: map[string]extv1.JSONSchemaProps{"spec": open, "status": open},
				}},
			}},
		},
	}
	role := &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: "simulator:" + d.Provider, Labels: map[string]string{"rbac.crossplane.io/aggregate-to-crossplane": "true"}},
	}
	for _, r := range d.Resources {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{r.GroupVersionKind().Group}, Resources: []string{"*"}, Verbs: []string{"*"}})
	}
	return []client.Object{crd, role}
}
