package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	inventoryv1alpha1 "github.com/drover-dev/drover/apis/inventory/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/finalizer"
	"github.com/drover-dev/drover/internal/pipeline"
	"github.com/drover-dev/drover/internal/plan"
)

// retryInventories is how often Drover checks whether a kind of inventories exists. The package of the kind may
// be installed at any time.
const retryInventories = time.Minute

// inventories have the reports of clouds about the VMs of Machines. A Machine is enqueued when a report about
// it changes, and by no other change of an inventory.
type inventories struct {
	// exists reports whether a kind is served, and start watches it.
	exists func(schema.GroupVersionKind) bool
	start  func(schema.GroupVersionKind, handler.TypedEventHandler[*unstructured.Unstructured, reconcile.Request]) error

	mu sync.Mutex
	// wanted kinds, and whether they are watched.
	wanted map[schema.GroupVersionKind]bool
	// reports of inventories, by Machine.
	reports map[inventoryKey]map[types.NamespacedName]plan.InventoryReport
}

type inventoryKey struct {
	kind schema.GroupVersionKind
	name string
}

func newInventories(exists func(schema.GroupVersionKind) bool) *inventories {
	return &inventories{exists: exists, wanted: map[schema.GroupVersionKind]bool{}, reports: map[inventoryKey]map[types.NamespacedName]plan.InventoryReport{}}
}

// Start looks for kinds whose packages are installed later, until the context is done.
func (i *inventories) Start(ctx context.Context) error {
	t := time.NewTicker(retryInventories)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			i.retry()
		}
	}
}

// NeedLeaderElection is true, as for the controller that these watches enqueue Machines for.
func (i *inventories) NeedLeaderElection() bool { return true }

func (i *inventories) retry() {
	i.mu.Lock()
	kinds := maps.Clone(i.wanted)
	i.mu.Unlock()
	for kind, watched := range kinds {
		if !watched {
			i.watch(kind)
		}
	}
}

// want watches a kind, if it exists.
func (i *inventories) want(kind schema.GroupVersionKind) {
	i.mu.Lock()
	_, known := i.wanted[kind]
	if !known {
		i.wanted[kind] = false
	}
	i.mu.Unlock()
	if !known {
		i.watch(kind)
	}
}

func (i *inventories) watch(kind schema.GroupVersionKind) {
	if !i.exists(kind) {
		return
	}
	i.mu.Lock()
	watched := i.wanted[kind]
	i.wanted[kind] = true
	i.mu.Unlock()
	if watched {
		return
	}
	if err := i.start(kind, i.handler(kind)); err != nil {
		i.mu.Lock()
		i.wanted[kind] = false
		i.mu.Unlock()
	}
}

// report returns the report of a kind of inventories about a Machine's VM, nil if there is none.
func (i *inventories) report(kind schema.GroupVersionKind, machine types.NamespacedName, vm *unstructured.Unstructured) *plan.InventoryReport {
	if kind.Empty() || vm == nil {
		return nil
	}
	i.want(kind)
	i.mu.Lock()
	defer i.mu.Unlock()
	for key, by := range i.reports {
		if r, ok := by[machine]; ok && key.kind == kind && r.ExternalName == meta.GetExternalName(vm) {
			return &r
		}
	}
	return nil
}

// handler of a kind of inventories enqueues the Machines whose report changed.
func (i *inventories) handler(kind schema.GroupVersionKind) handler.TypedEventHandler[*unstructured.Unstructured, reconcile.Request] {
	note := func(obj *unstructured.Unstructured, now map[types.NamespacedName]plan.InventoryReport, q queue) {
		if obj.GetNamespace() != machinev1alpha1.NamespaceOfInstallations {
			return
		}
		for _, machine := range i.note(inventoryKey{kind, obj.GetName()}, now) {
			q.Add(reconcile.Request{NamespacedName: machine})
		}
	}
	return handler.TypedFuncs[*unstructured.Unstructured, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*unstructured.Unstructured], q queue) {
			note(e.Object, reportsOf(e.Object), q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*unstructured.Unstructured], q queue) {
			note(e.ObjectNew, reportsOf(e.ObjectNew), q)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*unstructured.Unstructured], q queue) {
			note(e.Object, nil, q)
		},
	}
}

// note stores the reports of an inventory, and returns the Machines whose report changed.
func (i *inventories) note(key inventoryKey, now map[types.NamespacedName]plan.InventoryReport) []types.NamespacedName {
	i.mu.Lock()
	defer i.mu.Unlock()
	was := i.reports[key]
	if delete(i.reports, key); len(now) > 0 {
		i.reports[key] = now
	}
	var changed []types.NamespacedName
	for machine, r := range now {
		if was[machine] != r {
			changed = append(changed, machine)
		}
	}
	for machine := range was {
		if _, still := now[machine]; !still {
			changed = append(changed, machine)
		}
	}
	return changed
}

// reportsOf returns the reports of an inventory by Machine, of which each was confirmed by two reads of the
// cloud. Only the inventory of an OrphanCollector in the namespace of the operators counts, and only while its
// last read succeeded: a team must not be able to fail the Machines of another team.
func reportsOf(obj *unstructured.Unstructured) map[types.NamespacedName]plan.InventoryReport {
	if _, ok := finalizer.ControllerOf(obj, machinev1alpha1.OrphanCollectorGroupVersionKind); !ok || obj.GetDeletionTimestamp() != nil {
		return nil
	}
	o := struct {
		Status struct {
			Conditions []struct {
				Type, Status       string
				ObservedGeneration int64
			} `json:"conditions"`
			AtProvider inventoryv1alpha1.InventoryObservation `json:"atProvider"`
		} `json:"status"`
	}{}
	b, err := json.Marshal(map[string]any{"status": obj.Object["status"]})
	if err != nil || json.Unmarshal(b, &o) != nil {
		return nil
	}
	synced := false
	for _, c := range o.Status.Conditions {
		if c.Type == "Synced" {
			synced = c.Status == string(corev1.ConditionTrue) && (c.ObservedGeneration == 0 || c.ObservedGeneration == obj.GetGeneration())
		}
	}
	if !synced {
		return nil
	}
	what := fmt.Sprintf("%s %s/%s", obj.GetKind(), obj.GetNamespace(), obj.GetName())
	out := map[types.NamespacedName]plan.InventoryReport{}
	add := func(c inventoryv1alpha1.Claim, r plan.InventoryReport) {
		if r.Inventory, r.ExternalName = what, c.ExternalName; c.Machine != "" {
			out[types.NamespacedName{Namespace: c.Namespace, Name: c.Machine}] = r
		}
	}
	for _, s := range o.Status.AtProvider.States {
		if s.ConfirmedAt != nil {
			add(s.Claim, plan.InventoryReport{State: s.State, Text: s.Text, Since: s.FirstSeen.UTC().Format(time.RFC3339)})
		}
	}
	for _, m := range o.Status.AtProvider.Missing {
		if m.ConfirmedAt != nil {
			add(m.Claim, plan.InventoryReport{State: plan.InventoryMissing, Since: m.FirstMissed.UTC().Format(time.RFC3339)})
		}
	}
	return out
}

// inventoryKindOf returns the kind of inventories in the input of the step infrastructure, empty if it has
// none.
func inventoryKindOf(steps []pipeline.Step) schema.GroupVersionKind {
	for _, s := range steps {
		input := s.Input.GetFields()
		if input["kind"].GetStringValue() != "Infrastructure" {
			continue
		}
		f := input["inventory"].GetStructValue().GetFields()
		kind := schema.FromAPIVersionAndKind(f["apiVersion"].GetStringValue(), f["kind"].GetStringValue())
		if kind.Kind == inventoryv1alpha1.Kind && kind.Group != "" {
			return kind
		}
	}
	return schema.GroupVersionKind{}
}

// kindExists reports whether a mapper, which discovers new kinds, knows a kind.
func kindExists(mapper apimeta.RESTMapper) func(schema.GroupVersionKind) bool {
	return func(kind schema.GroupVersionKind) bool {
		_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		return err == nil
	}
}
