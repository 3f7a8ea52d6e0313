package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// offerZones offers two classes in three zones.
func offerZones(t *testing.T, f kit.Fleet) {
	t.Helper()
	large := f.Class("large", "local", `{"image":"ubuntu-24.04","size":"small"}`)
	large.Spec.NodeCapacity = &machinev1alpha1.NodeCapacity{Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("2Gi")}}
	must(t, f.Client.Create(t.Context(), large))
	class := func(name string) map[string]any {
		return map[string]any{
			"name": name, "classRef": map[string]any{"name": name}, "failureDomains": []any{"zone-a", "zone-b", "zone-c"},
			"labels": map[string]any{"example.org/class": name}, "maxSize": int64(8),
		}
	}
	f.Offer(t, map[string]any{"versions": []any{kit.OldVersion, kit.NewVersion}, "classes": []any{class("small"), class("large")}})
}

// sellOut makes a zone full for the Machines of a pool, and returns a function that ends this.
func sellOut(t *testing.T, f kit.Fleet, pool, zone string) (giveRoom func()) {
	t.Helper()
	fault, err := f.Cloud.CreateFault(t.Context(), localcloud.Fault{
		Kind: localcloud.FaultCreateFails, Code: localcloud.CodeCapacityExhausted, Message: "sold out", Count: 1000,
		Match: localcloud.FaultMatch{Name: pool + "-" + zone + "-*", Tags: map[string]string{machinev1alpha1.TagNamespace: f.Namespace}},
	})
	must(t, err)
	return func() { must(t, f.Cloud.DeleteFault(t.Context(), fault.ID)) }
}

// tryAgain ends the time for which zones count as exhausted.
func tryAgain(t *testing.T, f kit.Fleet) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		sets := &machinev1alpha1.MachineSetList{}
		if err := f.Client.List(ctx, sets, client.InNamespace(f.Namespace)); err != nil {
			return err.Error()
		}
		for i := range sets.Items {
			if e := sets.Items[i].Status.Exhausted; e != nil && (e.Until == nil || time.Until(e.Until.Time) > 0) {
				patch := fmt.Sprintf(`{"status":{"exhausted":{"until":%q}}}`, time.Now().UTC().Add(-time.Second).Format(time.RFC3339))
				f.PatchStatusIn(t, f.Control, &sets.Items[i], patch)
				return "MachineSet " + sets.Items[i].Name + " is exhausted"
			}
		}
		return ""
	})
}

// teamSeesTheOffer checks that a user with nothing but the role edit in the namespace reads the offer, in the status of the
// pool too, and that with drover:offer beside it the user gets the plan of a change. Without it, the error names the role
// to bind.
func teamSeesTheOffer(t *testing.T, f kit.Fleet, pool *machinev1alpha1.NodePool) {
	t.Helper()
	user := tenantName(t, f, "edit")
	file := filepath.Join(t.TempDir(), "pool.yaml")
	larger := pool.DeepCopy()
	larger.SetGroupVersionKind(machinev1alpha1.NodePoolGroupVersionKind)
	larger.ManagedFields, larger.ResourceVersion, larger.Status = nil, "", machinev1alpha1.NodePoolStatus{}
	larger.Spec.Size = ptr.To[int32](6)
	b, err := yaml.Marshal(larger)
	must(t, err)
	must(t, os.WriteFile(file, b, 0o600))
	if out, code := runPlugin(t.Context(), f, "plan", "-f", file, "--as", user); code != 1 || !strings.Contains(out, "drover:offer") {
		t.Errorf("kubectl drover plan without the role: exit code %d, want drover:offer in\n%s", code, out)
	}
	offered := []string{`"name":"large"`, `"name":"small"`, `"size":"small"`, "zone-c", kit.NewVersion, `"maxSize":8`, `"cpu":"1"`}
	reads := func(want []string, read func(context.Context) (string, int)) {
		t.Helper()
		patience.Eventually(t, func(ctx context.Context) string {
			out, code := read(ctx)
			for _, text := range want {
				if code != 0 || !strings.Contains(out, text) {
					return fmt.Sprintf("exit code %d, want %q in\n%s", code, text, out)
				}
			}
			return ""
		})
	}
	reads(offered, func(ctx context.Context) (string, int) { return runPlugin(ctx, f, "offer", "-o", "json", "--as", user) })
	if out := kubectl(t, f, "get", "nodepool", pool.Name, "-o", "jsonpath={.status.offer}", "--as", user); !strings.Contains(out, `"name":"large"`) {
		t.Errorf("the status has the offer %s", out)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace + "-offer"}}
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "drover:offer"}
	binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	must(t, f.Client.Create(t.Context(), binding))
	t.Cleanup(func() { _ = f.Client.Delete(context.Background(), binding) })
	reads(append(offered, "example.org/class"), func(ctx context.Context) (string, int) { return runPlugin(ctx, f, "offer", "-o", "json", "--as", user) })
	reads([]string{"2 Machines are created"}, func(ctx context.Context) (string, int) { return runPlugin(ctx, f, "plan", "-f", file, "--as", user) })
}

// TestANodePool tests the life of a pool of fixed size in three zones.
func TestANodePool(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	offerZones(t, f)
	pool := f.Pool(t, "web", map[string]any{"class": "small", "size": int64(4), "labels": map[string]any{"example.org/tier": "web"}})
	zones := func(want map[string]int) func(context.Context) string {
		return func(ctx context.Context) string {
			if is, err := f.Zones(ctx); err != nil || !maps.Equal(is, want) {
				return fmt.Sprintf("VMs by zone %v, want %v: %v", is, want, err)
			}
			return ""
		}
	}
	patch := func(t *testing.T, spec string) { f.Patch(t, pool, `{"spec":`+spec+`}`) }

	step(t, "FourNodesOverThreeZones", func(t *testing.T) {
		f.AwaitPool(t, pool, zones(map[string]int{"zone-a": 2, "zone-b": 1, "zone-c": 1}))
		if s := pool.Status; s.AvailableReplicas != 4 || s.Version != kit.OldVersion || len(s.FailureDomains) != 3 {
			t.Errorf("status %+v", s)
		}
		out, code := runPlugin(t.Context(), f, "rollout", "history", "np/web")
		for _, d := range pool.Status.FailureDomains {
			if code != 0 || !strings.Contains(out, d.MachineDeployment) {
				t.Errorf("kubectl drover rollout history np/web: exit code %d, want %s in\n%s", code, d.MachineDeployment, out)
			}
		}
		nodes, err := f.Nodes(t.Context())
		must(t, err)
		for _, n := range nodes {
			for k, v := range map[string]string{"example.org/tier": "web", "example.org/class": "small", machinev1alpha1.LabelNodePool: "web"} {
				if n.Labels[k] != v {
					t.Errorf("Node %s has labels %v, want %s=%s", n.Name, n.Labels, k, v)
				}
			}
		}
	})
	step(t, "AMemberOfTheTeamSeesTheOfferAndAPlan", func(t *testing.T) { teamSeesTheOffer(t, f, pool) })
	step(t, "AReplacementIsInTheHistoryOfThePool", func(t *testing.T) {
		name := slices.Sorted(maps.Keys(machineNames(t, f)))[0]
		user := tenantName(t, f, "drover:user")
		if out, code := runPlugin(t.Context(), f, "replace", "ma/"+name, "--as", user); code != 0 {
			t.Fatalf("kubectl drover replace: exit code %d\n%s", code, out)
		}
		patience.Eventually(t, func(ctx context.Context) string {
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(pool), pool); err != nil {
				return err.Error()
			}
			if all := pool.Status.Replacements; len(all) != 1 || all[0].Machine != name || all[0].RequestedBy != user || all[0].DrainDuration == nil {
				return fmt.Sprintf("replacements are %+v", all)
			}
			return ""
		}, f.Describe)
		f.AwaitPool(t, pool, zones(map[string]int{"zone-a": 2, "zone-b": 1, "zone-c": 1}))
		if out, code := runPlugin(t.Context(), f, "history", "np/web", "--as", user); code != 0 || !strings.Contains(out, "user "+user) {
			t.Errorf("kubectl drover history np/web: exit code %d\n%s", code, out)
		}
	})
	step(t, "WhatAnExhaustedZoneLacksComesFromTheOthers", func(t *testing.T) {
		giveRoom := sellOut(t, f, "web", "zone-b")
		bounds := f.Guard(t, kit.Bounds{MaxMachines: 7 + 1, MinAvailable: 4})
		patch(t, `{"size":7}`)
		f.AwaitPool(t, pool, zones(map[string]int{"zone-a": 3, "zone-b": 1, "zone-c": 3}))
		bounds.Done(t, 4)
		if c := meta.FindStatusCondition(pool.Status.Conditions, machinev1alpha1.ConditionCapacityExhausted); c == nil || c.Status != "True" || !strings.Contains(c.Message, "zone-b") {
			t.Errorf("CapacityExhausted %+v", c)
		}
		giveRoom()
	})
	step(t, "AZoneWithRoomAgainGetsItsPartBack", func(t *testing.T) {
		bounds := f.Guard(t, kit.Bounds{MaxMachines: 7 + 1, MinAvailable: 7})
		tryAgain(t, f)
		f.AwaitPool(t, pool, zones(map[string]int{"zone-a": 3, "zone-b": 2, "zone-c": 2}))
		bounds.Done(t, 2)
	})
	step(t, "WhatIsNotOfferedChangesNothing", func(t *testing.T) {
		for spec, message := range map[string]string{
			`{"class":"huge"}`:              `spec.class: "huge" is not offered: must be one of small, large`,
			`{"size":9}`:                    `spec.size: "9" is not offered: must be at most 8`,
			`{"version":"v1.2.3"}`:          `spec.version: "v1.2.3" is not offered: must be one of`,
			`{"failureDomains":["zone-z"]}`: `spec.failureDomains[0]: "zone-z" is not offered: must be one of zone-a, zone-b, zone-c`,
			`{"rollout":{"windows":[{"schedule":"0 2 30 2 *","duration":"1h"}]}}`: `spec.rollout.windows[0].schedule: invalid value "0 2 30 2 *": there is no such day`,
			`{"rollout":{"maxAge":"10m"}}`:                                        `spec.rollout.maxAge: invalid value "10m0s": must be at least 1h0m0s`,
		} {
			patch(t, spec)
			patience.Eventually(t, func(ctx context.Context) string {
				if err := f.Client.Get(ctx, client.ObjectKeyFromObject(pool), pool); err != nil {
					return err.Error()
				}
				c := meta.FindStatusCondition(pool.Status.Conditions, machinev1alpha1.ConditionStalled)
				if pool.Status.ObservedGeneration != pool.Generation || c == nil || c.Status != "True" || !strings.Contains(c.Message, message) {
					return fmt.Sprintf("Stalled %+v, want %s", c, message)
				}
				return ""
			})
			must(t, f.Client.Get(t.Context(), client.ObjectKeyFromObject(pool), pool))
			patch(t, `{"class":"small","size":7,"version":null,"failureDomains":null,"rollout":null}`)
			f.AwaitPool(t, pool, zones(map[string]int{"zone-a": 3, "zone-b": 2, "zone-c": 2}))
		}
	})
	step(t, "AScaleOfThePool", func(t *testing.T) {
		kubectl(t, f, "scale", "nodepool", "web", "--replicas=3")
		f.AwaitPool(t, pool, zones(map[string]int{"zone-a": 1, "zone-b": 1, "zone-c": 1}))
	})
	step(t, "AnotherClassReplacesTheMachinesZoneByZoneWithinTheWindow", func(t *testing.T) {
		// The pool is scaled before the Machines that it no longer needs are gone.
		patience.Eventually(t, func(ctx context.Context) string {
			machines, err := f.Machines(ctx)
			if err != nil || len(machines) != 3 {
				return fmt.Sprintf("%d Machines, want 3; error %v", len(machines), err)
			}
			return ""
		})
		bounds := f.Guard(t, kit.Bounds{MaxMachines: 3 + 1, MinAvailable: 3})
		patch(t, `{"class":"large","strategy":{"failureDomains":"OneByOne"},"rollout":{"windows":[{"schedule":"0 0 29 2 *","duration":"1m"}]}}`)
		patience.Eventually(t, func(ctx context.Context) string {
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(pool), pool); err != nil {
				return err.Error()
			}
			c := meta.FindStatusCondition(pool.Status.Conditions, machinev1alpha1.ConditionReconciling)
			if c == nil || c.Status != "False" || c.Reason != machinev1alpha1.ReasonOutsideWindow || pool.Status.FailureDomains[1].WaitsFor != "zone-a" {
				return fmt.Sprintf("Reconciling %+v, failure domains %+v", c, pool.Status.FailureDomains)
			}
			return ""
		}, f.Describe)
		patch(t, `{"rollout":null}`)
		f.AwaitPool(t, pool, zones(map[string]int{"zone-a": 1, "zone-b": 1, "zone-c": 1}))
		bounds.Done(t, 6)
		machines, err := f.Machines(t.Context())
		must(t, err)
		for _, m := range machines {
			if m.Spec.ClassRef.Name != "large" {
				t.Errorf("Machine %s is of the class %s", m.Name, m.Spec.ClassRef.Name)
			}
		}
	})
	step(t, "AZoneThatIsLeftIsEmptiedAfterTheOthersAreFilled", func(t *testing.T) {
		bounds := f.Guard(t, kit.Bounds{MaxMachines: 3 + 1, MinAvailable: 3})
		patch(t, `{"failureDomains":["zone-b","zone-c"]}`)
		f.AwaitPool(t, pool, zones(map[string]int{"zone-b": 2, "zone-c": 1}))
		bounds.Done(t, 2)
		patience.Eventually(t, func(ctx context.Context) string {
			mds := &machinev1alpha1.MachineDeploymentList{}
			if err := f.Client.List(ctx, mds, client.InNamespace(f.Namespace)); err != nil || len(mds.Items) != 2 {
				return fmt.Sprintf("%d MachineDeployments, want 2: %v", len(mds.Items), err)
			}
			return ""
		})
	})
	step(t, "ItsDeletionWaitsForTheLastVM", func(t *testing.T) {
		kubectl(t, f, "delete", "nodepool", "web")
		if vms, err := f.VMs(t.Context()); err != nil || len(vms) > 0 {
			t.Errorf("%d VMs are left: %v", len(vms), err)
		}
		f.AwaitNothing(t)
	})
}

// TestANodePoolWithAutoscaling scales the groups of a pool up from zero like the
// cluster-autoscaler, with one exhausted zone, within the bounds of the pool.
func TestANodePoolWithAutoscaling(t *testing.T) {
	kit.OnlyInLong(t, "TestTheAutoscalerScalesFromZeroByClass, and the property tests of internal/plan/pool")
	t.Parallel()
	const most = 4
	f := plane.NewFleet(t)
	offerZones(t, f)
	giveRoom := sellOut(t, f, "batch", "zone-a")
	pool := f.Pool(t, "batch", map[string]any{"class": "large", "autoscaling": map[string]any{"min": int64(0), "max": int64(most)}, "failureDomains": []any{"zone-a", "zone-b"}})
	// groups that the autoscaler discovers by the annotations.
	groups := func(ctx context.Context) (out []group, err error) {
		mds := &machinev1alpha1.MachineDeploymentList{}
		if err := f.Client.List(ctx, mds, client.InNamespace(f.Namespace)); err != nil {
			return nil, err
		}
		for _, md := range mds.Items {
			g := group{NodeGroup: &kit.NodeGroup{Fleet: f, Name: md.Name, ProvisionTime: patience.Limit()}, size: md.Spec.Replicas}
			// If the group is empty, the autoscaler reads the capacity of the object that the
			// template references.
			of := &machinev1alpha1.NodeTemplate{}
			if ref := md.Spec.Template.Spec.InfrastructureRef; ref == nil || f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: ref.Name}, of) != nil || of.Status.Capacity.Cpu().IsZero() {
				return nil, fmt.Errorf("MachineDeployment %s shows no capacity: %+v", md.Name, of.Status)
			}
			if _, err := fmt.Sscan(md.Annotations[machinev1alpha1.AnnotationNodeGroupMaxSize], &g.max); err == nil && g.max > 0 {
				out = append(out, g)
			}
		}
		return out, nil
	}
	f.AwaitPool(t, pool, func(ctx context.Context) string {
		if all, err := groups(ctx); err != nil || len(all) != 2 || all[0].max+all[1].max != most || all[0].size+all[1].size != 0 {
			return fmt.Sprintf("groups %v: %v", all, err)
		}
		return ""
	})
	// The autoscaler requests the maximum of the pool. Each loop deletes Failed Machines.
	last, backsOff := time.Time{}, false
	patience.Eventually(t, func(ctx context.Context) string {
		all, err := groups(ctx)
		if err != nil {
			return err.Error()
		}
		total, registered := int32(0), 0
		for _, g := range all {
			total += g.size
			instances, err := g.Instances(ctx)
			if err != nil {
				return err.Error()
			}
			for _, i := range instances {
				if i.Registered {
					registered++
				}
			}
		}
		if total > most {
			t.Fatalf("the groups have %d replicas, the pool has a maximum of %d", total, most)
		}
		if time.Since(last) >= kit.ScanInterval {
			last = time.Now()
			for _, g := range all {
				deleted, err := g.Loop(ctx)
				if err != nil {
					return err.Error()
				}
				// A failed group is not scaled up for five minutes.
				if len(deleted) == 0 && g.size < g.max && !(strings.Contains(g.Name, "zone-a") && backsOff) {
					if err := g.Resize(ctx, g.max); err != nil {
						return err.Error()
					}
				}
				backsOff = backsOff || len(deleted) > 0
			}
		}
		if zones, err := f.Zones(ctx); err != nil || registered != most || zones["zone-b"] != most {
			return fmt.Sprintf("%d Nodes are registered, want %d in zone-b, VMs by zone %v: %v", registered, most, zones, err)
		}
		return ""
	}, f.Describe)
	giveRoom()
	// If another field of the pool changes, the autoscaler's number of replicas is kept.
	f.Patch(t, pool, `{"spec":{"labels":{"example.org/more":"true"}}}`)
	f.AwaitPool(t, pool, func(ctx context.Context) string {
		if pool.Status.DesiredReplicas != most || pool.Status.AvailableReplicas != most {
			return fmt.Sprintf("status %+v", pool.Status)
		}
		return ""
	})
	out, err := f.Kubectl(t, "patch", "nodepool", "batch", "-n", f.Namespace, "--type=merge", "-p", `{"spec":{"size":1}}`)
	if err == nil || !strings.Contains(out, "exactly one of size and autoscaling must be set") {
		t.Errorf("a size for a pool with autoscaling: %s, %v", out, err)
	}
	kubectl(t, f, "delete", "nodepool", "batch")
	f.AwaitNothing(t)
}

// A group of the autoscaler, with its size and its maximum.
type group struct {
	*kit.NodeGroup
	size, max int32
}

// TestTwoTeamsWithNodePools gives two teams the role edit in a namespace each. Each team has a
// pool, and can neither see nor change the pool of the other team or the offers of the platform.
func TestTwoTeamsWithNodePools(t *testing.T) {
	t.Parallel()
	type team struct {
		kit.Fleet
		client.Client
		pool *unstructured.Unstructured
	}
	var teams []team
	for range 2 {
		f := plane.NewFleet(t)
		offerZones(t, f)
		is := team{Fleet: f, Client: tenant(t, f, "edit"), pool: &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"class": "small", "size": int64(1), "crossplane": map[string]any{"compositionRef": map[string]any{"name": f.Namespace}},
		}}}}
		is.pool.SetGroupVersionKind(machinev1alpha1.NodePoolGroupVersionKind)
		is.pool.SetNamespace(f.Namespace)
		is.pool.SetName("web")
		must(t, is.Client.Create(t.Context(), is.pool.DeepCopy()))
		teams = append(teams, is)
	}
	for i, is := range teams {
		other := teams[1-i]
		pool := &machinev1alpha1.NodePool{}
		pool.Namespace, pool.Name = is.Namespace, "web"
		is.AwaitPool(t, pool, func(context.Context) string { return "" })
		theirs := other.pool.DeepCopy()
		merge := func(patch string) client.Patch { return client.RawPatch("application/merge-patch+json", []byte(patch)) }
		composition := &unstructured.Unstructured{}
		composition.SetAPIVersion("apiextensions.crossplane.io/v1")
		composition.SetKind("Composition")
		composition.SetName(is.Namespace)
		for what, err := range map[string]error{
			"reads the pool of the other team":   is.Client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs),
			"lists the pools of the other team":  is.Client.List(t.Context(), &machinev1alpha1.NodePoolList{}, client.InNamespace(other.Namespace)),
			"scales the pool of the other team":  is.Client.Patch(t.Context(), theirs, merge(`{"spec":{"size":0}}`)),
			"deletes the pool of the other team": is.Client.Delete(t.Context(), other.pool.DeepCopy()),
			"writes the status of its own pool":  is.Client.Status().Patch(t.Context(), is.pool.DeepCopy(), merge(`{"status":{"replicas":9}}`)),
			"changes the offer":                  is.Client.Patch(t.Context(), composition, merge(`{"spec":{"pipeline":[]}}`)),
			"writes a class":                     is.Client.Create(t.Context(), is.Class("mine", "local", `{"image":"ubuntu-24.04","size":"small"}`)),
			"creates a pool in the other team":   is.Client.Create(t.Context(), theirs.DeepCopy()),
		} {
			if !kerrors.IsForbidden(err) {
				t.Errorf("a team that %s: %v, want Forbidden", what, err)
			}
		}
		must(t, is.Client.Patch(t.Context(), is.pool.DeepCopy(), merge(`{"spec":{"size":2}}`)))
		is.AwaitPool(t, pool, func(context.Context) string {
			if pool.Status.AvailableReplicas != 2 {
				return fmt.Sprintf("%d Machines are available, want 2", pool.Status.AvailableReplicas)
			}
			return ""
		})
		must(t, is.Client.Delete(t.Context(), is.pool.DeepCopy()))
		is.AwaitNothing(t)
	}
}

// TestAClaimOfANodePool applies the example of a Crossplane v1 claim.
func TestAClaimOfANodePool(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	for _, name := range []string{"definition.yaml", "composition.yaml", "claim.yaml"} {
		o := f.Example(t, "claims/"+name)
		if name == "claim.yaml" {
			o.SetNamespace(f.Namespace)
		}
		// The API server serves the claim's kind after Crossplane has created its CRD.
		patience.Eventually(t, func(ctx context.Context) string {
			if err := f.Client.Create(ctx, o.DeepCopy()); err != nil {
				return err.Error()
			}
			return ""
		})
		t.Cleanup(func() { _ = f.Client.Delete(context.Background(), o.DeepCopy()) })
	}
	claim := f.Example(t, "claims/claim.yaml")
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: "web"}, claim); err != nil {
			return err.Error()
		}
		status := &machinev1alpha1.NodePool{}
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(claim.Object, status))
		for typ, want := range map[string]string{"Ready": "True", "Reconciling": "False", "Valid": "True"} {
			if c := meta.FindStatusCondition(status.Status.Conditions, typ); c == nil || string(c.Status) != want {
				return fmt.Sprintf("%s %+v, want %s: %+v", typ, c, want, status.Status)
			}
		}
		if status.Status.AvailableReplicas != 3 {
			return fmt.Sprintf("status %+v", status.Status)
		}
		return ""
	}, f.Describe)
	if zones, err := f.Zones(t.Context()); err != nil || len(zones) != 3 {
		t.Errorf("VMs by zone %v: %v", zones, err)
	}
	kubectl(t, f, "delete", "nodepools.platform.example.org", "web")
	f.AwaitNothing(t)
}
