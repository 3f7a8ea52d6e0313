package function_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/plan"
)

// spoiltSeeds is the number of random seeds per target, the same in every run: go test runs them, and
// the fuzzer starts from them.
const spoiltSeeds = 120

func FuzzBootstrap(f *testing.F) {
	fuzz(f, machineSeeds(f, "Bootstrap"), func(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) []string {
		return append(keepsDesired(req, rsp), givesNoTokenToAStatus(req, rsp)...)
	})
}

func FuzzInfrastructure(f *testing.F) {
	fuzz(f, machineSeeds(f, "Infrastructure"), func(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) []string {
		return append(keepsDesired(req, rsp, machinev1alpha1.ResourceVM), keepsVM(req, rsp)...)
	})
}

func FuzzLifecycle(f *testing.F) {
	fuzz(f, machineSeeds(f, "Lifecycle"), func(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) []string {
		broken := append(keepsDesired(req, rsp, machinev1alpha1.ResourceVM), holdsVM(req, rsp)...)
		return append(broken, keepsNode(req, rsp)...)
	})
}

func FuzzReplicas(f *testing.F) {
	fuzz(f, parentSeeds(f, "Replicas", "machineset.yaml", "machineset-*"), keepsMachines)
}

func FuzzRollout(f *testing.F) {
	fuzz(f, parentSeeds(f, "Rollout", "machinedeployment.yaml", "machinedeployment-*"), keepsSets)
}

func FuzzSafety(f *testing.F) {
	fuzz(f, append(parentSeeds(f, "Safety", "machinedeployment.yaml", "machinedeployment-*"), parentSeeds(f, "Safety", "machineset.yaml", "machineset-*")...),
		func(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) []string {
			return keepsDesired(req, rsp)
		})
}

func FuzzOrphans(f *testing.F) {
	fuzz(f, parentSeeds(f, "Orphans", "orphancollector-local.yaml", "orphancollector-*"), func(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) []string {
		return append(keepsDesired(req, rsp), looksAndSparesUsed(req, rsp)...)
	})
}

// looksAndSparesUsed checks that an existing inventory stays. It also checks that a VM resource that
// may delete a VM stays desired if the VM's Machine exists or is unknown.
func looksAndSparesUsed(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) []string {
	var broken []string
	desired := rsp.GetDesired().GetResources()
	if desired[machinev1alpha1.ResourceInventory] == nil && req.GetObserved().GetResources()[machinev1alpha1.ResourceInventory] != nil {
		broken = append(broken, "there is no inventory any more")
	}
	for name, r := range req.GetObserved().GetResources() {
		if name == machinev1alpha1.ResourceInventory || desired[name] != nil {
			continue
		}
		o := unstructured.Unstructured{Object: r.GetResource().AsMap()}
		policies, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "managementPolicies")
		a := o.GetAnnotations()
		// The required version is the same object, and may be intact.
		uid := a[machinev1alpha1.AnnotationOrphanMachineUID]
		for _, r := range req.GetRequiredResources()["adopted"].GetItems() {
			required := unstructured.Unstructured{Object: r.GetResource().AsMap()}
			if reported := required.GetAnnotations()[machinev1alpha1.AnnotationOrphanMachineUID]; required.GetName() == o.GetName() && reported != "" {
				uid = reported
			}
		}
		if o.GetKind() == "VirtualMachine" && slices.Contains(policies, "Delete") && a["crossplane.io/external-name"] != "" &&
			(uid == "" || uid == "2c9e0d44-0000-4000-8000-000000000000") {
			broken = append(broken, name+" is dropped, and deletes a VM that may be in use")
		}
	}
	return broken
}

// fuzz runs a step with seeds that a vandal changed. The step must not panic, must respond equally to
// equal requests, and its response must not break a rule. A fatal response changes nothing, and
// breaks no rule.
func fuzz(f *testing.F, seeds []*fnv1.RunFunctionRequest, broken func(*fnv1.RunFunctionRequest, *fnv1.RunFunctionResponse) []string) {
	f.Helper()
	random := rand.NewChaCha8([32]byte{})
	for i := range max(spoiltSeeds, len(seeds)) {
		garbage := make([]byte, min(i/len(seeds), 4)*9)
		_, _ = random.Read(garbage)
		f.Add(uint8(i%len(seeds)), garbage)
	}
	f.Fuzz(func(t *testing.T, seed uint8, garbage []byte) {
		v := &vandal{bytes: garbage}
		whole := seeds[int(seed)%len(seeds)]
		req := v.spoil(whole)
		rsp, err := run(now, proto.CloneOf(req))
		if err != nil {
			t.Fatal(err)
		}
		if len(garbage) == 0 && isFatal(rsp) {
			t.Fatalf("the seed itself is not answered: %v", rsp.GetResults())
		}
		// The step does not promise which of several errors it returns.
		if again, err := run(now, proto.CloneOf(req)); err != nil || isFatal(rsp) != isFatal(again) || !isFatal(rsp) && !proto.Equal(rsp, again) {
			t.Fatalf("two answers to one request: %v\n%v\n%v", err, rsp, again)
		}
		if ttl := rsp.GetMeta().GetTtl().AsDuration(); ttl <= 0 || ttl > time.Hour {
			t.Errorf("it shall be called again after %s", ttl)
		}
		if isFatal(rsp) || !answered(req, rsp) {
			return
		}
		for _, b := range broken(req, rsp) {
			t.Errorf("%s\nThe request, -before +after:\n%s", b, cmp.Diff(whole, req, protocmp.Transform()))
		}
	})
}

func isFatal(rsp *fnv1.RunFunctionResponse) bool {
	return slices.ContainsFunc(rsp.GetResults(), func(r *fnv1.Result) bool { return r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL })
}

// keepsDesired checks that the resources that earlier steps desire stay unchanged, and that the
// step's own ones stay.
func keepsDesired(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse, own ...string) []string {
	var broken []string
	for name, before := range req.GetDesired().GetResources() {
		after, ok := rsp.GetDesired().GetResources()[name]
		if !ok || !slices.Contains(own, name) && !proto.Equal(before.GetResource(), after.GetResource()) {
			broken = append(broken, fmt.Sprintf("%s was desired and is not any more, or not so: %v", name, after))
		}
	}
	return broken
}

// keepsVM checks that an existing VM resource stays, and stays unchanged once its VM may exist.
func keepsVM(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) []string {
	observed, ok := req.GetObserved().GetResources()[machinev1alpha1.ResourceVM]
	if !ok {
		return nil
	}
	desired, ok := rsp.GetDesired().GetResources()[machinev1alpha1.ResourceVM]
	if !ok {
		return []string{"the VM is not desired any more"}
	}
	annotations, readable := texts(at(observed.GetResource(), "metadata", "annotations"))
	if !readable || annotations["crossplane.io/external-name"] == "" {
		return nil
	}
	before, after := at(observed.GetResource(), "spec").GetStructValue(), at(desired.GetResource(), "spec").GetStructValue()
	if before != nil && !proto.Equal(plain(before), plain(after)) {
		return []string{fmt.Sprintf("the VM is not as it was:\n%v\n%v", before, after)}
	}
	return nil
}

// plain returns a spec of a VM without the fields that a pin changes, and without nulls, which have
// no effect.
func plain(s *structpb.Struct) *structpb.Struct {
	s = proto.CloneOf(s)
	delete(s.GetFields(), "managementPolicies")
	prune(s)
	return s
}

func prune(s *structpb.Struct) {
	for k, v := range s.GetFields() {
		if v.GetKind() == nil {
			s.Fields[k] = structpb.NewNullValue()
		}
		if _, null := v.GetKind().(*structpb.Value_NullValue); null || v.GetKind() == nil {
			delete(s.GetFields(), k)
			continue
		}
		pruneValue(v)
	}
}

func pruneValue(v *structpb.Value) {
	prune(v.GetStructValue())
	for i, e := range v.GetListValue().GetValues() {
		if e.GetKind() == nil {
			v.GetListValue().Values[i] = structpb.NewNullValue()
			continue
		}
		pruneValue(e)
	}
}

// holdsVM checks that a VM resource that exists or is to be created is desired, with the finalizer
// that keeps it until its Node is drained.
func holdsVM(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) []string {
	observed, there := req.GetObserved().GetResources()[machinev1alpha1.ResourceVM]
	_, toBe := req.GetDesired().GetResources()[machinev1alpha1.ResourceVM]
	if !there && !toBe {
		return nil
	}
	desired, ok := rsp.GetDesired().GetResources()[machinev1alpha1.ResourceVM]
	if !ok {
		return []string{"the VM is not desired any more"}
	}
	// No finalizer may be added to an object that is being deleted.
	if there && at(observed.GetResource(), "metadata", "deletionTimestamp") != nil {
		return nil
	}
	for _, f := range at(desired.GetResource(), "metadata", "finalizers").GetListValue().GetValues() {
		if f.GetStringValue() == machinev1alpha1.FinalizerDrain {
			return nil
		}
	}
	return []string{fmt.Sprintf("the VM is not held: %v", desired)}
}

// givesNoTokenToAStatus checks that a Machine without VM whose status has a providerID gets neither a
// token nor user data: a client with write access to the status could forge it.
func givesNoTokenToAStatus(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) []string {
	id, isText := at(req.GetObserved().GetComposite().GetResource(), "status", "providerID").GetKind().(*structpb.Value_StringValue)
	if _, ok := req.GetObserved().GetResources()[machinev1alpha1.ResourceVM]; ok || !isText || id.StringValue == "" {
		return nil
	}
	d := plan.Bootstrap{}
	if _, err := step.Context(&fnv1.RunFunctionRequest{Context: rsp.GetContext()}, step.ContextBootstrap, &d); err != nil {
		return []string{err.Error()}
	}
	if d.SecretName != "" || d.Join != nil && !d.Join.Revoked {
		return []string{fmt.Sprintf("a providerID of the status gives %+v", d)}
	}
	return nil
}

// keepsNode checks that the Node has the providerID of its VM, and that it keeps its
// parameters while the VM does not report one.
func keepsNode(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) []string {
	after := at(rsp.GetContext(), step.ContextNode, "parameters", "providerID").GetStringValue()
	if id := at(req.GetContext(), step.ContextVM, "providerID").GetStringValue(); id != "" && id != after {
		return []string{fmt.Sprintf("the VM has the providerID %q, and its Node has %q", id, after)}
	}
	if before := at(req.GetContext(), step.ContextNode, "parameters", "providerID").GetStringValue(); before != "" && after == "" {
		return []string{"the Node has no parameters any more"}
	}
	return nil
}

// keepsMachines checks that the MachineGroup stays. It may delete only the Machines that the set's
// status lists for deletion. The status may add only excess Machines and Machines that are replaced.
// Machines that the group does not name stay.
func keepsMachines(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) []string {
	broken := keepsDesired(req, rsp, machinev1alpha1.ResourceMachines)
	group, ok := rsp.GetDesired().GetResources()[machinev1alpha1.ResourceMachines]
	if !ok {
		return append(broken, "the MachineGroup is not desired")
	}
	set, status := req.GetObserved().GetComposite().GetResource(), rsp.GetDesired().GetComposite().GetResource()
	dropping := textsIn(at(set, "status", "dropping"))
	deleted := textsIn(at(group.GetResource(), "spec", "delete"))
	machines := children(req, "machines", machinev1alpha1.MachineGroupVersionKind.Kind)
	maps.DeleteFunc(machines, func(name string, _ child) bool { return slices.Contains(dropping, name) })
	var newly []string
	for name, m := range machines {
		if slices.Contains(deleted, name) {
			broken = append(broken, fmt.Sprintf("Machine %s is deleted, and was not to go", name))
		}
		if slices.Contains(textsIn(at(status, "status", "dropping")), name) && !slices.ContainsFunc(m.versions, replaceable) {
			newly = append(newly, name)
		}
	}
	if surplus := max(0, len(machines)-int(at(set, "spec", "replicas").GetNumberValue())); len(newly) > surplus {
		broken = append(broken, fmt.Sprintf("Machines %v are to go, and there are %d too many", newly, surplus))
	}
	return broken
}

// replaceable reports whether a Machine is Failed or has no VM yet.
func replaceable(machine *structpb.Struct) bool {
	return at(machine, "status", "phase").GetStringValue() == string(machinev1alpha1.MachineFailed) ||
		at(machine, "status", "providerID").GetStringValue() == "" && at(machine, "spec", "providerID").GetStringValue() == ""
}

// keepsSets checks that no MachineSet is deleted that has Machines or may get some.
func keepsSets(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) []string {
	broken := keepsDesired(req, rsp, slices.Collect(maps.Keys(req.GetObserved().GetResources()))...)
	for name, c := range children(req, "machine-sets", machinev1alpha1.MachineSetGroupVersionKind.Kind) {
		if _, ok := rsp.GetDesired().GetResources()[name]; !ok && !slices.ContainsFunc(c.versions, empty) {
			broken = append(broken, fmt.Sprintf("MachineSet %s is not desired any more, and has Machines", name))
		}
	}
	return broken
}

func empty(set *structpb.Struct) bool {
	n := 0.0
	for _, path := range [][]string{{"spec", "replicas"}, {"status", "replicas"}, {"status", "terminatingReplicas"}} {
		n += at(set, path...).GetNumberValue()
	}
	return n == 0
}

// A child of the XR.
type child struct {
	// versions of the child: the observed one and the required one.
	versions []*structpb.Struct
}

// children returns the objects of a kind, by their own names, that the XR controls in any version and
// that are being deleted in none. A required object counts as one of the kind, whatever its own
// fields are.
func children(req *fnv1.RunFunctionRequest, requirement, kind string) map[string]child {
	all, ours := map[string]child{}, map[string]bool{}
	look := func(r *fnv1.Resource) {
		o := r.GetResource()
		name := at(o, "metadata", "name").GetStringValue()
		if name == "" {
			return
		}
		c := all[name]
		all[name] = child{versions: append(c.versions, o)}
		ours[name] = ours[name] || controls(req, o)
	}
	for _, r := range req.GetObserved().GetResources() {
		if at(r.GetResource(), "kind").GetStringValue() == kind {
			look(r)
		}
	}
	for _, r := range req.GetRequiredResources()[requirement].GetItems() {
		look(r)
	}
	maps.DeleteFunc(all, func(name string, c child) bool {
		return !ours[name] || slices.ContainsFunc(c.versions, func(o *structpb.Struct) bool { return at(o, "metadata", "deletionTimestamp") != nil })
	})
	return all
}

func controls(req *fnv1.RunFunctionRequest, o *structpb.Struct) bool {
	xr := at(req.GetObserved().GetComposite().GetResource(), "metadata", "uid").GetStringValue()
	return xr != "" && slices.ContainsFunc(at(o, "metadata", "ownerReferences").GetListValue().GetValues(), func(by *structpb.Value) bool {
		f := by.GetStructValue().GetFields()
		return f["controller"].GetBoolValue() && f["uid"].GetStringValue() == xr
	})
}

// at returns the value at a path, nil if there is none.
func at(s *structpb.Struct, path ...string) *structpb.Value {
	var v *structpb.Value
	for _, p := range path {
		v = s.GetFields()[p]
		s = v.GetStructValue()
	}
	return v
}

func textsIn(v *structpb.Value) []string {
	var out []string
	for _, e := range v.GetListValue().GetValues() {
		out = append(out, e.GetStringValue())
	}
	return out
}

// texts returns a map if all of its values are strings.
func texts(v *structpb.Value) (map[string]string, bool) {
	out := map[string]string{}
	for k, e := range v.GetStructValue().GetFields() {
		s, ok := e.GetKind().(*structpb.Value_StringValue)
		if !ok {
			return nil, false
		}
		out[k] = s.StringValue
	}
	return out, true
}
