package recovery

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/schematest"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

const (
	// attackFor is how long a tenant writes in the long form at least. In the short form it writes mostWrites objects.
	attackFor = 2 * time.Minute
	// mostAlive is how many objects a tenant has at once.
	mostAlive = 40
	// pace is the time between two writes. More of them would fill the two processors of a small computer, whatever they
	// have in them.
	pace = 250 * time.Millisecond
	// mostWrites is how many objects a tenant writes in the short form, however long the others take.
	mostWrites = 40
	// withVM is of how many objects one has a class that exists, so that it gets a VM.
	withVM = 6
)

// A writer is a tenant that writes the worst that the API server accepts: each field of the kinds that a tenant may
// write, with each value that its schema accepts.
type writer struct {
	f      kit.Fleet
	as     client.Client
	bases  map[schema.GroupVersionKind]map[string]any
	leaves []schematest.Leaf
	random *rand.Rand

	accepted, refused int
	alive             []*unstructured.Unstructured
	unexpected        []error
}

func newWriter(t *testing.T) *writer {
	t.Helper()
	f, err := here.MakeFleet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("the tenant writes to namespace %s, by seed %d", f.Namespace, seed)
	w := &writer{f: f, as: f.NewTenant(t).As, bases: map[schema.GroupVersionKind]map[string]any{}, random: rand.New(rand.NewPCG(seed, 1))}
	md := f.Deployment("x", 1, 1, 0)
	machine := &machinev1alpha1.Machine{Spec: f.MachineSpec(kit.NewVersion)}
	set := &machinev1alpha1.MachineSet{Spec: machinev1alpha1.MachineSetSpec{Replicas: 1, Selector: md.Spec.Selector, Template: md.Spec.Template}}
	pool := map[string]any{"spec": map[string]any{"class": "small", "size": 1}}
	for kind, o := range map[schema.GroupVersionKind]any{
		machinev1alpha1.MachineGroupVersionKind: machine, machinev1alpha1.MachineSetGroupVersionKind: set,
		machinev1alpha1.MachineDeploymentGroupVersionKind: md, machinev1alpha1.NodePoolGroupVersionKind: pool,
	} {
		b, err := json.Marshal(o)
		base := map[string]any{}
		if err == nil {
			err = json.Unmarshal(b, &base)
		}
		if err != nil {
			t.Fatal(err)
		}
		delete(base, "status")
		delete(base, "metadata")
		w.bases[kind] = base
	}
	w.leaves = slices.DeleteFunc(slices.Clone(schematest.AllLeaves(t)), func(l schematest.Leaf) bool {
		return w.bases[l.Kind] == nil || l.Object("")["spec"] == nil
	})
	return w
}

// write until the context ends: in a random order one object with each field, and then again.
func (w *writer) write(ctx context.Context) {
	order := w.random.Perm(len(w.leaves))
	next := time.NewTicker(pace)
	defer next.Stop()
	for n := 0; ctx.Err() == nil && (n < mostWrites || !kit.IsShort()); n++ {
		w.create(ctx, n, w.leaves[order[n%len(order)]])
		<-next.C
	}
}

func (w *writer) create(ctx context.Context, n int, l schematest.Leaf) {
	values := slices.DeleteFunc(l.Extremes(), func(v any) bool { return len(l.Validate(v)) > 0 })
	if len(values) == 0 {
		return
	}
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(w.bases[l.Kind])}
	class := "none"
	if n%withVM == 0 {
		class = "small"
	}
	for _, path := range [][]string{{"spec", "classRef", "name"}, {"spec", "template", "spec", "classRef", "name"}} {
		if _, there, _ := unstructured.NestedString(u.Object, path...); there {
			_ = unstructured.SetNestedField(u.Object, class, path...)
		}
	}
	u.Object = l.In(u.Object, values[w.random.IntN(len(values))])
	u.SetGroupVersionKind(l.Kind)
	u.SetNamespace(w.f.Namespace)
	u.SetName(fmt.Sprintf("worst-%d", n))
	switch err := w.as.Create(ctx, u); {
	case err == nil:
		w.accepted++
		w.alive = append(w.alive, u)
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		w.refused++
	case ctx.Err() == nil:
		w.unexpected = append(w.unexpected, fmt.Errorf("%s: %w", l, err))
	}
	if len(w.alive) > mostAlive {
		_ = w.as.Delete(ctx, w.alive[0])
		w.alive = w.alive[1:]
	}
}

// begin to write. The returned function ends it.
func (w *writer) begin(t *testing.T) (end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var writing sync.WaitGroup
	writing.Go(func() { w.write(ctx) })
	t.Cleanup(stop)
	return func() {
		stop()
		writing.Wait()
		t.Logf("%d objects were accepted, %d refused", w.accepted, w.refused)
		if w.accepted == 0 || len(w.unexpected) > 0 {
			t.Errorf("%d objects were accepted, errors %v", w.accepted, w.unexpected)
		}
	}
}

// liveOf a fleet: it is made, scaled, rolled and deleted. In the middle provider-drover restarts.
func liveOf(t *testing.T, f kit.Fleet) time.Duration {
	t.Helper()
	began := time.Now()
	md := f.Deployment("web", 2, 1, 0)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	f.Patch(t, md, `{"spec":{"replicas":4}}`)
	f.AwaitDeployment(t, md.Name)
	operate(t, here, "restart", "provider-drover")
	f.Patch(t, md, fmt.Sprintf(`{"spec":{"template":{"spec":{"version":%q}}}}`, kit.NewVersion))
	f.AwaitDeployment(t, md.Name)
	f.DeleteDeployment(t, md.Name)
	f.AwaitNothing(t)
	return time.Since(began)
}

// TestTheWorstThatATenantWritesHarmsNobodyElse: one tenant has an object that Drover cannot decode, because it is older
// than the schema that refuses it, and writes all that the schemas accept. Meanwhile, the fleet of another namespace is
// made, scaled, rolled and deleted, and provider-drover restarts. The object of the tenant can still be deleted.
func TestTheWorstThatATenantWritesHarmsNobodyElse(t *testing.T) {
	f := here.NewTargetFleet(t)
	w := newWriter(t)
	old := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(w.bases[machinev1alpha1.MachineGroupVersionKind])}
	must(t, unstructured.SetNestedField(old.Object, "9999999h", "spec", "creationTimeout"))
	old.SetGroupVersionKind(machinev1alpha1.MachineGroupVersionKind)
	old.SetNamespace(w.f.Namespace)
	old.SetName("old")
	createInvalid(t, w.as, old)

	usual := time.Duration(0)
	if !kit.IsShort() {
		usual = liveOf(t, f)
	}
	end, until := w.begin(t), time.Now().Add(attackFor)
	took := liveOf(t, f)
	for !kit.IsShort() && time.Now().Before(until) {
		liveOf(t, f)
	}
	end()
	if t.Logf("usually %s, during the attack %s", usual, took); usual > 0 && took > 2*usual {
		t.Errorf("during the attack it took %s instead of %s", took, usual)
	}

	patience.Eventually(t, func(ctx context.Context) string {
		u := old.DeepCopy()
		if err := w.f.Client.Get(ctx, client.ObjectKeyFromObject(old), u); err != nil {
			return err.Error()
		}
		var conditions []metav1.Condition
		err := fieldpath.Pave(u.Object).GetValueInto("status.conditions", &conditions)
		if c := meta.FindStatusCondition(conditions, machinev1alpha1.ConditionValid); c == nil || c.Status != metav1.ConditionFalse || c.Reason != machinev1alpha1.ReasonNotDecodable {
			return fmt.Sprintf("conditions %+v, error %v", conditions, err)
		}
		return ""
	})
	must(t, w.as.Delete(t.Context(), old))
	patience.Eventually(t, func(ctx context.Context) string {
		if err := w.f.Client.Get(ctx, client.ObjectKeyFromObject(old), old.DeepCopy()); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the Machine is there, error %v", err)
		}
		return ""
	})
	for _, o := range w.alive {
		must(t, client.IgnoreNotFound(w.as.Delete(t.Context(), o)))
	}
}

// createInvalid creates a Machine that the schema refuses. Crossplane keeps the schema, so that the API server accepts the
// Machine for a moment only.
func createInvalid(t *testing.T, as client.Client, o *unstructured.Unstructured) {
	t.Helper()
	const field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/creationTimeout"
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	crd.SetName("machines." + machinev1alpha1.SchemeGroupVersion.Group)
	must(t, here.Client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	strict, err := fieldpath.Pave(crd.Object).GetValue("spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.creationTimeout")
	must(t, err)
	replace := func(ctx context.Context, value any) error {
		b, err := json.Marshal([]map[string]any{{"op": "replace", "path": field, "value": value}})
		if err != nil {
			return err
		}
		return here.Client.Patch(ctx, crd, client.RawPatch("application/json-patch+json", b))
	}
	patience.Eventually(t, func(ctx context.Context) string {
		if err := replace(ctx, map[string]any{"type": "string"}); err != nil {
			return err.Error()
		}
		if err := as.Create(ctx, o); err != nil {
			return fmt.Sprintf("the schema is not changed yet: %v", err)
		}
		return ""
	})
	patience.Eventually(t, func(ctx context.Context) string {
		if err := replace(ctx, strict); err != nil {
			return err.Error()
		}
		other := o.DeepCopy()
		other.SetName(o.GetName() + "-other")
		other.SetResourceVersion("")
		if err := here.Client.Create(ctx, other, client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Sprintf("the schema is not restored yet: %v", err)
		}
		return ""
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
