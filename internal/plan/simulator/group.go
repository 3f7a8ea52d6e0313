package simulator

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/group"
)

func applyGroup(existing, desired *machinev1alpha1.MachineGroup) bool {
	changed := !equal(existing.Spec, desired.Spec)
	desired.Spec.DeepCopyInto(&existing.Spec)
	return changed
}

// ReconcileGroup as the controller of MachineGroups does, with the present state of its views.
func (c *Cluster) ReconcileGroup(name string) { _ = c.reconcileGroup(name) }

// reconcileGroup loses the memory of the controller in a crash.
func (c *Cluster) reconcileGroup(name string) error {
	err := c.carryOutGroup(name)
	if errors.Is(err, errCrash) {
		c.forgetReleased()
	}
	return err
}

func (c *Cluster) carryOutGroup(name string) error {
	seen, ok := c.groupView.get(name)
	if !ok {
		return nil
	}
	g := seen.object
	owner := metav1.GetControllerOf(g)
	machines := map[string]*machinev1alpha1.Machine{}
	var ours []*machinev1alpha1.Machine
	for _, m := range c.machinesOfGroup.list() {
		machines[m.Name] = m
		if by := metav1.GetControllerOf(m); by != nil && by.UID == owner.UID || by == nil && group.Matches(g, m) {
			ours = append(ours, m)
		}
	}
	p := group.PlanOf(g, owner.UID, machines)
	for _, err := range p.Errors {
		c.violated("MachineGroup %s: %v", name, err)
	}

	if _, ok := c.groups.unchanged(g); p.Creates() && !ok {
		return errConflict
	}
	for _, m := range p.Delete {
		if c.Crash() {
			return errCrash
		}
		c.deleteSeen(m)
	}
	var created []string
	for _, i := range c.Order(len(p.Apply)) {
		if c.Crash() {
			return errCrash
		}
		ch := p.Apply[i]
		if c.applyChange(*owner, ch) == nil && ch.Existing == nil {
			created = append(created, ch.Name)
		}
	}
	var gone []string
	for _, n := range p.Missing {
		if _, ok := c.machines.get(n); !ok {
			gone = append(gone, n)
		}
	}
	digest := c.digest(owner.UID, ours)
	if c.Crash() {
		return errCrash
	}
	now, ok := c.groups.unchanged(g)
	if !ok {
		return errConflict
	}
	now.object.Status = group.Status(g, p, group.Outcome{
		Created: created, Gone: gone, Released: c.releasedOf(name), Digest: digest, Err: errors.Join(p.Errors...),
	})
	for i := range now.object.Status.Conditions {
		now.object.Status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	if !equal(g.Status, now.object.Status) {
		c.groups.put(now.object, nil)
	}
	c.released[name] = group.Unreported(c.released[name], now.object.Status.Released)
	return nil
}

// digest of the Machines of a set, in any order.
func (c *Cluster) digest(set types.UID, ms []*machinev1alpha1.Machine) string {
	versions := make([]string, 0, len(ms))
	for _, m := range ms {
		versions = append(versions, m.ResourceVersion)
	}
	slices.Sort(versions)
	key := string(set) + " " + strings.Join(versions, " ")
	if d, known := c.digests[key]; known {
		return d
	}
	d, err := group.Digest(set, ms)
	if err != nil {
		panic(err)
	}
	c.digests[key] = d
	return d
}

// applyChange as the API server does: it creates only Machines that the view does not have.
func (c *Cluster) applyChange(owner metav1.OwnerReference, ch group.Change) error {
	owner.Kind = machinev1alpha1.MachineSetGroupVersionKind.Kind
	spec := machinev1alpha1.MachineSpec{}
	if err := json.Unmarshal(ch.Template.Spec.Raw, &spec); err != nil {
		return err
	}
	e, exists := c.machines.get(ch.Name)
	switch {
	case !exists && ch.Existing == nil:
		m := &machinev1alpha1.Machine{Spec: spec}
		m.Namespace, m.Name, m.UID, m.Generation = "default", ch.Name, c.uid(), 1
		m.CreationTimestamp = metav1.NewTime(c.Now)
		m.Labels, m.Annotations = ch.Template.Metadata.Labels, map[string]string{machinev1alpha1.AnnotationTemplate: ch.Template.Name}
		maps.Copy(m.Annotations, ch.Template.Metadata.Annotations)
		m.OwnerReferences = []metav1.OwnerReference{owner}
		c.onCreate(c, m)
		c.Made++
		c.machines.put(m, nil)
		return nil
	case !exists || ch.Existing != nil && ch.Existing.UID != e.object.UID:
		return errConflict
	case ch.Existing == nil:
		return nil // It was created, and the view does not have it.
	}
	c.changeMachine(ch.Name, func(m *machinev1alpha1.Machine) {
		if u := m.Status.Update; m.Spec.Version != spec.Version && (u == nil || u.State != machinev1alpha1.UpdateSucceeded) {
			c.violated("Machine %s: version changed from %s to %s in place", m.Name, m.Spec.Version, spec.Version)
		}
		// The Machine's controller owns these fields.
		spec.ProviderID, spec.Crossplane = m.Spec.ProviderID, m.Spec.Crossplane
		if !equal(m.Spec, spec) {
			m.Generation++
		}
		m.Labels, m.Spec = ch.Template.Metadata.Labels, spec
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[machinev1alpha1.AnnotationTemplate] = ch.Template.Name
		if metav1.GetControllerOf(m) == nil {
			m.OwnerReferences = []metav1.OwnerReference{owner}
		}
		maps.Copy(m.Annotations, ch.Template.Metadata.Annotations)
	})
	return nil
}

// deleteSeen deletes a Machine if it is the one in the view.
func (c *Cluster) deleteSeen(seen *machinev1alpha1.Machine) {
	c.changeMachine(seen.Name, func(m *machinev1alpha1.Machine) {
		if m.UID == seen.UID && m.DeletionTimestamp == nil {
			c.onDelete(c, m)
			m.DeletionTimestamp = ptr.To(metav1.NewTime(c.Now))
		}
	})
}
