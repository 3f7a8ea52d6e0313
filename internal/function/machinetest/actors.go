package machinetest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/workernode"
)

// Set sets a field of an object.
func Set(o *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		panic(err)
	}
}

// Condition sets the only condition of its type.
func Condition(o *unstructured.Unstructured, typ, status, reason, message string) {
	conditionSince(o, time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC), typ, status, reason, message)
}

// conditionSince sets a condition. If its status changes, the transition is at this time.
func conditionSince(o *unstructured.Unstructured, at time.Time, typ, status, reason, message string) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var out []any
	var since any = at.Format(time.RFC3339)
	for _, c := range list {
		was, _ := c.(map[string]any)
		if was["type"] != typ {
			out = append(out, c)
			continue
		}
		if was["status"] == status {
			since = was["lastTransitionTime"]
		}
	}
	Set(o, append(out, map[string]any{
		"type": typ, "status": status, "reason": reason, "message": message, "lastTransitionTime": since,
	}), "status", "conditions")
}

// Values that the target cluster fills into user data.
const (
	config = "6d3a3c6e-0000-4000-8000-000000000000"
	token  = "abcdef.0123456789abcdef"
	server = "https://10.0.0.1:6443"
	ca     = "-----BEGIN CERTIFICATE-----\n"
)

// TokenIsThere makes the target cluster reachable for the join token.
func (p *Plane) TokenIsThere() { p.TargetError = "" }

// VMIsCreated sets the status that a provider reports once its cloud accepted the VM.
func (p *Plane) VMIsCreated() {
	vm := p.Composed[machinev1alpha1.ResourceVM]
	vm.SetAnnotations(map[string]string{
		"crossplane.io/external-name":             "vm-0123456789",
		"crossplane.io/external-create-pending":   "2030-01-01T12:00:01Z",
		"crossplane.io/external-create-succeeded": "2030-01-01T12:00:02Z",
	})
	Set(vm, map[string]any{"id": "vm-0123456789", "providerId": "local:///zone-a/vm-0123456789", "state": "Pending"}, "status", "atProvider")
	Condition(vm, "Synced", "True", "ReconcileSuccess", "")
	Condition(vm, "Ready", "False", "Creating", "")
}

// VMRuns sets the status that a provider reports for a VM that runs.
func (p *Plane) VMRuns() {
	vm := p.Composed[machinev1alpha1.ResourceVM]
	Set(vm, "Running", "status", "atProvider", "state")
	Set(vm, []any{map[string]any{"type": "InternalIP", "address": "10.0.0.7"}}, "status", "atProvider", "addresses")
	Condition(vm, "Ready", "True", "Available", "")
}

// NodeIs sets the Node of the target cluster: Ready is True, False or Unknown, and "" if there is no
// Node.
func (p *Plane) NodeIs(ready string, since time.Time) {
	if ready == "" {
		p.world = workernode.Observation{}
		return
	}
	p.world = workernode.Observation{
		Present:  true,
		NodeName: names.OfMachine(p.Machine.GetName(), p.Machine.GetUID()),
		NodeUID:  "uid-of-node",
		NodeInfo: &workernode.Info{KubeletVersion: "v1.35.4"},
		Conditions: []workernode.Condition{{
			Type: "Ready", Status: ready, Reason: "KubeletReady", Since: &metav1.Time{Time: since},
		}},
	}
}

// NodeSays sets the labels and annotations that the Node's agent, or a user, puts on the Node.
func (p *Plane) NodeSays(labels, annotations map[string]string) {
	p.world.Labels, p.world.Annotations = labels, annotations
}

// NodeIsEmptied ends the drain that the parameters request.
func (p *Plane) NodeIsEmptied() { p.Node.Observation.Drained = p.Node.Parameters.Drained }

// ToRunning brings the Machine from its creation to the phase Running.
func (p *Plane) ToRunning() {
	p.t.Helper()
	p.Reconcile()
	p.VMIsCreated()
	p.VMRuns()
	p.Reconcile()
	p.NodeIs("True", p.Now)
	p.Reconcile()
	if got, _, _ := unstructured.NestedString(p.Machine.Object, "status", "phase"); got != string(machinev1alpha1.MachineRunning) {
		p.t.Fatalf("phase: want Running, got %s", got)
	}
}
