package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"sync"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	"github.com/drover-dev/drover/internal/native/nativetest"
)

const (
	infraGroup  = "infrastructure.cluster.x-k8s.io"
	clusterName = "target"
	// finalizerProvider is the finalizer of the lab's infrastructure provider.
	finalizerProvider = "lab/vm"
)

// machineGroupKind is the kind of the VMs of the lab.
var machineGroupKind = v1alpha1.GroupKind{APIGroup: infraGroup, Kind: "LabMachine"}

// A lab is a cluster with an infrastructure provider that follows the contract of Cluster API to the letter: it makes the
// VM of an InfraMachine only when everything is there that the contract lets it wait for.
type lab struct {
	release
	inner client.WithWatch

	mu        sync.Mutex
	token     int
	uids      int
	calls     map[string]int
	cuts      int
	then      func()
	cutAny    func() bool
	throttled time.Time
	born      map[types.UID]time.Time
	// vms are the VMs of the provider, by the UID of their InfraMachine.
	vms map[types.UID]nativetest.Existing
	// created are the kinds of the objects that were created, in order.
	created []string
	// makes is false while the provider makes no VM.
	makes bool
	// looked is the time at which the provider reconciled last.
	looked time.Time
}

func newLab(c release) *lab {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		panic(err)
	}
	if err := extv1.AddToScheme(s); err != nil {
		panic(err)
	}
	l := &lab{release: c, calls: map[string]int{}, born: map[types.UID]time.Time{}, vms: map[types.UID]nativetest.Existing{}, makes: true}
	b := fake.NewClientBuilder().WithScheme(s).
		WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "c1d2"}}).
		WithIndex(&coordinationv1.Lease{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} })
	for _, gvk := range []schema.GroupVersionKind{c.core.coreKind("Cluster"), c.core.coreKind("Machine"), l.kind("LabMachine"), l.kind("LabCluster")} {
		o := newObject(gvk, "", "")
		b = b.WithStatusSubresource(o)
		s.AddKnownTypeWithName(gvk, o)
		s.AddKnownTypeWithName(gvk.GroupVersion().WithKind(gvk.Kind+"List"), &unstructured.UnstructuredList{})
	}
	b = b.WithObjects(c.crds(infraGroup, "labmachines", "labclusters")...)
	l.inner = b.Build()
	infra := newObject(l.kind("LabCluster"), nativetest.Namespace, clusterName)
	infra.Object["spec"] = map[string]any{"controlPlaneEndpoint": map[string]any{"host": "10.0.0.1", "port": int64(6443)}}
	if err := l.inner.Create(context.Background(), infra); err != nil {
		panic(err)
	}
	l.provision(infra)
	return l
}

// crds returns the CRDs of a provider and that of Clusters, with the labels of their contracts.
func (r release) crds(group string, plurals ...string) []client.Object {
	crd := func(name string, c contract, version string) client.Object {
		return &extv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"cluster.x-k8s.io/" + string(c): version}}}
	}
	out := []client.Object{crd("clusters."+coreGroup, r.core, string(r.core))}
	for _, plural := range plurals {
		out = append(out, crd(plural+"."+group, r.contract, "v1"))
	}
	return out
}

func (l *lab) kind(k string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: infraGroup, Version: "v1", Kind: k}
}

// provision reports that an object of the provider is provisioned, in the words of the contract.
func (l *lab) provision(o *unstructured.Unstructured) {
	status := map[string]any{"initialization": map[string]any{"provisioned": true}}
	if l.contract == v1beta1 {
		status = map[string]any{"ready": true}
	}
	o.Object["status"] = status
	if err := l.inner.Status().Update(context.Background(), o); err != nil {
		panic(err)
	}
}

// reconcile is the provider of InfraMachines. Each follows from the contract:
// https://cluster-api.sigs.k8s.io/developer/providers/contracts/infra-machine#typical-inframachine-reconciliation-workflow
func (l *lab) reconcile() {
	if time.Since(l.looked) < time.Second {
		return
	}
	l.looked = time.Now()
	ctx := context.Background()
	for _, o := range l.objects("LabMachine") {
		_, paused := o.GetAnnotations()[annotationPaused]
		born, known := l.born[o.GetUID()]
		switch {
		case paused:
			continue
		case o.GetDeletionTimestamp() != nil:
			if time.Since(o.GetDeletionTimestamp().Time) >= 5*time.Second {
				delete(l.vms, o.GetUID())
				o.SetFinalizers(nil)
				l.must(l.inner.Update(ctx, o))
			}
			continue
		case !l.makes || isProvisioned(l.contract, o):
			continue
		}
		data, waits := l.bootstrapData(o)
		if waits != "" {
			continue
		}
		if _, made := l.vms[o.GetUID()]; !made {
			o.SetFinalizers([]string{finalizerProvider})
			l.must(l.inner.Update(ctx, o))
			l.vms[o.GetUID()] = nativetest.Existing{Name: o.GetName(), UserData: data}
		}
		if known && time.Since(born) >= 10*time.Second {
			spec, _ := o.Object["spec"].(map[string]any)
			spec["providerID"] = "lab://" + string(o.GetUID())
			l.must(l.inner.Update(ctx, o))
			l.provision(o)
		}
	}
}

// bootstrapData returns the user data of an InfraMachine, or the object that its provider waits for.
func (l *lab) bootstrapData(o *unstructured.Unstructured) (data, waits string) {
	owner := metav1.GetControllerOf(o)
	if owner == nil || owner.Kind != "Machine" {
		return "", "an owner of the kind Machine"
	}
	machine := l.object(l.core.coreKind("Machine"), owner.Name)
	if machine == nil || machine.GetUID() != owner.UID {
		return "", "its Machine"
	}
	cluster := l.object(l.core.coreKind("Cluster"), stringAt(machine, "spec", "clusterName"))
	if cluster == nil || o.GetLabels()[labelCluster] != cluster.GetName() {
		return "", "its Cluster"
	}
	if !isClusterReady(l.core, cluster) {
		return "", "the status of its Cluster"
	}
	ref, _, _ := unstructured.NestedMap(cluster.Object, "spec", "infrastructureRef")
	infra := l.object(l.kind("LabCluster"), fmt.Sprint(ref["name"]))
	if infra == nil || len(infra.GetOwnerReferences()) != 1 || infra.GetOwnerReferences()[0].UID != cluster.GetUID() {
		return "", "its InfraCluster"
	}
	s := &corev1.Secret{}
	name := stringAt(machine, "spec", "bootstrap", "dataSecretName")
	if name == "" || l.inner.Get(context.Background(), types.NamespacedName{Namespace: o.GetNamespace(), Name: name}, s) != nil {
		return "", "the Secret with the user data"
	}
	return string(s.Data["value"]), ""
}

func (l *lab) must(err error) {
	if err != nil {
		panic(err)
	}
}

func (l *lab) object(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	o := newObject(gvk, nativetest.Namespace, name)
	if l.inner.Get(context.Background(), client.ObjectKeyFromObject(o), o) != nil {
		return nil
	}
	return o
}

func (l *lab) objects(k string) (out []*unstructured.Unstructured) {
	gvk := l.kind(k)
	if k == "Machine" || k == "Cluster" {
		gvk = l.core.coreKind(k)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(k + "List"))
	l.must(l.inner.List(context.Background(), list))
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out
}

var errCut = errors.New("unexpected EOF")

// call makes a call to the API server. Its effect remains even if the response is lost.
func (l *lab) call(token, name string, do func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[name]++
	switch {
	case time.Now().Before(l.throttled):
		return kerrors.NewTooManyRequests("too many requests", 1)
	case token != l.tokenOf():
		return kerrors.NewUnauthorized("Unauthorized")
	}
	l.reconcile()
	err := do()
	switch {
	case name == "create LabMachine" && err == nil && l.cuts > 0:
		l.cuts--
		if l.then != nil {
			l.then()
		}
		return errCut
	case l.cutAny != nil && l.cutAny():
		return errCut
	}
	return err
}

func (l *lab) tokenOf() string { return fmt.Sprintf("5ec4e7-%d", l.token) }

func (l *lab) credentials() credentials {
	l.mu.Lock()
	defer l.mu.Unlock()
	return credentials{Kubeconfig: l.tokenOf()}
}

func kindName(o runtime.Object) string {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.GetKind()
	}
	if u, ok := o.(*unstructured.UnstructuredList); ok {
		return u.GetKind()
	}
	return fmt.Sprintf("%T", o)
}

// dial returns a client whose token is the kubeconfig.
func (l *lab) dial(c credentials) (client.Client, error) {
	token := c.Kubeconfig
	return interceptor.NewClient(l.inner, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return l.call(token, "get "+kindName(o), func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, opts ...client.ListOption) error {
			return l.call(token, "list "+kindName(o), func() error { return c.List(ctx, o, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			co := &client.CreateOptions{}
			co.ApplyOptions(opts)
			dry := len(co.DryRun) > 0
			what := "create "
			if dry {
				what = "check "
			}
			return l.call(token, what+kindName(o), func() error {
				if !dry {
					l.uids++
					o.SetUID(types.UID(fmt.Sprintf("uid-%d", l.uids)))
				}
				if err := c.Create(ctx, o, opts...); err != nil || dry {
					return err
				}
				l.born[o.GetUID()] = time.Now()
				l.created = append(l.created, kindName(o))
				return nil
			})
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return l.call(token, "update "+kindName(o), func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return l.call(token, "patch "+kindName(o), func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return l.call(token, "patch status of "+kindName(o), func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return l.call(token, "delete "+kindName(o), func() error { return c.Delete(ctx, o, opts...) })
		},
	}), nil
}

// do changes the lab without a call.
func (l *lab) do(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

func newVM(name string, tags map[string]string) *v1alpha1.VirtualMachine {
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p := &vm.Spec.ForProvider
	p.Name, p.Tags, p.Version = ptr.To(name), tags, ptr.To("v1.35.4")
	p.InfraMachine = &v1alpha1.InfraMachine{GroupKind: machineGroupKind, Spec: &extv1.JSON{Raw: []byte(`{"size": "small"}`)}}
	return vm
}

// cloud returns the lab for the cases that every cloud must pass.
func (l *lab) cloud() nativetest.Cloud[*v1alpha1.VirtualMachine, credentials] {
	pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: nativetest.Config}}
	pc.Spec.ClusterName = clusterName
	pc.Spec.InfraCluster = &v1alpha1.ObjectReference{GroupKind: v1alpha1.GroupKind{APIGroup: infraGroup, Kind: "LabCluster"}, Name: clusterName}
	pc.Spec.InfraMachineKinds = []v1alpha1.GroupKind{machineGroupKind}
	pc.Spec.Credentials.SecretRef = &v1alpha1.SecretKeySelector{Namespace: nativetest.CredentialsNamespace, Name: nativetest.CredentialsSecret, Key: nativetest.CredentialsKey}
	return nativetest.Cloud[*v1alpha1.VirtualMachine, credentials]{
		Provider:    provider(l.dial, time.Now),
		AddToScheme: v1alpha1.AddToScheme,
		Config:      pc,
		Credentials: l.credentials,
		Rotate:      func() { l.do(func() { l.token++ }) },
		Secrets:     func() []string { return []string{l.credentials().Kubeconfig} },
		VM:          newVM,
		UseUserData: func(vm *v1alpha1.VirtualMachine, ref xpv2.LocalSecretKeySelector) {
			vm.Spec.ForProvider.UserDataSecretRef = &ref
		},
		Invalid: func(vm *v1alpha1.VirtualMachine) string {
			vm.Spec.ForProvider.InfraMachine.Kind = "OtherMachine"
			return "infraMachine.kind"
		},
		VMs: func() (out []nativetest.Existing) {
			l.do(func() {
				for _, v := range l.vms {
					out = append(out, v)
				}
			})
			return out
		},
		Leftovers: func() (out []string) {
			l.do(func() {
				for _, k := range []string{"Machine", "LabMachine"} {
					for _, o := range l.objects(k) {
						out = append(out, k+" "+o.GetName())
					}
				}
				secrets := &corev1.SecretList{}
				l.must(l.inner.List(context.Background(), secrets))
				for _, s := range secrets.Items {
					out = append(out, "Secret "+s.Name)
				}
			})
			return out
		},
		Lose: func(name string) {
			l.do(func() {
				o := l.object(l.kind("LabMachine"), name)
				delete(l.vms, o.GetUID())
				o.SetFinalizers(nil)
				l.must(l.inner.Update(context.Background(), o))
				l.must(l.inner.Delete(context.Background(), o))
			})
		},
		LacksPower:   true,
		CutCreations: func(n int, then func()) { l.do(func() { l.cuts, l.then = n, then }) },
		CutAny: func(probability float64, random *rand.Rand) {
			l.do(func() { l.cutAny = func() bool { return random.Float64() < probability } })
		},
		Throttle: func(d time.Duration) { l.do(func() { l.throttled = time.Now().Add(d) }) },
		Calls: func() (out map[string]int) {
			l.do(func() { out = maps.Clone(l.calls) })
			return out
		},
		MostCalls: 45, MostDeletionCalls: 25, CreationTakes: 2 * time.Minute,
	}
}

func TestEveryCase(t *testing.T) {
	nativetest.Run(t, func(*testing.T) nativetest.Cloud[*v1alpha1.VirtualMachine, credentials] {
		return newLab(release{v1beta2, v1beta2}).cloud()
	})
}
