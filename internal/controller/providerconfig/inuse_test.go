package providerconfig

import (
	"slices"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/local/v1alpha1"
)

func vmOf(namespace, kind, config string) *v1alpha1.VirtualMachine {
	vm := &v1alpha1.VirtualMachine{}
	vm.Namespace, vm.Name = namespace, "vm"
	vm.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: kind, Name: config})
	return vm
}

func TestAProviderConfigThatIsUsedStays(t *testing.T) {
	namespaced := types.NamespacedName{Namespace: "ns", Name: "config"}
	cluster := types.NamespacedName{Name: "config"}
	cases := map[string]struct {
		config types.NamespacedName
		kind   string
		vm     *v1alpha1.VirtualMachine
		stays  bool
	}{
		"OneThatNobodyUsesGoes":                    {namespaced, "ProviderConfig", nil, false},
		"OneThatIsUsedStays":                       {namespaced, "ProviderConfig", vmOf("ns", "ProviderConfig", "config"), true},
		"OneOfAnotherNamespaceDoesNotCount":        {namespaced, "ProviderConfig", vmOf("other", "ProviderConfig", "config"), false},
		"OneOfAnotherNameDoesNotCount":             {namespaced, "ProviderConfig", vmOf("ns", "ProviderConfig", "other"), false},
		"OneOfAnotherKindDoesNotCount":             {namespaced, "ProviderConfig", vmOf("ns", "ClusterProviderConfig", "config"), false},
		"AClusterProviderConfigIsUsedFromAnywhere": {cluster, "ClusterProviderConfig", vmOf("other", "ClusterProviderConfig", "config"), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(s); err != nil {
				t.Fatal(err)
			}
			var empty client.Object = &v1alpha1.ProviderConfig{}
			if tc.kind == "ClusterProviderConfig" {
				empty = &v1alpha1.ClusterProviderConfig{}
			}
			pc := empty.DeepCopyObject().(client.Object)
			pc.SetNamespace(tc.config.Namespace)
			pc.SetName(tc.config.Name)
			b := fake.NewClientBuilder().WithScheme(s).WithObjects(pc)
			if tc.vm != nil {
				b = b.WithObjects(tc.vm)
			}
			c, reported := b.Build(), &events{}
			r := &configReconciler{client: c, kind: tc.kind, config: empty, lists: []UserList{&v1alpha1.VirtualMachineList{}}, record: reported}
			reconcileIt := func() reconcile.Result {
				t.Helper()
				res, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: tc.config})
				if err != nil {
					t.Fatal(err)
				}
				return res
			}

			reconcileIt()
			if err := c.Get(t.Context(), tc.config, pc); err != nil || !slices.Contains(pc.GetFinalizers(), finalizerInUse) {
				t.Fatalf("finalizers %v, %v", pc.GetFinalizers(), err)
			}
			if err := c.Delete(t.Context(), pc); err != nil {
				t.Fatal(err)
			}
			res := reconcileIt()
			err := c.Get(t.Context(), tc.config, pc)
			if tc.stays != (err == nil) || err != nil && !errors.IsNotFound(err) {
				t.Errorf("after its deletion: %v, want it to stay: %t", err, tc.stays)
			}
			if tc.stays != (res.RequeueAfter > 0) || tc.stays != (len(*reported) > 0) {
				t.Errorf("looks again after %s and said %v, want both only if it stays", res.RequeueAfter, *reported)
			}
		})
	}
}

type events []event.Event

func (e *events) Event(_ runtime.Object, ev event.Event)   { *e = append(*e, ev) }
func (e *events) WithAnnotations(...string) event.Recorder { return e }
