package machinetest

import (
	"maps"
	"reflect"
	"slices"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/userdata"
	"github.com/drover-dev/drover/internal/workernode"
)

// rounds is how often the pipeline runs at most per reconcile.
const rounds = 3

// Reconcile does the same as the Machine's controller: it runs the pipeline until neither the join
// token nor the Node has new facts for it, writes the status, and applies the resources.
func (p *Plane) Reconcile() Result {
	p.t.Helper()
	for round := 1; ; round++ {
		r, err := p.Pipe()
		if err != nil {
			p.t.Fatal(err)
		}
		if round < rounds {
			joined, synced := p.keepToken(r.Bootstrap.Join), p.syncNode(r.Node)
			if joined || synced {
				continue
			}
		}
		p.report(r)
		p.launch(r)
		p.Forgotten = nil
		return r
	}
}

// keepToken maintains the join token. It reports whether the state of the token changed.
func (p *Plane) keepToken(r *plan.JoinRequest) (changed bool) {
	if r == nil {
		return false
	}
	before := p.join
	p.join.Error = ""
	hash := userdata.Hash(r.Template(), r.Encoding)
	switch {
	case p.Revoked:
	case !r.Revoked && (r.Frozen || p.join.Published && p.join.Hash == hash):
	case p.TargetError != "":
		p.join.Error = p.TargetError
		return p.join != before
	case r.Revoked:
		p.Revoked = true
	default:
		filled, err := userdata.Filling{
			Token: token, Server: server, CA: []byte(ca), UID: string(p.Machine.GetUID()), ConfigUID: config,
		}.Fill(r.UserData, userdata.Form{Encoding: r.Encoding, MaxBytes: r.MaxBytes})
		if err != nil {
			p.join.Error = err.Error()
			return p.join != before
		}
		p.join.Hash = hash
		p.Connection[machinev1alpha1.ResourceUserData] = map[string][]byte{
			clusterv1alpha1.ConnectionToken: []byte(token), clusterv1alpha1.ConnectionServer: []byte(server), clusterv1alpha1.ConnectionCA: []byte(ca),
			clusterv1alpha1.ConnectionUserData: filled,
		}
	}
	p.join.Published = p.join.Hash != "" && (r.Frozen || !p.Revoked)
	return p.join != before
}

// observeNode observes the Node, or keeps the last observation if the target cluster cannot be
// reached.
func (p *Plane) observeNode() {
	if p.Node == nil {
		return
	}
	o := &p.Node.Observation
	if o.Error = p.TargetError; o.Error != "" {
		return
	}
	if !p.world.Present {
		o.Present, o.Synced, o.Conditions, o.Drain, o.Drained = false, false, nil, nil, false
		return
	}
	was := *o
	*o = p.world
	o.Synced = reflect.DeepEqual(p.applied, p.Node.Parameters)
	if p.Node.Parameters.Drained {
		o.Drain, o.Drained = was.Drain, was.Drained
	}
}

// syncNode applies the parameters to the Node. It reports whether the pipeline has new facts to
// decide by.
func (p *Plane) syncNode(want *workernode.Parameters) (changed bool) {
	if want == nil {
		return false
	}
	if changed = p.Node == nil; changed {
		p.Node = &workernode.WorkerNode{Observation: p.lastSeen()}
	}
	before := p.Node.Observation.Error
	p.Node.Parameters = *want
	p.observeNode()
	if o := p.Node.Observation; o.Error == "" && o.Present && !o.Synced {
		p.applied, changed = *want, true
		p.observeNode()
	}
	return changed || before != p.Node.Observation.Error
}

// lastSeen returns the Node as the Machine's status has it.
func (p *Plane) lastSeen() workernode.Observation {
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(p.Machine.Object, append([]string{"status"}, path...)...)
		return s
	}
	o := workernode.Observation{NodeName: text("nodeRef", "name"), NodeUID: types.UID(text("nodeRef", "uid"))}
	o.Present = o.NodeName != "" && text("nodeGoneSince") == ""
	if at, err := time.Parse(time.RFC3339, text("readySince")); o.Present && err == nil {
		o.Conditions = []workernode.Condition{{Type: "Ready", Status: "True", Since: &metav1.Time{Time: at}}}
	}
	return o
}

// report merges the conditions, replaces the rest of the status, and writes a providerID that
// the VM itself reports to the spec.
func (p *Plane) report(r Result) {
	status, _ := r.Desired.GetComposite().GetResource().AsMap()["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
	}
	conditions, _, _ := unstructured.NestedSlice(p.Machine.Object, "status", "conditions")
	p.Machine.Object["status"] = status
	if len(conditions) > 0 {
		status["conditions"] = conditions
	}
	for _, c := range r.Conditions {
		is := map[fnv1.Status]string{fnv1.Status_STATUS_CONDITION_TRUE: "True", fnv1.Status_STATUS_CONDITION_FALSE: "False"}[c.GetStatus()]
		if is == "" {
			is = "Unknown"
		}
		conditionSince(p.Machine, p.Now.UTC(), c.GetType(), is, c.GetReason(), c.GetMessage())
	}
	if _, known, _ := unstructured.NestedString(p.Machine.Object, "spec", "providerID"); r.VM.Confirmed && !known {
		Set(p.Machine, r.VM.ProviderID, "spec", "providerID")
	}
}

// launch applies the desired resources, and deletes those that are no longer desired. The VM and its
// companions are deleted only with their Machine.
func (p *Plane) launch(r Result) {
	p.t.Helper()
	for role := range p.Composed {
		if _, ok := r.Desired.GetResources()[role]; ok || slices.Contains(p.Forgotten, role) {
			continue
		}
		if machinev1alpha1.IsInfrastructure(role) {
			p.t.Errorf("%s is not desired any more", role)
			continue
		}
		delete(p.Composed, role)
	}
	for role, d := range r.Desired.GetResources() {
		p.apply(role, &unstructured.Unstructured{Object: d.GetResource().AsMap()})
	}
}

func (p *Plane) apply(role string, o *unstructured.Unstructured) {
	p.t.Helper()
	there, ok := p.Composed[role]
	if !ok {
		o.SetNamespace(p.Machine.GetNamespace())
		o.SetUID(types.UID("uid-of-" + role))
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(p.Machine, machinev1alpha1.MachineGroupVersionKind)})
		p.Composed[role] = o
		return
	}
	if there.GetDeletionTimestamp() != nil {
		return
	}
	for _, content := range []string{"spec", "data", "type"} {
		if v, ok := o.Object[content]; ok {
			there.Object[content] = runtime.DeepCopyJSONValue(v)
		}
	}
	there.SetFinalizers(o.GetFinalizers())
	if len(o.GetAnnotations()) > 0 {
		// Other clients set annotations there too, and the pipeline never removes one of its own.
		annotations := there.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		maps.Copy(annotations, o.GetAnnotations())
		there.SetAnnotations(annotations)
	}
}
