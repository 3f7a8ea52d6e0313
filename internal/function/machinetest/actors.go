package machinetest

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/userdata"
)

// Set a field of an object.
func Set(o *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		panic(err)
	}
}

// Condition sets the only condition of its type.
func Condition(o *unstructured.Unstructured, typ, status, reason, message string) {
	conditionSince(o, "2030-01-01T12:00:00Z", typ, status, reason, message)
}

func conditionSince(o *unstructured.Unstructured, since, typ, status, reason, message string) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var out []any
	for _, c := range list {
		if c.(map[string]any)["type"] != typ {
			out = append(out, c)
		}
	}
	Set(o, append(out, map[string]any{
		"type": typ, "status": status, "reason": reason, "message": message,
		"lastTransitionTime": since,
	}), "status", "conditions")
}

// What a target cluster says in its connection details.
const (
	config = "6d3a3c6e-0000-4000-8000-000000000000"
	token  = "abcdef.0123456789abcdef"
	server = "https://10.0.0.1:6443"
	ca     = "-----BEGIN CERTIFICATE-----\n"
)

// TokenIsThere is what provider-drover makes of a JoinToken.
func (p *Plane) TokenIsThere() {
	jt := p.Composed[machinev1alpha1.ResourceJoinToken]
	Condition(jt, "Synced", "True", "ReconcileSuccess", "")
	Condition(jt, "Ready", "True", "Available", "")
	Set(jt, config, "status", "atProvider", "configUID")
	params := clusterv1alpha1.JoinTokenParameters{}
	template, _, _ := unstructured.NestedString(jt.Object, "spec", "forProvider", "userData")
	encoding, _, _ := unstructured.NestedString(jt.Object, "spec", "forProvider", "userDataEncoding")
	params.UserData, params.UserDataEncoding = template, clusterv1alpha1.UserDataEncoding(encoding)
	p.Connection[machinev1alpha1.ResourceJoinToken] = map[string][]byte{
		"token": []byte(token), "server": []byte(server), "ca.crt": []byte(ca),
		"userData": userdata.Filling{Token: token, Server: server, CA: []byte(ca), UID: string(jt.GetUID()), ConfigUID: config}.Fill(params),
	}
}

// VMIsCreated is what a provider says once its cloud accepted the VM.
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

// VMRuns is what a provider says of a VM that runs.
func (p *Plane) VMRuns() {
	vm := p.Composed[machinev1alpha1.ResourceVM]
	Set(vm, "Running", "status", "atProvider", "state")
	Set(vm, []any{map[string]any{"type": "InternalIP", "address": "10.0.0.7"}}, "status", "atProvider", "addresses")
	Condition(vm, "Ready", "True", "Available", "")
}

// NodeIs what provider-drover says of a Node that joined: Ready is True, False or
// Unknown, and "" if the Node is gone.
func (p *Plane) NodeIs(ready string, since time.Time) {
	wn := p.Composed[machinev1alpha1.ResourceWorkerNode]
	Set(wn, map[string]any{
		"nodeName": wn.GetName(),
		"nodeUID":  "uid-of-node",
		"nodeInfo": map[string]any{"kubeletVersion": "v1.35.4"},
	}, "status", "atProvider")
	Condition(wn, "Synced", "True", "ReconcileSuccess", "")
	switch ready {
	case "True":
		Condition(wn, "Ready", "True", "NodeReady", "")
	case "":
		conditionSince(wn, p.Now.UTC().Format(time.RFC3339), "Ready", "False", "NodeGone", "The Node is gone from the target cluster")
		return
	default:
		Condition(wn, "Ready", "False", "NodeNotReady", "The Node is not Ready: KubeletNotReady")
	}
	Set(wn, []any{map[string]any{"type": "Ready", "status": ready, "reason": "KubeletReady", "lastTransitionTime": since.Format(time.RFC3339)}}, "status", "atProvider", "conditions")
}

// NodeSays what the node's agent, or a user, puts on the Node.
func (p *Plane) NodeSays(labels, annotations map[string]any) {
	wn := p.Composed[machinev1alpha1.ResourceWorkerNode]
	Set(wn, labels, "status", "atProvider", "labels")
	Set(wn, annotations, "status", "atProvider", "annotations")
}

// NodeIsEmptied is what provider-drover says once it has drained a Node, or
// uncordoned it, as the WorkerNode asks.
func (p *Plane) NodeIsEmptied() {
	wn := p.Composed[machinev1alpha1.ResourceWorkerNode]
	drained, _, _ := unstructured.NestedBool(wn.Object, "spec", "forProvider", "drained")
	Set(wn, drained, "status", "atProvider", "drained")
}

// ToRunning takes the Machine from nothing to Running.
func (p *Plane) ToRunning() {
	p.t.Helper()
	p.Reconcile()
	p.TokenIsThere()
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
