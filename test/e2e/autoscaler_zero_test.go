package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/google/go-cmp/cmp"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localplane"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// calls of a client, in the form of a role's rules: the verbs by resource.
type calls struct {
	sync.Mutex
	made map[string]map[string]bool
}

func (c *calls) add(verb, resource string) {
	c.Lock()
	defer c.Unlock()
	if c.made[resource] == nil {
		c.made[resource] = map[string]bool{}
	}
	c.made[resource][verb] = true
}

func (c *calls) list() map[string]string {
	c.Lock()
	defer c.Unlock()
	out := map[string]string{}
	for r, verbs := range c.made {
		out[r] = strings.Join(slices.Sorted(maps.Keys(verbs)), " ")
	}
	return out
}

// recorded returns a client whose calls are recorded.
func (c *calls) recorded(inner client.WithWatch) client.WithWatch {
	plural := func(o any, w client.WithWatch) string {
		ro, ok := o.(client.Object)
		if l, isList := o.(client.ObjectList); isList {
			gvk, _ := w.GroupVersionKindFor(l)
			return strings.ToLower(strings.TrimSuffix(gvk.Kind, "List")) + "s"
		}
		if !ok {
			return "?"
		}
		gvk, _ := w.GroupVersionKindFor(ro)
		return strings.ToLower(gvk.Kind) + "s"
	}
	return interceptor.NewClient(inner, interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			c.add("get", plural(o, w))
			return w.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, w client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			c.add("list", plural(l, w))
			return w.List(ctx, l, opts...)
		},
		Watch: func(ctx context.Context, w client.WithWatch, l client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			c.add("watch", plural(l, w))
			return w.Watch(ctx, l, opts...)
		},
		Update: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			c.add("update", plural(o, w))
			return w.Update(ctx, o, opts...)
		},
		SubResourceGet: func(ctx context.Context, cl client.Client, sub string, o, into client.Object, opts ...client.SubResourceGetOption) error {
			c.add("get", plural(o, inner)+"/"+sub)
			return cl.SubResource(sub).Get(ctx, o, into, opts...)
		},
		SubResourcePatch: func(ctx context.Context, cl client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			c.add("patch", plural(o, inner)+"/"+sub)
			return cl.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
}

// shipped returns the objects of an example.
func shipped(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(kit.Root(), "examples/autoscaler", file))
	must(t, err)
	var out []*unstructured.Unstructured
	for _, doc := range strings.Split(string(b), "\n---\n") {
		u := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(doc), &u.Object))
		out = append(out, u)
	}
	return out
}

// roleIn returns the verbs of the shipped ClusterRole by resource.
func roleIn(t *testing.T, file, name string) map[string]string {
	t.Helper()
	all := calls{made: map[string]map[string]bool{}}
	for _, u := range shipped(t, file) {
		if u.GetKind() != "ClusterRole" || u.GetName() != name {
			continue
		}
		b, err := yaml.Marshal(u.Object)
		must(t, err)
		role := &rbacv1.ClusterRole{}
		must(t, yaml.UnmarshalStrict(b, role))
		for _, rule := range role.Rules {
			for _, r := range rule.Resources {
				for _, v := range rule.Verbs {
					all.add(v, r)
				}
			}
		}
	}
	return all.list()
}

// TestTheAutoscalerScalesFromZeroByClass applies the shipped manifests, and acts as the
// autoscaler with its ServiceAccount in the control cluster. A group without Nodes, whose
// capacity only its class has, is scaled up for pods and down again.
func TestTheAutoscalerScalesFromZeroByClass(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	example := filepath.Join(kit.Root(), "examples/autoscaler/control-cluster.yaml")
	must(t, localplane.Apply(t.Context(), f.Client, example))
	t.Cleanup(func() {
		for _, u := range slices.Backward(shipped(t, "control-cluster.yaml")) {
			_ = f.Client.Delete(context.Background(), u)
		}
	})
	made := &calls{made: map[string]map[string]bool{}}
	const account = "cluster-autoscaler"
	user := "system:serviceaccount:" + account + ":" + account
	autoscaler := made.recorded(f.Control.As(t, user, "system:serviceaccounts", "system:serviceaccounts:"+account))
	awaitBinding(t, user, f.Namespace)

	class := f.Class("elastic", "local", `{"image":"ubuntu-24.04","size":"small"}`)
	class.Spec.NodeCapacity = &machinev1alpha1.NodeCapacity{
		Capacity:     corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi")},
		Architecture: "arm64", OperatingSystem: "linux",
	}
	f.Create(t, class)
	md := f.Deployment("elastic", 0, 1, 0)
	md.Spec.Template.Spec.ClassRef.Name = class.Name
	group := nodeGroup(f, md)
	group.As = autoscaler
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	set := setOf(t, f, md.Name)

	step(t, "WithoutAReferenceNothingIsKnown", func(t *testing.T) {
		if n, err := group.Template(t.Context()); err == nil {
			t.Errorf("a Node would have %v", n.Status.Capacity)
		}
	})
	step(t, "TheReferenceRollsNothing", func(t *testing.T) {
		f.Patch(t, md, `{"spec":{"template":{"spec":{"infrastructureRef":{"name":"elastic"}}}}}`)
		patience.Eventually(t, func(ctx context.Context) string {
			n, err := group.Template(ctx)
			if err != nil {
				return err.Error()
			}
			want := corev1.NodeStatus{Capacity: class.Spec.NodeCapacity.Capacity, NodeInfo: corev1.NodeSystemInfo{Architecture: "arm64", OperatingSystem: "linux"}}
			return cmp.Diff(want, n.Status)
		}, f.Describe)
		f.AwaitDeployment(t, md.Name)
		if now := setOf(t, f, md.Name); now != set {
			t.Errorf("the MachineSet is %s, want %s", now, set)
		}
		if c := scalesFromZero(t, f, md.Name); c != "True NodeCapacityKnown" {
			t.Error(c)
		}
	})
	step(t, "PodsGetTheirNodes", func(t *testing.T) {
		// By memory, two pods fit on a Node.
		must(t, group.ScaleUp(t.Context(), 3, corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("2Gi")}))
		f.AwaitDeployment(t, md.Name)
		if instances, err := group.Instances(t.Context()); err != nil || len(instances) != 2 || !instances[0].Registered || !instances[1].Registered {
			t.Errorf("instances %v, %v", instances, err)
		}
	})
	step(t, "TheLastNodesAreDeletedAgain", func(t *testing.T) {
		instances, err := group.Instances(t.Context())
		must(t, err)
		for _, i := range instances {
			must(t, group.Delete(t.Context(), i.Machine))
		}
		f.AwaitDeployment(t, md.Name)
		if names := machineNames(t, f); len(names) != 0 {
			t.Errorf("left are %v", names)
		}
	})
	step(t, "AClassThatShowsNothingHasWhatItsSizeHas", func(t *testing.T) {
		plain := f.Class("plain", "local", `{"image":"ubuntu-24.04","size":"medium"}`)
		f.Create(t, plain)
		f.Patch(t, md, `{"spec":{"template":{"spec":{"classRef":{"name":"plain"}}}}}`)
		patience.Eventually(t, func(ctx context.Context) string {
			n, err := group.Template(ctx)
			if err != nil {
				return err.Error()
			}
			// 4 GiB minus 7.5 %.
			want := corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("3788Mi")}
			return cmp.Diff(want, n.Status.Capacity)
		}, f.Describe)
		if c := scalesFromZero(t, f, md.Name); c != "True NodeCapacityKnown" {
			t.Error(c)
		}
	})
	step(t, "ANameThatIsNotItsOwnIsReported", func(t *testing.T) {
		f.Patch(t, md, `{"spec":{"template":{"spec":{"infrastructureRef":{"name":"another"}}}}}`)
		patience.Eventually(t, func(context.Context) string {
			if c := scalesFromZero(t, f, md.Name); c != "False InfrastructureRefInvalid" {
				return c
			}
			return ""
		}, f.Describe)
		patience.Eventually(t, func(ctx context.Context) string {
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(md), &machinev1alpha1.NodeTemplate{}); client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Sprintf("the NodeTemplate is there still: %v", err)
			}
			return ""
		}, f.Describe)
	})
	step(t, "TheShippedRoleHasWhatItCallsAndNoMore", func(t *testing.T) {
		informers(t, autoscaler)
		// MachineSets without a MachineDeployment are groups too.
		made.add("get", "machinesets/scale")
		made.add("patch", "machinesets/scale")
		if d := cmp.Diff(roleIn(t, "control-cluster.yaml", "drover:autoscaler"), made.list()); d != "" {
			t.Errorf("-role +calls\n%s", d)
		}
	})
	f.DeleteDeployment(t, md.Name)
}

// informers of the autoscaler list and watch. Its listers get single objects.
func informers(t *testing.T, as client.WithWatch) {
	t.Helper()
	for _, kind := range []string{"MachineDeployment", "MachineSet", "Machine", "NodeTemplate"} {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(machinev1alpha1.SchemeGroupVersion.WithKind(kind + "List"))
		must(t, as.List(t.Context(), l))
		w, err := as.Watch(t.Context(), l)
		must(t, err)
		w.Stop()
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(machinev1alpha1.SchemeGroupVersion.WithKind(kind))
		must(t, client.IgnoreNotFound(as.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "none"}, u)))
	}
}

func scalesFromZero(t *testing.T, f kit.Fleet, name string) string {
	t.Helper()
	md := &machinev1alpha1.MachineDeployment{}
	must(t, f.Client.Get(t.Context(), client.ObjectKey{Namespace: f.Namespace, Name: name}, md))
	c := meta.FindStatusCondition(md.Status.Conditions, machinev1alpha1.ConditionScalesFromZero)
	if c == nil {
		return "there is no condition ScalesFromZero"
	}
	return fmt.Sprintf("%s %s", c.Status, c.Reason)
}

// TestTheExamplesOfTheAutoscalerAreAccepted applies the examples to real API servers as a dry
// run.
func TestTheExamplesOfTheAutoscalerAreAccepted(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	for _, file := range []string{"target-cluster.yaml", "pool.yaml"} {
		out, err := f.Kubectl(t, "apply", "--dry-run=server", "-f", filepath.Join(kit.Root(), "examples/autoscaler", file))
		if err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
}
