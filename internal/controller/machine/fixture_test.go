package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/installations"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper/nodetest"
	"github.com/drover-dev/drover/internal/jointoken"
	"github.com/drover-dev/drover/internal/pipeline"
	"github.com/drover-dev/drover/internal/stored"
)

var (
	vmKind   = schema.GroupVersionKind{Group: "cloud.example.org", Version: "v1", Kind: "Server"}
	cardKind = schema.GroupVersionKind{Group: "net.example.org", Version: "v1", Kind: "Card"}
	nameOfM  = types.NamespacedName{Namespace: "ns", Name: "m"}
)

// recorded events, with their messages.
type recorded struct{ all []string }

func (e *recorded) Event(_ runtime.Object, ev event.Event) {
	e.all = append(e.all, string(ev.Reason)+": "+ev.Message)
}
func (e *recorded) WithAnnotations(...string) event.Recorder { return e }
func (e *recorded) of(reason event.Reason) []string {
	return slices.DeleteFunc(slices.Clone(e.all), func(s string) bool { return !strings.HasPrefix(s, string(reason)+": ") })
}

// world is a control cluster with one Machine, and a target cluster.
type world struct {
	t      *testing.T
	client client.WithWatch
	target *kubefake.Clientset
	r      *Reconciler
	events *recorded
	now    time.Time

	// writes to the control cluster, as verb and resource.
	writes  []string
	deletes []metav1.DeletionPropagation
	watched []schema.GroupVersionKind
	// refuse a write, nil for none.
	refuse func(write string) error
	// stale is the Machine in the cache, nil if the cache is current.
	stale *v1alpha1.Machine
	// undecoded describes the fields of the Machine in the cache that were dropped.
	undecoded stored.Undecoded
	// unreachable is the error of a connection to the target cluster.
	unreachable error
	// version of the API server of the target cluster, empty if it is not known.
	version string
	// script is the only step of the pipeline.
	script pipeline.RunFunc
	uids   int
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, clusterv1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, gvk := range []schema.GroupVersionKind{vmKind, cardKind, revisionKind} {
		s.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		s.AddKnownTypeWithName(gvk.GroupVersion().WithKind(gvk.Kind+"List"), &unstructured.UnstructuredList{})
	}
	return s
}

func newWorld(t *testing.T, objs ...client.Object) *world {
	t.Helper()
	w := &world{t: t, events: &recorded{}, now: time.Unix(100, 0), target: kubefake.NewClientset()}
	builder := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(objs...).
		WithStatusSubresource(&v1alpha1.Machine{}).WithIndex(&v1alpha1.Machine{}, byToken, tokenOf).WithInterceptorFuncs(w.interceptors())
	for _, gvk := range []schema.GroupVersionKind{vmKind, cardKind} {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(gvk)
		builder = builder.WithIndex(obj, byMachine, machineLabel)
	}
	w.client = builder.Build()
	w.restart()
	return w
}

// tokenOf is the key of the index byToken.
func tokenOf(obj client.Object) []string {
	m, ok := obj.(*v1alpha1.Machine)
	if !ok {
		return nil
	}
	return []string{keys[byToken](m)}
}

// restart replaces the controller by one without process-local memory.
func (w *world) restart() {
	clock := func() time.Time { return w.now }
	connect := func(context.Context, *v1alpha1.Machine) (jointoken.Cluster, error) {
		return jointoken.Cluster{
			Kube: w.target, Classify: passed, Host: "https://target", CA: []byte("ca"), ConfigUID: "config",
			Version: func(context.Context) (string, error) { return w.version, nil },
		}, w.unreachable
	}
	written := newOverlay(clock)
	w.r = &Reconciler{
		client: cachedClient{Client: w.client, w: w}, resources: w.client, live: w.client,
		steps:   pipeline.NewStepCache(8),
		configs: &configKinds{mapper: w.client.RESTMapper()},
		watches: newWatches(written), inventories: newInventories(func(schema.GroupVersionKind) bool { return false }), written: written, parameters: newMemory[nodekeeper.Memory](),
		record: w.events, log: logging.NewNopLogger(), now: clock,
		tokens: jointoken.NewKeeper(jointoken.Options{Connect: connect, Client: w.client, Live: w.client, Record: w.events, Now: clock}),
	}
	w.r.installations = func(context.Context) (installations.Known, error) {
		return installations.Known{Present: "here", Gone: map[string]bool{"gone": true}}, nil
	}
	w.r.runner = pipeline.New(pipeline.Options{
		Local: func(pipeline.Step) (pipeline.RunFunc, bool) {
			return func(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				return w.script(ctx, req)
			}, true
		},
		Resources: pipeline.NewClusterResources(w.client),
	})
	w.r.watches.start = func(gvk schema.GroupVersionKind, _ handler.TypedEventHandler[*unstructured.Unstructured, reconcile.Request]) error {
		w.watched = append(w.watched, gvk)
		return nil
	}
	w.r.watches.index = func(context.Context, schema.GroupVersionKind) error { return nil }
	w.r.nodes = &nodekeeper.Tools{Record: w.events, Now: clock, Hooks: nodekeeper.HooksOf(w.client), Marks: noMarks, Connect: func(context.Context, *v1alpha1.Machine) (nodekeeper.Cluster, error) {
		return nodekeeper.Cluster{Kube: w.target, Nodes: w.nodes, OfVM: w.nodesOfVM, Classify: passed}, w.unreachable
	}}
}

// nodes of the target cluster, as target.Conn finds them.
func (w *world) nodes(ctx context.Context, token, name, uid string) ([]*corev1.Node, error) {
	list, err := w.target.Tracker().List(corev1.SchemeGroupVersion.WithResource("nodes"), corev1.SchemeGroupVersion.WithKind("Node"), "")
	if err != nil {
		return nil, err
	}
	return find(list.(*corev1.NodeList).Items, token, name, uid), ctx.Err()
}

func (w *world) nodesOfVM(ctx context.Context, providerID string) ([]*corev1.Node, error) {
	list, err := w.target.Tracker().List(corev1.SchemeGroupVersion.WithResource("nodes"), corev1.SchemeGroupVersion.WithKind("Node"), "")
	if err != nil {
		return nil, err
	}
	var out []*corev1.Node
	for _, n := range list.(*corev1.NodeList).Items {
		if n.Spec.ProviderID == providerID {
			out = append(out, n.DeepCopy())
		}
	}
	return out, ctx.Err()
}

// find Nodes as target.Conn does.
func find(nodes []corev1.Node, token, name, uid string) []*corev1.Node {
	var out []*corev1.Node
	for i := range nodes {
		n := &nodes[i]
		if t := n.GetLabels()[clusterv1alpha1.LabelJoinToken]; token != "" && t == token || n.GetName() == name || uid != "" && string(n.GetUID()) == uid {
			out = append(out, n)
		}
	}
	return out
}

// cachedClient is the client of the manager: it reads from a cache that may lag.
type cachedClient struct {
	client.Client
	w *world
}

func (c cachedClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if m, ok := obj.(*v1alpha1.Machine); ok && c.w.stale != nil {
		c.w.stale.DeepCopyInto(m)
		return nil
	}
	err := c.Client.Get(ctx, key, obj, opts...)
	if m, ok := obj.(*v1alpha1.Machine); ok {
		m.Undecoded = c.w.undecoded
	}
	return err
}

// note records a write, unless it is refused.
func (w *world) note(verb string, obj client.Object, sub string) error {
	gvk, err := w.client.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	write := strings.TrimSuffix(verb+" "+gvk.Kind+"/"+sub, "/")
	w.writes = append(w.writes, write)
	if w.refuse != nil {
		return w.refuse(write)
	}
	return nil
}

func (w *world) interceptors() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := w.note("create", obj, ""); err != nil {
				return err
			}
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if err := w.note("update", obj, ""); err != nil {
				return err
			}
			return c.Update(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := w.note("patch", obj, ""); err != nil {
				return err
			}
			m, ok := obj.(*v1alpha1.Machine)
			before := int64(0)
			if ok {
				before = m.GetGeneration()
			}
			err := c.Patch(ctx, obj, p, opts...)
			if ok && err == nil && m.GetGeneration() == before {
				// The fake client keeps generations as they are.
				m.SetGeneration(before + 1)
				err = c.Update(ctx, m)
			}
			return err
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := w.note("patch", obj, sub); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, obj, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := w.note("delete", obj, ""); err != nil {
				return err
			}
			o := &client.DeleteOptions{}
			o.ApplyOptions(opts)
			if o.PropagationPolicy != nil {
				w.deletes = append(w.deletes, *o.PropagationPolicy)
			}
			if u, ok := obj.(*unstructured.Unstructured); ok && o.Preconditions != nil && o.Preconditions.ResourceVersion != nil {
				// The fake client ignores it.
				is := u.DeepCopy()
				if err := c.Get(ctx, client.ObjectKeyFromObject(obj), is); err == nil && is.GetResourceVersion() != *o.Preconditions.ResourceVersion {
					return kerrors.NewConflict(schema.GroupResource{Group: u.GroupVersionKind().Group, Resource: u.GetKind()}, u.GetName(), errors.New("the object has been modified"))
				}
			}
			m := &v1alpha1.Machine{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(obj), m); err == nil && m.GetDeletionTimestamp() != nil {
				// The fake client would delete it again, at another time.
				m.SetFinalizers(append(m.GetFinalizers(), metav1.FinalizerDeleteDependents))
				return c.Update(ctx, m)
			}
			return c.Delete(ctx, obj, opts...)
		},
		Apply: w.apply,
	}
}

// apply behaves as the API server does: it gives an object a UID, and refuses to create one that has a UID.
func (w *world) apply(ctx context.Context, c client.WithWatch, ac runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	u, ok := ac.(interface {
		GroupVersionKind() schema.GroupVersionKind
		client.Object
	})
	if !ok {
		return fmt.Errorf("%T is not applied by the controller", ac)
	}
	if err := w.note("apply", u, ""); err != nil {
		return err
	}
	was := &unstructured.Unstructured{}
	was.SetGroupVersionKind(u.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(u), was)
	switch {
	case kerrors.IsNotFound(err) && u.GetUID() != "":
		return kerrors.NewConflict(schema.GroupResource{Group: u.GroupVersionKind().Group, Resource: u.GroupVersionKind().Kind}, u.GetName(), errors.New("uid mismatch"))
	case err != nil && !kerrors.IsNotFound(err):
		return err
	}
	isNew := err != nil
	if err := c.Apply(ctx, ac, opts...); err != nil || !isNew {
		return err
	}
	w.uids++
	u.SetUID(types.UID(fmt.Sprintf("uid-%d", w.uids)))
	return c.Update(ctx, u)
}

func (w *world) reconcile() error {
	_, err := w.r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: nameOfM})
	return err
}

// step reconciles once, and returns the writes to the control cluster.
func (w *world) step() []string {
	w.t.Helper()
	w.writes = nil
	if err := w.reconcile(); err != nil {
		w.t.Fatal(err)
	}
	return w.writes
}

func (w *world) machine() *v1alpha1.Machine {
	w.t.Helper()
	m := &v1alpha1.Machine{}
	if err := w.client.Get(w.t.Context(), nameOfM, m); err != nil {
		w.t.Fatal(err)
	}
	return m
}

func (w *world) get(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	w.t.Helper()
	v := &unstructured.Unstructured{}
	v.SetGroupVersionKind(gvk)
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "ns", Name: name}, v); err != nil {
		w.t.Fatal(err)
	}
	return v
}

// find reports whether an object exists.
func (w *world) find(gvk schema.GroupVersionKind, name string) (*unstructured.Unstructured, bool) {
	w.t.Helper()
	v := &unstructured.Unstructured{}
	v.SetGroupVersionKind(gvk)
	err := w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "ns", Name: name}, v)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return v, err == nil
}

func (w *world) vm() *unstructured.Unstructured { w.t.Helper(); return w.get(vmKind, "v") }

// update writes an object as another client does.
func (w *world) update(obj client.Object) {
	w.t.Helper()
	if err := w.client.Update(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

// gone removes a resource, as its provider does if it may delete it.
func (w *world) gone(o client.Object) {
	w.t.Helper()
	o.SetFinalizers(nil)
	w.update(o)
	if err := w.client.Delete(w.t.Context(), o); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
}

// join adds a Node to the target cluster, or a pod.
func (w *world) join(objs ...runtime.Object) {
	w.t.Helper()
	for _, o := range objs {
		if err := w.target.Tracker().Add(o); err != nil {
			w.t.Fatal(err)
		}
	}
}

// nodeWrites are the writes to Nodes and pods of the target cluster.
func (w *world) nodeWrites() []string {
	return slices.DeleteFunc(nodetest.Writes(w.target), func(s string) bool { return strings.HasSuffix(s, " secrets") })
}

func owner() []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Machine", Name: "m", UID: "uid-m", Controller: &yes}}
}

// aMachine has an additional finalizer, so that it still exists after the controller removed its own.
func aMachine(deleting bool, finalizers ...string) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "uid-m", Generation: 1, Finalizers: append([]string{"example.org/other"}, finalizers...)}}
	m.Spec.ClassRef.Name = "small"
	m.Spec.Drain.Timeout.Duration = time.Hour
	m.Status.ResourceRefs = []v1alpha1.ComposedReference{
		{Role: v1alpha1.ResourceVM, APIVersion: vmKind.GroupVersion().String(), Kind: vmKind.Kind, Name: "v"},
	}
	if deleting {
		at := metav1.Unix(50, 0)
		m.DeletionTimestamp = &at
	}
	return m
}

// withNode sets the Node and its VM in the status of a Machine.
func withNode(m *v1alpha1.Machine) *v1alpha1.Machine {
	m.Status.ProviderID, m.Status.NodeRef = nodetest.ID, &v1alpha1.NodeReference{Name: "n", UID: "uid-1"}
	return m
}

// itsNode joined with the token of aMachine. Its cloud named it.
func itsNode() *corev1.Node {
	n := nodetest.New("n", corev1.ConditionTrue)
	n.SetLabels(map[string]string{clusterv1alpha1.LabelJoinToken: "uid-m"})
	return n
}

func aVM() *unstructured.Unstructured {
	v := &unstructured.Unstructured{}
	v.SetGroupVersionKind(vmKind)
	v.SetNamespace("ns")
	v.SetName("v")
	v.SetOwnerReferences(owner())
	v.SetLabels(map[string]string{v1alpha1.LabelMachine: "m"})
	v.SetAnnotations(map[string]string{roleAnnotation: v1alpha1.ResourceVM})
	v.SetFinalizers([]string{"finalizer.managedresource.crossplane.io", v1alpha1.FinalizerDrain})
	return v
}

func passed(err error) error { return err }

func noMarks(context.Context, *v1alpha1.Machine) (v1alpha1.NodeMarks, error) {
	return v1alpha1.NodeMarks{}, nil
}
