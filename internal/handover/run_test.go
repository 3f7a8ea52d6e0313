package handover

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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

	clusterapi "github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/patience"
)

// A lab is a cluster with both systems, whose controllers act whenever a command reads.
type lab struct {
	client.WithWatch
	system System
	// idle controllers do nothing.
	idle bool
	logs []string
	uids int
}

func newLab(t *testing.T, version string, funcs interceptor.Funcs) *lab {
	t.Helper()
	all := objects(version, 3)
	for i := range 3 {
		all = append(all, node(fmt.Sprintf("node-%d", i), i))
	}
	infra := schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "LabMachine"}
	return newLabOf(t, ClusterAPI, funcs, []schema.GroupVersionKind{
		infra, clusterapi.VirtualMachineGroupVersionKind,
		{Group: coreGroup, Version: version, Kind: "Cluster"}, {Group: coreGroup, Version: version, Kind: "Machine"},
		{Group: coreGroup, Version: version, Kind: "MachineSet"}, {Group: coreGroup, Version: version, Kind: "MachineDeployment"},
	}, []schema.GroupVersionKind{clusterapi.SchemeGroupVersion.WithKind("ClusterProviderConfig")}, all)
}

// newLabOf has the objects of a system, of kinds with a namespace and without one.
func newLabOf(t *testing.T, system System, funcs interceptor.Funcs, namespaced, others []schema.GroupVersionKind, objects []*unstructured.Unstructured) *lab {
	t.Helper()
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{namespaced[len(namespaced)-1].GroupVersion(), {Group: "infrastructure.cluster.x-k8s.io", Version: "v1"}})
	definition := schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v2", Kind: "CompositeResourceDefinition"}
	for _, k := range append([]schema.GroupVersionKind{
		machinev1alpha1.MachineGroupVersionKind, machinev1alpha1.MachineSetGroupVersionKind, machinev1alpha1.MachineDeploymentGroupVersionKind,
		machinev1alpha1.MachineClassGroupVersionKind,
	}, namespaced...) {
		s.AddKnownTypeWithName(k, &unstructured.Unstructured{})
		s.AddKnownTypeWithName(k.GroupVersion().WithKind(k.Kind+"List"), &unstructured.UnstructuredList{})
		mapper.Add(k, meta.RESTScopeNamespace)
	}
	for _, k := range append([]schema.GroupVersionKind{definition}, others...) {
		s.AddKnownTypeWithName(k, &unstructured.Unstructured{})
		s.AddKnownTypeWithName(k.GroupVersion().WithKind(k.Kind+"List"), &unstructured.UnstructuredList{})
		mapper.Add(k, meta.RESTScopeRoot)
	}
	l := &lab{system: system}
	installed := &unstructured.Unstructured{}
	installed.SetGroupVersionKind(definition)
	installed.SetName(machinev1alpha1.DefinitionOfInstallation)
	installed.SetUID("here")
	all := []client.Object{installed, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "prod-kubeconfig"}, Data: map[string][]byte{"value": []byte("kubeconfig")}}}
	for _, o := range objects {
		all = append(all, o)
	}
	if funcs.Create == nil {
		funcs.Create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			l.uids++
			o.SetUID(types.UID(fmt.Sprint("uid-", l.uids)))
			o.SetFinalizers([]string{"of-its-controller"})
			return c.Create(ctx, o, opts...)
		}
	}
	l.WithWatch = fake.NewClientBuilder().WithScheme(s).WithRESTMapper(mapper).WithObjects(all...).WithInterceptorFuncs(funcs).
		WithIndex(&coordinationv1.Lease{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).Build()
	l.act(t)
	return l
}

// look reads all objects.
func (l *lab) look(t *testing.T) *World {
	t.Helper()
	r := Run{System: l.system, Client: l, Target: l, Namespace: namespace, From: "workers", To: "web", Confirmed: true}
	w, err := r.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// act has the controllers act once.
func (l *lab) act(t *testing.T) {
	t.Helper()
	w := l.look(t)
	before := w.clone()
	controllers(w)
	for k, o := range w.objects {
		if was := before.objects[k]; was != nil && fmt.Sprint(was.Object) != fmt.Sprint(o.Object) {
			if err := l.Update(t.Context(), o.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// run returns a command in the lab.
func (l *lab) run(t *testing.T, undo bool) *Run {
	t.Helper()
	r := &Run{System: l.system, Client: l, Target: l, Namespace: namespace, From: "workers", Undo: undo, Confirmed: true, Timeout: patience.Limit(), every: time.Millisecond}
	if !undo {
		r.To = "web"
	}
	r.Log = func(format string, args ...any) { l.logs = append(l.logs, fmt.Sprintf(format, args...)) }
	r.clock = func() time.Time {
		if !l.idle {
			l.act(t)
		}
		return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	}
	return r
}

// bare returns the objects without what each write changes.
func bare(w *World) *World {
	for k, o := range w.objects {
		o = o.DeepCopy()
		o.SetResourceVersion("")
		w.objects[k] = o
	}
	return w
}

func TestACommandHandsOverAndBackByTheAPI(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		conflicts := 2
		l := newLab(t, version, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if conflicts > 0 {
				conflicts--
				return kerrors.NewConflict(schema.GroupResource{}, o.GetName(), nil)
			}
			return c.Patch(ctx, o, p, opts...)
		}})
		start := bare(l.look(t))
		if err := l.run(t, false).Preview(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := left(bare(l.look(t)), start); d != "" {
			t.Errorf("a preview changed: %s", d)
		}
		preview := len(l.logs)
		if err := l.run(t, false).Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		if conflicts > 0 || len(l.logs) != 2*preview {
			t.Errorf("%d actions after a preview of %d: %q", len(l.logs)-preview, preview, l.logs)
		}
		if w := l.look(t); !w.isTaken() || len(w.list(machinev1alpha1.Group, "Machine")) != 3 {
			t.Error("the Machines are not Drover's")
		}
		if err := l.run(t, true).Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.act(t)
		if d := left(bare(l.look(t)), start); d != "" {
			t.Errorf("not as it was: %s", d)
		}
		if err := l.run(t, true).Do(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing of it is imported") {
			t.Errorf("error %v of a way back of nothing", err)
		}
	})
}

func TestAWaitThatEndsNamesWhatItWaitedFor(t *testing.T) {
	l := newLab(t, "v1beta2", interceptor.Funcs{})
	l.idle = true
	r := l.run(t, false)
	r.Timeout = 50 * time.Millisecond
	err := r.Do(t.Context())
	if err == nil || !strings.Contains(err.Error(), "MachineDeployment.cluster.x-k8s.io workers: its condition Paused is not True") || !strings.Contains(err.Error(), "--undo") {
		t.Errorf("error %v", err)
	}
}

// TestControllersThatWereStoppedAreNotWaitedFor has the Lease of Cluster API's controllers, released and held.
func TestControllersThatWereStoppedAreNotWaitedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		holder  string
		renewed time.Duration
		want    bool
	}{
		"Released": {"", 0, true},
		"Expired":  {"capi-0", -time.Hour, true},
		"Held":     {"capi-0", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "v1beta2", interceptor.Funcs{})
			l.idle = true
			r := l.run(t, false)
			if err := l.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "capi-system", Name: clusterapi.LeaseOfClusterAPI}, Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &tc.holder, LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: r.now().Add(tc.renewed)},
			}}); err != nil {
				t.Fatal(err)
			}
			w, err := r.read(t.Context())
			if err != nil || w.Stopped != tc.want {
				t.Errorf("stopped %t, error %v; want %t", w.Stopped, err, tc.want)
			}
		})
	}
}

func TestTheKubeconfigIsThatOfTheCluster(t *testing.T) {
	l := newLab(t, "v1beta2", interceptor.Funcs{})
	if b, err := Kubeconfig(t.Context(), l, namespace, "workers"); err != nil || string(b) != "kubeconfig" {
		t.Errorf("%q, error %v", b, err)
	}
	if _, err := Kubeconfig(t.Context(), l, namespace, "other"); err == nil || !strings.Contains(err.Error(), "MachineDeployment.cluster.x-k8s.io team/other does not exist") {
		t.Errorf("error %v", err)
	}
	if err := l.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "prod-kubeconfig"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := Kubeconfig(t.Context(), l, namespace, "workers"); err == nil || !strings.Contains(err.Error(), "Secret team/prod-kubeconfig with the kubeconfig of the target cluster: name one by --target-kubeconfig") {
		t.Errorf("error %v", err)
	}
}
