package move

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/patience"
)

var serverKind = schema.GroupVersionKind{Group: "cloud.example.org", Version: "v1", Kind: "Server"}

// cluster is a control cluster whose controllers act at each call of a client.
type cluster struct {
	t    *testing.T
	name string
	client.Client
	raw client.WithWatch
	// writes until the move is killed, negative for never.
	left *int
}

var errKilled = errors.New("killed")

func newCluster(t *testing.T, name string, left *int, objs ...client.Object) *cluster {
	t.Helper()
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []schema.GroupVersionKind{
		machinev1alpha1.MachineGroupVersionKind, machinev1alpha1.MachineSetGroupVersionKind, machinev1alpha1.MachineDeploymentGroupVersionKind, machinev1alpha1.NodePoolGroupVersionKind,
		machinev1alpha1.MachineGroupGroupVersionKind, machinev1alpha1.SchemeGroupVersion.WithKind("MachineClass"),
		{Group: "cluster.drover.dev", Version: "v1alpha1", Kind: "ClusterProviderConfig"}, serverKind, definitionKind,
	} {
		s.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		s.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	c := &cluster{t: t, name: name, left: left}
	write := func() error {
		if *left == 0 {
			return errKilled
		}
		*left--
		return nil
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(serverKind, meta.RESTScopeNamespace)
	c.raw = fake.NewClientBuilder().WithScheme(s).WithRESTMapper(mapper).WithObjects(objs...).Build()
	c.Client = interceptor.NewClient(c.raw, interceptor.Funcs{
		List: func(ctx context.Context, w client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			c.act()
			return w.List(ctx, l, opts...)
		},
		Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := write(); err != nil {
				return err
			}
			o.SetUID(types.UID(name + "-" + o.GetName()))
			return w.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := write(); err != nil {
				return err
			}
			return w.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := write(); err != nil {
				return err
			}
			return w.Delete(ctx, o)
		},
	})
	return c
}

func (c *cluster) list(kind schema.GroupVersionKind) []*unstructured.Unstructured {
	c.t.Helper()
	out, err := list(c.t.Context(), c.raw, kind, "ns")
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

func (c *cluster) update(u *unstructured.Unstructured) {
	c.t.Helper()
	if err := c.raw.Update(c.t.Context(), u); client.IgnoreNotFound(err) != nil {
		c.t.Fatal(err)
	}
}

var kindsOfFleet = []schema.GroupVersionKind{
	machinev1alpha1.NodePoolGroupVersionKind, machinev1alpha1.MachineDeploymentGroupVersionKind, machinev1alpha1.MachineSetGroupVersionKind,
	machinev1alpha1.MachineGroupVersionKind, serverKind,
}

// act carries out one round of the cluster's controllers.
func (c *cluster) act() {
	c.t.Helper()
	for _, kind := range kindsOfFleet {
		for _, u := range c.list(kind) {
			if xpmeta.IsPaused(u) {
				if !rests(u) {
					_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"type": "Synced", "status": "False", "reason": "ReconcilePaused", "lastTransitionTime": "2030-01-01T00:00:00Z"}}, "status", "conditions")
					c.update(u)
				}
				continue
			}
			switch {
			case kind == serverKind && u.GetDeletionTimestamp() != nil && mayDelete(u):
				c.t.Errorf("%s: the VM of %s is deleted by its provider", c.name, u.GetName())
			case kind == machinev1alpha1.MachineGroupVersionKind && u.GetDeletionTimestamp() != nil:
				c.t.Errorf("%s: the Node of %s is drained", c.name, u.GetName())
			case kind == machinev1alpha1.MachineGroupVersionKind:
				c.takeOver(u)
			case kind == machinev1alpha1.MachineSetGroupVersionKind:
				c.adopt(u, machinev1alpha1.MachineGroupVersionKind, machinev1alpha1.LabelSet)
			case kind == machinev1alpha1.MachineDeploymentGroupVersionKind:
				c.adopt(u, machinev1alpha1.MachineSetGroupVersionKind, machinev1alpha1.LabelDeployment)
			case kind == machinev1alpha1.NodePoolGroupVersionKind:
				c.adopt(u, machinev1alpha1.MachineDeploymentGroupVersionKind, machinev1alpha1.LabelNodePool)
				if len(c.list(machinev1alpha1.MachineDeploymentGroupVersionKind)) == 0 {
					c.t.Errorf("%s: NodePool %s makes another MachineDeployment", c.name, u.GetName())
				}
			}
		}
	}
}

func (c *cluster) adopt(by *unstructured.Unstructured, kind schema.GroupVersionKind, label string) {
	for _, u := range c.list(kind) {
		if u.GetLabels()[label] == by.GetName() && metav1.GetControllerOf(u) == nil {
			u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(by, by.GroupVersionKind())})
			c.update(u)
		}
	}
}

// takeOver takes over the VM resource of a Machine, or creates another VM if it has none.
func (c *cluster) takeOver(m *unstructured.Unstructured) {
	for _, v := range c.list(serverKind) {
		if v.GetLabels()[machinev1alpha1.LabelMachine] != m.GetName() {
			continue
		}
		if of := v.GetAnnotations()[machinev1alpha1.AnnotationInstallation]; of != c.name {
			return
		}
		if metav1.GetControllerOf(v) == nil {
			v.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(m, m.GroupVersionKind())})
			c.update(v)
			_ = unstructured.SetNestedField(m.Object, "id-"+m.GetName(), "status", "providerID")
			c.update(m)
		}
		return
	}
	if _, had, _ := unstructured.NestedString(m.Object, "spec", "providerID"); had {
		c.t.Errorf("%s: Machine %s makes another VM", c.name, m.GetName())
	}
}

func mayDelete(v *unstructured.Unstructured) bool {
	p, _, _ := unstructured.NestedStringSlice(v.Object, "spec", "managementPolicies")
	return slices.Contains(p, "Delete")
}

// deletable returns the VMs that a cluster may delete as soon as it is resumed.
func (c *cluster) deletable() map[string]bool {
	out := map[string]bool{}
	for _, v := range c.list(serverKind) {
		if mayDelete(v) && v.GetAnnotations()[machinev1alpha1.AnnotationInstallation] == c.name {
			out[v.GetAnnotations()["crossplane.io/external-name"]] = true
		}
	}
	return out
}

func object(kind schema.GroupVersionKind, name string, edits ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetGroupVersionKind(kind)
	u.SetNamespace("ns")
	u.SetName(name)
	u.SetUID(types.UID("here-" + name))
	for _, e := range edits {
		e(u)
	}
	return u
}

func with(value any, path ...string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, value, path...) }
}

func of(owner *unstructured.Unstructured, label string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
		u.SetLabels(map[string]string{label: owner.GetName()})
		u.SetFinalizers([]string{machinev1alpha1.FinalizerTerminator})
	}
}

func clusterScoped(u *unstructured.Unstructured) { u.SetNamespace("") }

// installed returns the objects of a cluster before the move.
func installed(name string) []client.Object {
	d := object(definitionKind, machinev1alpha1.DefinitionOfInstallation, clusterScoped)
	d.SetUID(types.UID(name))
	return []client.Object{
		d, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}},
		object(machinev1alpha1.SchemeGroupVersion.WithKind("MachineClass"), "small"),
		object(schema.GroupVersionKind{Group: "cluster.drover.dev", Version: "v1alpha1", Kind: "ClusterProviderConfig"}, "eu", clusterScoped),
	}
}

// fleet of a pool of one deployment with two Machines in the cluster here.
func fleet() []*unstructured.Unstructured {
	spec := map[string]any{"classRef": map[string]any{"name": "small"}, "clusterRef": map[string]any{"kind": "ClusterProviderConfig", "name": "eu"}}
	p := object(machinev1alpha1.NodePoolGroupVersionKind, "pool")
	d := object(machinev1alpha1.MachineDeploymentGroupVersionKind, "web", of(p, machinev1alpha1.LabelNodePool), with(runtime.DeepCopyJSON(spec), "spec", "template", "spec"))
	d.SetFinalizers([]string{machinev1alpha1.FinalizerTerminator})
	s := object(machinev1alpha1.MachineSetGroupVersionKind, "web-a", of(d, machinev1alpha1.LabelDeployment), with(runtime.DeepCopyJSON(spec), "spec", "template", "spec"))
	g := object(machinev1alpha1.MachineGroupGroupVersionKind, "web-a")
	out := []*unstructured.Unstructured{p, d, s, g}
	for _, name := range []string{"web-a-0", "web-a-1"} {
		m := object(machinev1alpha1.MachineGroupVersionKind, name, with(runtime.DeepCopyJSON(spec), "spec"), of(s, machinev1alpha1.LabelSet),
			with("id-"+name, "spec", "providerID"), with("id-"+name, "status", "providerID"), with("Running", "status", "phase"), with(name, "status", "nodeRef", "name"), with("Node", "status", "nodeRef", "kind"),
			with([]any{map[string]any{"role": "vm", "apiVersion": "cloud.example.org/v1", "kind": "Server", "name": name + "-vm"}}, "status", "resourceRefs"))
		v := object(serverKind, name+"-vm", of(m, machinev1alpha1.LabelMachine), with([]any{"Observe", "Delete"}, "spec", "managementPolicies"), with("large", "spec", "forProvider", "size"))
		v.SetFinalizers([]string{"finalizer.managedresource.crossplane.io", machinev1alpha1.FinalizerDrain})
		v.SetAnnotations(map[string]string{
			AnnotationRole: machinev1alpha1.ResourceVM, "crossplane.io/external-name": "vm-" + name,
			machinev1alpha1.AnnotationInstallation: "here", machinev1alpha1.AnnotationMachineUID: "here-" + name, machinev1alpha1.AnnotationNodeName: name,
		})
		out = append(out, m, v)
	}
	return out
}

func ofClusterClass(u *unstructured.Unstructured) {
	with("ClusterMachineClass", "spec", "classRef", "kind")(u)
}

func here(t *testing.T, left *int, objs ...*unstructured.Unstructured) *cluster {
	t.Helper()
	all := installed("here")
	for _, o := range objs {
		all = append(all, o)
	}
	return newCluster(t, "here", left, all...)
}

func (c *cluster) census() []string {
	var out []string
	for _, kind := range kindsOfFleet {
		for _, u := range c.list(kind) {
			owner := ""
			if by := metav1.GetControllerOf(u); by != nil {
				owner = by.Name
			}
			out = append(out, fmt.Sprintf("%s %s of %q", kind.Kind, u.GetName(), owner))
		}
	}
	return out
}

var moved = []string{
	`NodePool pool of ""`, `MachineDeployment web of "pool"`, `MachineSet web-a of "web"`, `Machine web-a-0 of "web-a"`, `Machine web-a-1 of "web-a"`,
	`Server web-a-0-vm of "web-a-0"`, `Server web-a-1-vm of "web-a-1"`,
}

func mover(t *testing.T, source, destination *cluster) *Move {
	t.Helper()
	m := &Move{Destination: destination, Namespace: "ns", Timeout: time.Minute, Log: t.Logf, every: time.Millisecond}
	if source != nil {
		m.Source = source
	}
	return m
}

// TestAMoveSurvivesItsDeathAtEachWrite stops the move at each of its writes, and restarts it.
func TestAMoveSurvivesItsDeathAtEachWrite(t *testing.T) {
	for k := 0; ; k++ {
		left := k
		source, destination := here(t, &left, fleet()...), newCluster(t, "there", &left, installed("there")...)
		check := func(when string) {
			t.Helper()
			source.act()
			destination.act()
			both := source.deletable()
			maps.DeleteFunc(both, func(vm string, _ bool) bool { return !destination.deletable()[vm] })
			if len(both) > 0 {
				t.Errorf("%s: both clusters may delete %v", when, both)
			}
			// Pauses alone do not keep a VM: a user may end one at any time.
			for _, v := range source.list(serverKind) {
				if p, _, _ := unstructured.NestedStringSlice(v.Object, "spec", "managementPolicies"); v.GetDeletionTimestamp() != nil && !slices.Equal(p, []string{"Observe"}) {
					t.Errorf("%s: %s is being deleted in the source with the policies %v", when, v.GetName(), p)
				}
			}
			if k < 2 && len(destination.list(serverKind)) > 0 {
				t.Errorf("%s: the destination has VMs already", when)
			}
		}
		first := mover(t, source, destination)
		first.Log = func(string, ...any) { check("in the middle") }
		err := first.Run(t.Context())
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatalf("killed at write %d: %v", k, err)
		}
		killed := err != nil
		check("after its death")
		left = -1
		if err := mover(t, source, destination).Run(t.Context()); err != nil {
			t.Fatalf("started again after write %d: %v\nsource %v\ndestination %v", k, err, source.census(), destination.census())
		}
		if d := cmp.Diff(moved, destination.census()); d != "" {
			t.Fatalf("killed at write %d: the destination has (-want +got):\n%s", k, d)
		}
		if got := source.census(); len(got) > 0 {
			t.Fatalf("killed at write %d: the source has %v", k, got)
		}
		if d := cmp.Diff(map[string]bool{"vm-web-a-0": true, "vm-web-a-1": true}, destination.deletable()); d != "" {
			t.Fatalf("killed at write %d: VMs of the destination (-want +got):\n%s", k, d)
		}
		for _, u := range destination.list(machinev1alpha1.MachineGroupVersionKind) {
			if a := u.GetAnnotations(); a[annotationMove] != "" || a[annotationKinds] != "" || a[annotationPaused] != "" || a[annotationFrom] != "here" {
				t.Fatalf("annotations %v", a)
			}
		}
		if t.Failed() {
			t.Fatalf("killed at write %d", k)
		}
		if !killed {
			t.Logf("it writes %d times", k)
			return
		}
	}
}

func TestNothingMovesWhileSomethingStandsAgainstIt(t *testing.T) {
	edit := func(kind string, e func(*unstructured.Unstructured)) func(*[]*unstructured.Unstructured, *[]client.Object) {
		return func(source *[]*unstructured.Unstructured, _ *[]client.Object) {
			for _, u := range *source {
				if u.GetKind() == kind {
					e(u)
				}
			}
		}
	}
	without := func(kind string) func(*[]*unstructured.Unstructured, *[]client.Object) {
		return func(_ *[]*unstructured.Unstructured, destination *[]client.Object) {
			*destination = slices.DeleteFunc(*destination, func(o client.Object) bool { return o.GetObjectKind().GroupVersionKind().Kind == kind })
		}
	}
	for name, tc := range map[string]struct {
		change func(*[]*unstructured.Unstructured, *[]client.Object)
		want   string
	}{
		"WithoutTheClass":               {without("MachineClass"), "the destination has no MachineClass ns/small: create it there first"},
		"WithoutTheClusterMachineClass": {edit("Machine", ofClusterClass), "the destination has no ClusterMachineClass small: create it there first"},
		"WithAClusterMachineClassForOthers": {func(source *[]*unstructured.Unstructured, destination *[]client.Object) {
			edit("MachineDeployment", func(u *unstructured.Unstructured) {
				with("ClusterMachineClass", "spec", "template", "spec", "classRef", "kind")(u)
			})(source, nil)
			*destination = append(*destination, object(machinev1alpha1.ClusterMachineClassGroupVersionKind, "small", clusterScoped, with([]any{"other"}, "spec", "allowedNamespaces")))
		}, `the destination: classRef.name: ClusterMachineClass "small": Machines of namespace "ns" may not use it`},
		"WithoutTheCluster": {without("ClusterProviderConfig"), "the destination has no ClusterProviderConfig eu: create it there first"},
		"WithoutDrover":     {without("CompositeResourceDefinition"), "destination: cannot read the CompositeResourceDefinition orphancollectors.machine.drover.dev: is the Configuration drover installed?"},
		"WhatIsPausedAlready": {edit("MachineSet", func(u *unstructured.Unstructured) {
			xpmeta.AddAnnotations(u, map[string]string{annotationPaused: "true"})
		}), "MachineSet web-a is paused: remove its annotation crossplane.io/paused first"},
		"AMachineThatJoins": {edit("Machine", func(u *unstructured.Unstructured) {
			unstructured.RemoveNestedField(u.Object, "status", "nodeRef")
			with("Joining", "status", "phase")(u)
		}), "Machine web-a-0 has a VM whose Node has not joined: wait for it, or delete the Machine"},
		"AnotherObjectOfTheName": {func(_ *[]*unstructured.Unstructured, d *[]client.Object) {
			*d = append(*d, object(machinev1alpha1.MachineDeploymentGroupVersionKind, "web"))
		}, "the destination has another MachineDeployment web already"},
		"IntoItself": {func(_ *[]*unstructured.Unstructured, d *[]client.Object) { (*d)[0].SetUID("here") }, "the source and the destination are the same control cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			objs, there := fleet(), installed("there")
			tc.change(&objs, &there)
			never := 0
			source, destination := here(t, &never, objs...), newCluster(t, "there", &never, there...)
			before := source.census()
			if err := mover(t, source, destination).Run(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v", err)
			}
			if d := cmp.Diff(before, source.census()); d != "" {
				t.Errorf("the source changed: %s", d)
			}
		})
	}
}

func TestAMoveThatDoesNotEndSaysWhatItWaitsFor(t *testing.T) {
	never := -1
	objs := fleet()
	for _, u := range objs {
		if u.GetKind() == machinev1alpha1.MachineGroupGroupVersionKind.Kind {
			u.SetGeneration(2)
		}
	}
	m := mover(t, here(t, &never, objs...), newCluster(t, "there", &never, installed("there")...))
	// The objects before the MachineGroup must be paused by then, also on a busy computer.
	m.Timeout = 3 * time.Second
	if err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "the source does not rest after 3s: MachineGroup web-a is being carried out. The move can be started again") {
		t.Errorf("error %v", err)
	}
}

func TestWhatWasSavedIsTakenToAnotherCluster(t *testing.T) {
	never := -1
	source := here(t, &never, fleet()...)
	o, err := Read(t.Context(), source, "ns")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := Save(dir, o); err != nil {
		t.Fatal(err)
	}
	if err := Save(dir, o); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("saved twice: %v", err)
	}
	if _, err := Load(dir, "other"); err == nil || !strings.Contains(err.Error(), `metadata.namespace: invalid value "ns": must be "other"`) {
		t.Errorf("loaded for another namespace: %v", err)
	}
	for _, isGone := range []bool{false, true} {
		t.Run(fmt.Sprintf("SourceIsGone=%t", isGone), func(t *testing.T) {
			saved, err := Load(dir, "ns")
			if err != nil {
				t.Fatal(err)
			}
			destination := newCluster(t, "there", &never, installed("there")...)
			m := mover(t, nil, destination)
			m.Saved, m.SourceIsGone = &saved, isGone
			if !isGone {
				// The report has the state of all Machines by then, also on a busy computer.
				m.Timeout = patience.Scale(2 * time.Second)
			}
			err = m.Run(t.Context())
			if !isGone {
				if err == nil || !strings.Contains(err.Error(), "waits for its VM") || len(destination.deletable()) > 0 {
					t.Errorf("error %v, VMs %v", err, destination.deletable())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(moved, destination.census()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if err := m.Run(t.Context()); err != nil {
				t.Errorf("once more: %v", err)
			}
		})
	}
	if got := len(source.census()); got != len(moved) {
		t.Errorf("the source has %d objects", got)
	}
}
