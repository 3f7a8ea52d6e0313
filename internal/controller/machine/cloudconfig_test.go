package machine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/plan"
)

// configuration of the cloud in a parent domain of the VM's group, and one of a namespace.
var (
	configKind     = schema.GroupVersionKind{Group: "cloud.example.org", Version: "v1beta1", Kind: "ClusterProviderConfig"}
	ofTeamKind     = schema.GroupVersionKind{Group: "cloud.example.org", Version: "v1beta1", Kind: "ProviderConfig"}
	foreignKind    = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "ClusterProviderConfig"}
	nestedVMsGroup = "compute." + vmKind.Group
)

// countingMapper counts the questions that a mapper answers by reading from the API server.
type countingMapper struct {
	apimeta.RESTMapper
	asked int
}

func (c *countingMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*apimeta.RESTMapping, error) {
	c.asked++
	return c.RESTMapper.RESTMapping(gk, versions...)
}

func mapperOf(kinds ...schema.GroupVersionKind) *countingMapper {
	var versions []schema.GroupVersion
	for _, k := range kinds {
		versions = append(versions, k.GroupVersion())
	}
	m := apimeta.NewDefaultRESTMapper(versions)
	for _, k := range kinds {
		scope := apimeta.RESTScopeRoot
		if k.Kind == "ProviderConfig" {
			scope = apimeta.RESTScopeNamespace
		}
		m.Add(k, scope)
	}
	return &countingMapper{RESTMapper: m}
}

func TestTheKindOfAConfigurationIsThatOfTheNearestDomain(t *testing.T) {
	nearer := schema.GroupVersionKind{Group: nestedVMsGroup, Version: "v1", Kind: "ClusterProviderConfig"}
	for name, tc := range map[string]struct {
		kinds      []schema.GroupVersionKind
		kind       string
		want       schema.GroupVersionKind
		namespaced bool
	}{
		"OfTheGroupOfTheVM":           {[]schema.GroupVersionKind{configKind, nearer}, "ClusterProviderConfig", nearer, false},
		"OfAParentDomain":             {[]schema.GroupVersionKind{configKind}, "ClusterProviderConfig", configKind, false},
		"OfANamespace":                {[]schema.GroupVersionKind{configKind, ofTeamKind}, "ProviderConfig", ofTeamKind, true},
		"NotOfADomainOfManyProducts":  {[]schema.GroupVersionKind{foreignKind}, "ClusterProviderConfig", schema.GroupVersionKind{}, false},
		"NoneIsInstalled":             {nil, "ClusterProviderConfig", schema.GroupVersionKind{}, false},
		"NotOfAnotherKindOfTheDomain": {[]schema.GroupVersionKind{configKind}, "ProviderConfig", schema.GroupVersionKind{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := mapperOf(tc.kinds...)
			k := &configKinds{mapper: m}
			for range 2 {
				got, namespaced, ok := k.of(nestedVMsGroup, tc.kind)
				if got != tc.want || namespaced != tc.namespaced || ok == tc.want.Empty() {
					t.Errorf("%s, namespaced %t, found %t", got, namespaced, ok)
				}
			}
			if once := m.asked; !tc.want.Empty() && once > 2 {
				t.Errorf("the mapper was asked %d times: a kind that was found is remembered", once)
			}
		})
	}
}

// answers is a reader whose answer about configurations is given.
type answers struct {
	client.Reader
	err   error
	asked []client.ObjectKey
}

func (a *answers) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if obj.GetObjectKind().GroupVersionKind().Group != configKind.Group || obj.GetObjectKind().GroupVersionKind().Kind == vmKind.Kind {
		return a.Reader.Get(ctx, key, obj, opts...)
	}
	a.asked = append(a.asked, key)
	return a.err
}

// configured is a world whose VMs refer to a configuration, about which the API server answers with err.
func configured(t *testing.T, kind string, err error) (*world, *answers) {
	t.Helper()
	w := living(t)
	w.step() // The finalizer.
	a := &answers{Reader: w.client, err: err}
	w.r.live, w.r.configs = a, &configKinds{mapper: mapperOf(configKind, ofTeamKind)}
	script := drover(t)
	w.script = func(ctx context.Context, req *fnRequest) (*fnResponse, error) {
		rsp, err := script(ctx, req)
		if err != nil {
			return rsp, err
		}
		vm, ok := rsp.GetDesired().GetResources()[v1alpha1.ResourceVM]
		if !ok {
			return rsp, nil
		}
		raw := vm.GetResource().AsMap()
		raw["spec"].(map[string]any)["providerConfigRef"] = map[string]any{"kind": kind, "name": "absent"}
		vm.Resource = structOf(t, raw)
		if v, known := req.GetContext().GetFields()[step.ContextMissingConfig]; known {
			missing := plan.MissingConfig{}
			into(t, v.GetStructValue(), &missing)
			delete(rsp.Desired.Resources, v1alpha1.ResourceVM)
			rsp.Conditions = append(rsp.Conditions, condition("Valid", 2, missing.Kind+missing.Namespace))
		}
		return rsp, nil
	}
	return w, a
}

func TestNoVMIsCreatedWithoutTheConfigurationOfItsCloud(t *testing.T) {
	missing := kerrors.NewNotFound(schema.GroupResource{Group: configKind.Group, Resource: "clusterproviderconfigs"}, "absent")
	for name, tc := range map[string]struct {
		kind    string
		err     error
		created bool
		asked   []client.ObjectKey
	}{
		"MissingInTheCluster":         {kind: "ClusterProviderConfig", err: missing, asked: []client.ObjectKey{{Name: "absent"}}},
		"MissingInTheNamespace":       {kind: "ProviderConfig", err: missing, asked: []client.ObjectKey{{Namespace: "ns", Name: "absent"}}},
		"ThereIsOne":                  {kind: "ClusterProviderConfig", created: true, asked: []client.ObjectKey{{Name: "absent"}}},
		"ARightIsMissing":             {kind: "ClusterProviderConfig", err: kerrors.NewForbidden(schema.GroupResource{}, "absent", nil), created: true, asked: []client.ObjectKey{{Name: "absent"}}},
		"TheAPIServerDoesNotAnswer":   {kind: "ClusterProviderConfig", err: errors.New("connection refused"), created: true, asked: []client.ObjectKey{{Name: "absent"}}},
		"AKindThatDroverDoesNotKnow":  {kind: "StoreConfig", err: missing, created: true},
		"AVMThatRefersToNothingAtAll": {err: missing, created: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, a := configured(t, tc.kind, tc.err)
			r, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: nameOfM})
			if err != nil {
				t.Fatal(err)
			}
			created := w.servers() == 1
			if created != tc.created {
				t.Errorf("VM created: %t", created)
			}
			if d := cmp.Diff(tc.asked, a.asked); d != "" {
				t.Errorf("asked for (-want +got):\n%s", d)
			}
			if !tc.created && (r.RequeueAfter == 0 || r.RequeueAfter > 15*time.Second) {
				t.Errorf("looked for again after %s, want 15 s at most", r.RequeueAfter)
			}
		})
	}
}

func TestAMachineGetsItsVMWhenTheConfigurationAppears(t *testing.T) {
	w, a := configured(t, "ClusterProviderConfig", kerrors.NewNotFound(schema.GroupResource{}, "absent"))
	w.step()
	a.err = nil
	w.step()
	if w.servers() != 1 {
		t.Fatal("no VM was created")
	}
	// A configuration that is deleted later does not concern the VM, and is not even looked for.
	a.err, a.asked = kerrors.NewNotFound(schema.GroupResource{}, "absent"), nil
	w.step()
	w.step()
	if w.servers() != 1 || len(a.asked) != 0 {
		t.Errorf("%d VMs; asked for %v", w.servers(), a.asked)
	}
}
