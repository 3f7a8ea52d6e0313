package operator

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/gate"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/customresourcesgate"
	authv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// servedTimeout is how long an API server may take to serve a kind after it has accepted its CRD: seconds, if it is busy.
const servedTimeout = time.Minute

// Gated calls setup once the API server serves all kinds: at once, or later while the manager runs. An error then
// stops the manager, since a provider without controllers must not appear to be running.
func Gated(mgr ctrl.Manager, o controller.Options, setup func() error, kinds ...schema.GroupVersionKind) {
	o.Gate.Register(func() {
		err := awaitServed(mgr.GetRESTMapper(), kinds)
		if err == nil {
			err = setup()
		}
		if err == nil {
			return
		}
		err = fmt.Errorf("cannot set up the controller of %v: %w", kinds, err)
		if aerr := mgr.Add(manager.RunnableFunc(func(context.Context) error { return err })); aerr != nil {
			o.Logger.Info("Cannot end the manager", "error", aerr, "because", err)
		}
	}, kinds...)
}

// awaitServed waits until discovery has all kinds, as setups need: an API server accepts the names of a CRD before that.
func awaitServed(mapper meta.RESTMapper, kinds []schema.GroupVersionKind) error {
	for _, kind := range kinds {
		var missing error
		served := func(context.Context) (bool, error) {
			_, missing = mapper.RESTMapping(kind.GroupKind(), kind.Version)
			return missing == nil, nil
		}
		if err := wait.PollUntilContextTimeout(context.Background(), servedTimeout/300, servedTimeout, true, served); err != nil {
			return cmp.Or(missing, err)
		}
	}
	return nil
}

// newGate opens as CRDs appear. A provider that may not watch CRDs was installed without the SafeStart
// capability: then all CRDs existed before it started.
func newGate(ctx context.Context, mgr ctrl.Manager, o controller.Options) (controller.Gate, error) {
	may, err := mayWatchCRDs(ctx, mgr)
	if err != nil {
		return nil, err
	}
	if !may {
		o.Logger.Info("Not allowed to watch CRDs: starting all controllers at once")
		return openGate{}, nil
	}
	o.Gate = &gate.Gate[schema.GroupVersionKind]{}
	return o.Gate, customresourcesgate.Setup(mgr, o)
}

func mayWatchCRDs(ctx context.Context, mgr ctrl.Manager) (bool, error) {
	// The manager's client reads from caches that have not started.
	c, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return false, err
	}
	for _, verb := range []string{"get", "list", "watch"} {
		sar := &authv1.SelfSubjectAccessReview{Spec: authv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authv1.ResourceAttributes{
			Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions", Verb: verb,
		}}}
		if err := c.Create(ctx, sar); err != nil {
			return false, fmt.Errorf("cannot ask whether CRDs may be watched: %w", err)
		}
		if !sar.Status.Allowed {
			return false, nil
		}
	}
	return true, nil
}

type openGate struct{}

func (openGate) Register(fn func(), _ ...schema.GroupVersionKind) { fn() }

func (openGate) Set(schema.GroupVersionKind, bool) bool { return false }

func addToScheme(s *runtime.Scheme, more func(*runtime.Scheme) error) error {
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, more} {
		if err := add(s); err != nil {
			return err
		}
	}
	return nil
}
