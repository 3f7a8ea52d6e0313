package inventory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/drover-dev/drover/apis/inventory/v1alpha1"
	localv1alpha1 "github.com/drover-dev/drover/apis/local/v1alpha1"
)

// cloud has one page per installation.
type cloud map[string]answer

type answer struct {
	vms        []VM
	incomplete bool
	err        error
}

func (c cloud) List(_ context.Context, installation string) ([]VM, bool, error) {
	a := c[installation]
	return a.vms, !a.incomplete, a.err
}

func claimant(namespace, name, externalName string) client.Object {
	r := &localv1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	r.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Machine", Name: name, Controller: ptr.To(true)}})
	if externalName != "" {
		meta.SetExternalName(r, externalName)
	}
	return r
}

// unowned removes the owner of an object, as in a backup that was restored without the Machine.
func unowned(o client.Object) client.Object {
	o.SetOwnerReferences(nil)
	return o
}

func inventoryOf(before v1alpha1.InventoryObservation, installations ...string) *localv1alpha1.VirtualMachineInventory {
	i := &localv1alpha1.VirtualMachineInventory{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "i"}}
	i.Spec.ForProvider = parameters()
	i.Spec.ForProvider.Installations = installations
	i.Spec.ForProvider.VirtualMachine = v1alpha1.VirtualMachineKind{APIVersion: "local.drover.dev/v1alpha1", Kind: "VirtualMachine"}
	i.Status.AtProvider = before
	return i
}

func observe(t *testing.T, c cloud, live client.Reader, i *localv1alpha1.VirtualMachineInventory) error {
	t.Helper()
	x := &connector[*localv1alpha1.VirtualMachineInventory]{
		connect: func(context.Context, *localv1alpha1.VirtualMachineInventory) (Lister, error) { return c, nil },
		live:    live,
		now:     func() time.Time { return minutes(20) },
	}
	e, err := x.Connect(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	o, err := e.Observe(t.Context(), i)
	if err == nil && (!o.ResourceExists || !o.ResourceUpToDate) {
		t.Errorf("observation %+v", o)
	}
	return err
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := localv1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestObserve(t *testing.T) {
	was := said(unclaimed("a", 0, -1))
	cases := map[string]struct {
		cloud cloud
		want  v1alpha1.InventoryObservation
		err   string
	}{
		"ResourcesOfAllNamespacesClaim": {
			cloud: cloud{"ours": {vms: []VM{vm("b", "ours"), vm("c", "ours"), vm("d", "ours")}}},
			want:  with(2, said(unclaimed("d", 20, -1))),
		},
		"AllInstallationsAreAsked": {
			cloud: cloud{"ours": {vms: []VM{vm("a", "ours")}}, "former": {vms: []VM{vm("e", "former")}}},
			want:  said(unclaimed("a", 0, 20), of("former", unclaimed("e", 20, -1))),
		},
		"AListThatFailsChangesNothing": {
			cloud: cloud{"ours": {err: errors.New("the cloud is on fire")}}, want: was, err: "cannot list VMs: the cloud is on fire",
		},
		"AListThatLacksSomethingChangesNothing": {
			cloud: cloud{"ours": {incomplete: true}}, want: was, err: "only a part",
		},
		"OneOfTwoListsThatLacksSomethingChangesNothing": {
			cloud: cloud{"ours": {vms: []VM{vm("a", "ours")}}, "former": {vms: []VM{vm("e", "former")}, incomplete: true}}, want: was, err: "only a part",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(claimant("ns", "b", "b"), claimant("other", "c", "c"), claimant("ns", "creating", ""), unowned(claimant("ns", "d", "d"))).Build()
			i := inventoryOf(was, "ours", "former")
			err := observe(t, tc.cloud, live, i)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			if d := cmp.Diff(tc.want, i.Status.AtProvider); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestWithoutTheClaimsNothingIsConcluded(t *testing.T) {
	was := said(unclaimed("a", 0, -1))
	live := fake.NewClientBuilder().WithScheme(scheme(t)).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("forbidden")
		},
	}).Build()
	i := inventoryOf(was, "ours")
	err := observe(t, cloud{"ours": {vms: []VM{vm("a", "ours")}}}, live, i)
	if err == nil || !strings.Contains(err.Error(), "cannot list VirtualMachine of local.drover.dev/v1alpha1: forbidden") {
		t.Errorf("error %v", err)
	}
	if d := cmp.Diff(was, i.Status.AtProvider); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestEveryPageOfTheClaimsIsRead(t *testing.T) {
	const pages = 3
	asked := 0
	live := fake.NewClientBuilder().WithScheme(scheme(t)).WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			o := client.ListOptions{}
			o.ApplyOptions(opts)
			want := ""
			if asked > 0 {
				want = fmt.Sprint("page ", asked)
			}
			if o.Continue != want || o.Limit == 0 {
				t.Errorf("asked for %q, want %q, limit %d", o.Continue, want, o.Limit)
			}
			asked++
			list := l.(*metav1.PartialObjectMetadataList)
			list.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Controller: ptr.To(true)}}, Annotations: map[string]string{meta.AnnotationKeyExternalName: fmt.Sprint("vm-", asked)}}}}
			list.Continue = ""
			if asked < pages {
				list.Continue = fmt.Sprint("page ", asked)
			}
			return nil
		},
	}).Build()
	i := inventoryOf(said(), "ours")
	if err := observe(t, cloud{"ours": {vms: []VM{vm("vm-1", "ours"), vm("vm-2", "ours"), vm("vm-3", "ours"), vm("vm-4", "ours")}}}, live, i); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(with(3, said(unclaimed("vm-4", 20, -1))), i.Status.AtProvider); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestAnInventoryIsGoneWhenItIsDeletedWithoutACloud(t *testing.T) {
	i := inventoryOf(said(), "ours")
	now := metav1.NewTime(noon)
	i.SetDeletionTimestamp(&now)
	x := &connector[*localv1alpha1.VirtualMachineInventory]{connect: func(context.Context, *localv1alpha1.VirtualMachineInventory) (Lister, error) {
		return nil, errors.New("the configuration is gone")
	}}
	e, err := x.Connect(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	if o, err := e.Observe(t.Context(), i); err != nil || o.ResourceExists {
		t.Errorf("observation %+v, error %v", o, err)
	}
}
