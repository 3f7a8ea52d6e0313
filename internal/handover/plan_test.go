package handover

import (
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterapi "github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// play carries a direction out until it is done, or until the number of steps, with controllers that see each state between two
// steps. It returns the number of steps.
func play(t *testing.T, d Direction, w, start *World, most int) int {
	t.Helper()
	return playWith(t, d, w, start, most, true)
}

// playWith is play with controllers that are eager, or that act only while a report of theirs is waited for.
func playWith(t *testing.T, d Direction, w, start *World, most int, eager bool) int {
	t.Helper()
	n := 0
	for range 1000 {
		p, err := d.Next(w)
		if err != nil {
			t.Fatal(err)
		}
		if p.IsDone() {
			return n
		}
		if len(p.Steps) == 0 {
			before := fmt.Sprint(w.objects)
			controllers(w)
			if before == fmt.Sprint(w.objects) {
				t.Fatalf("waits for ever for %v", p.Waits)
			}
		}
		for _, s := range p.Steps {
			if n == most {
				return n
			}
			n++
			w.apply(s)
			judge(t, w, start, s.Text)
			if eager {
				controllers(w)
				judge(t, w, start, s.Text)
			}
		}
	}
	t.Fatal("never done")
	return n
}

// settled is a World in which the controllers have reported everything.
func settled(version string, n int) *World {
	w := newWorld(version, n)
	controllers(w)
	return w
}

// left returns the differences of two Worlds.
func left(is, want *World) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(is.union(want))) {
		a, b := is.objects[is.union(want)[k]], want.objects[is.union(want)[k]]
		switch {
		case a == nil || b == nil:
			out = append(out, fmt.Sprintf("%s: there %t, before %t", k, a != nil, b != nil))
		case fmt.Sprint(a.Object) != fmt.Sprint(b.Object):
			out = append(out, fmt.Sprintf("%s: is %v\n  was %v", k, a.Object, b.Object))
		}
	}
	return strings.Join(out, "\n")
}

func (w *World) union(other *World) map[string]key {
	out := map[string]key{}
	for _, all := range []map[key]*unstructured.Unstructured{w.objects, other.objects} {
		for k := range all {
			out[fmt.Sprint(k)] = k
		}
	}
	return out
}

func eachVersion(t *testing.T, f func(t *testing.T, version string)) {
	t.Helper()
	for _, v := range []string{"v1beta2", "v1beta1"} {
		t.Run(v, func(t *testing.T) { f(t, v) })
	}
}

func TestAHandoverGivesDroverTheMachinesAsOfItsTemplate(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		w, start := settled(version, 3), settled(version, 3)
		play(t, Take, w, start, -1)
		for _, m := range w.members() {
			if m.drover == nil || m.vm == nil || !metav1.IsControlledBy(m.drover, w.set()) {
				t.Fatalf("%s has not changed hands", m.name)
			}
			if l := m.drover.GetLabels(); l["app"] != "web" || l["machine.drover.dev/template-hash"] != "x7" || m.drover.GetAnnotations()["note"] != "kept" || stringAt(m.drover, "spec", "providerID") != m.providerID() {
				t.Errorf("Machine %v", m.drover.Object)
			}
			a := m.vm.GetAnnotations()
			if a[xpmeta.AnnotationKeyExternalName] != string(m.infra.GetUID()) || a[machinev1alpha1.AnnotationNodeName] != m.node() || a[machinev1alpha1.AnnotationInstallation] != "here" || a[machinev1alpha1.AnnotationMachineUID] != "" {
				t.Errorf("VirtualMachine %v", m.vm.Object)
			}
			if m.infra.GetLabels()[clusterapi.LabelVirtualMachine] != a[xpmeta.AnnotationKeyExternalName] {
				t.Errorf("InfraMachine %v", m.infra.Object)
			}
			is := m.machine
			_, paused := is.GetAnnotations()[annotationPausedCAPI]
			if !paused || !slices.Equal(is.GetFinalizers(), []string{"machine.cluster.x-k8s.io", clusterapi.FinalizerMachine}) || metav1.GetControllerOf(is) != nil || len(is.GetOwnerReferences()) != 1 ||
				is.GetOwnerReferences()[0].UID != w.cluster().GetUID() || is.GetLabels()["machine-template-hash"] != "" || is.GetLabels()[labelCluster] != "prod" {
				t.Errorf("Machine of Cluster API %v", is.Object)
			}
		}
		if w.cluster().GetLabels()[clusterapi.LabelShared] != "true" || isPausedByUs(w.set()) || recordOf(w.set()) != nil {
			t.Errorf("Cluster %v, set %v", w.cluster().Object, w.set().Object)
		}
		if n := play(t, Take, w, start, -1); n != 0 {
			t.Errorf("%d steps when there is nothing to do", n)
		}
	})
}

// TestTheWayBackLeavesEverythingAsItWas kills a handover after each step, and the way back after each of its own.
func TestTheWayBackLeavesEverythingAsItWas(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		start := settled(version, 2)
		// A pause of the user's own comes back, too.
		m := start.get(coreGroup, "Machine", "workers-a1-1")
		start.Add(annotated(m, map[string]*string{annotationPausedCAPI: new(string)}))
		controllers(start)
		whole := start.clone()
		steps := play(t, Take, whole, start, -1)
		for killed := range steps + 1 {
			w := start.clone()
			if play(t, Take, w, start, killed); killed > 0 {
				undo(t, w, start)
			}
			w = start.clone()
			play(t, Take, w, start, killed)
			play(t, Take, w, start, -1)
			if d := left(w, whole); d != "" {
				t.Fatalf("killed after %d steps, and run again: %s", killed, d)
			}
		}
		back := play(t, GiveBack, whole.clone(), start, -1)
		for killed := range back {
			w := whole.clone()
			play(t, GiveBack, w, start, killed)
			undo(t, w, start)
		}
	})
}

func undo(t *testing.T, w, start *World) {
	t.Helper()
	play(t, GiveBack, w, start, -1)
	controllers(w)
	if d := left(w, start); d != "" {
		t.Fatalf("not as it was: %s", d)
	}
}

// TestKillsAndChangesOfMind has random histories: a handover and its way back, each killed at random and run again.
func TestKillsAndChangesOfMind(t *testing.T) {
	for seed := range int64(20) {
		random := rand.New(rand.NewSource(seed))
		start := settled("v1beta2", 1+random.Intn(4))
		w := start.clone()
		for range 4 {
			if _, err := Take.Next(w); err == nil {
				play(t, Take, w, start, random.Intn(30))
			}
			if recordOf(w.from()) != nil {
				play(t, GiveBack, w, start, random.Intn(30))
			}
		}
		if recordOf(w.from()) != nil {
			undo(t, w, start)
		} else if controllers(w); left(w, start) != "" {
			t.Fatalf("seed %d: not as it was: %s", seed, left(w, start))
		}
	}
}

func TestAPreviewHasTheStepsOfTheWholeWay(t *testing.T) {
	w, start := settled("v1beta2", 3), settled("v1beta2", 3)
	p, err := Take.Preview(w)
	if err != nil {
		t.Fatal(err)
	}
	if d := left(w, start); d != "" {
		t.Errorf("a preview changes something: %s", d)
	}
	if n := play(t, Take, w, start, -1); n != len(p.Steps) {
		t.Errorf("%d steps, and a preview of %d", n, len(p.Steps))
	}
	if p, err = GiveBack.Preview(w); err != nil {
		t.Fatal(err)
	}
	if n := play(t, GiveBack, w, start, -1); n != len(p.Steps) {
		t.Errorf("%d steps back, and a preview of %d", n, len(p.Steps))
	}
}

const deleted = "2030-01-01T00:00:00Z"

// set returns a change of a field of all objects of a kind and a name.
func set(kind, name string, value any, path ...string) func(*World) {
	return func(w *World) {
		for k, o := range w.objects {
			if k.kind+"/"+k.name == kind+"/"+name {
				o = o.DeepCopy()
				if value == nil {
					unstructured.RemoveNestedField(o.Object, path...)
				} else if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
					panic(err)
				}
				w.Add(o)
			}
		}
	}
}

func annotate(kind, name, annotation string) func(*World) {
	return set(kind, name, map[string]any{annotation: "true"}, "metadata", "annotations")
}

// TestWhatIsNotTaken has the obstacles, each in the words that a user sees.
func TestWhatIsNotTaken(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*World)
		want   string
	}{
		"AMachineDeploymentThatIsNotThere": {func(w *World) { w.From = "other" }, `MachineDeployment.cluster.x-k8s.io "other" does not exist: name one of namespace team`},
		"AMachineDeploymentThatIsDeleted":  {set("MachineDeployment", "workers", deleted, "metadata", "deletionTimestamp"), "MachineDeployment.cluster.x-k8s.io workers: it is being deleted"},
		"AClusterThatIsDeleted":            {set("Cluster", "prod", deleted, "metadata", "deletionTimestamp"), "Cluster.cluster.x-k8s.io prod: it is being deleted"},
		"ATargetThatIsNotThere":            {func(w *World) { w.To = "other" }, `MachineDeployment "other" does not exist: create it in namespace team with replicas: 0`},
		"ATargetOfANodePool": {func(w *World) {
			w.Add(owned(w.to().DeepCopy(), parse(`{apiVersion: machine.drover.dev/v1alpha1, kind: NodePool, metadata: {name: pool}}`)))
		}, "MachineDeployment web: it belongs to NodePool pool, which sets its replicas"},
		"ATargetWithoutASet":             {func(w *World) { delete(w.objects, keyOf(w.set())) }, "MachineDeployment web: it has no MachineSet"},
		"ATargetThatIsPaused":            {annotate("MachineSet", "web-x7", annotationPaused), `MachineSet web-x7: annotation crossplane.io/paused is "true": remove it`},
		"ATargetThatIsBeingScaled":       {set("MachineDeployment", "web", int64(2), "spec", "replicas"), "MachineDeployment web: spec.replicas is 2, and MachineSet web-x7 has 0 Machines: wait until they are equal"},
		"AClassOfAnotherCloud":           {set("MachineClass", "small", "aws", "spec", "provider"), `MachineClass small: spec.provider is "aws", must be "clusterapi"`},
		"AClassOfAnotherKind":            {set("MachineClass", "small", "OtherMachine", "spec", "forProvider", "infraMachine", "kind"), "LabMachine infra-0: its kind is LabMachine of infrastructure.cluster.x-k8s.io, and that of MachineClass small OtherMachine"},
		"AClassOfOtherVMs":               {set("MachineClass", "small", "large", "spec", "forProvider", "infraMachine", "spec", "size"), `LabMachine infra-0: MachineClass small has other values: spec.size is "large" there and "small" here. Correct the class, which is immutable: create another one. Or accept it by --accept-differences`},
		"AConfigurationThatIsNotThere":   {set("MachineClass", "small", "other", "spec", "providerConfigRef", "name"), `ClusterProviderConfig.clusterapi.drover.dev "other" does not exist: spec.providerConfigRef of MachineClass small names it`},
		"AConfigurationOfAnotherCluster": {set("ClusterProviderConfig", "prod", "other", "spec", "clusterName"), `ClusterProviderConfig prod: spec.clusterName is "other", must be "prod", the Cluster of MachineDeployment.cluster.x-k8s.io workers`},
		"AKindThatTheConfigurationLacks": {set("ClusterProviderConfig", "prod", []any{map[string]any{"kind": "AWSMachine"}}, "spec", "infraMachineKinds"), "ClusterProviderConfig prod: spec.infraMachineKinds must have the kind LabMachine of infrastructure.cluster.x-k8s.io"},
		"APauseThatHasEnded": {func(w *World) {
			w.Add(setCondition(w.from(), []string{"status", "conditions"}, map[string]any{"type": "Paused", "status": "True"}))
		}, "MachineDeployment.cluster.x-k8s.io workers: its condition Paused is True, and nothing pauses it: wait"},
		"AnEndedPauseOfTheSet": {func(w *World) {
			w.Add(setCondition(w.set(), []string{"status", "conditions"}, map[string]any{"type": "Synced", "reason": string(xpv2.ReasonReconcilePaused)}))
		}, "MachineSet web-x7: its condition Synced reports a pause that has ended: wait"},
		"ATopology":                    {set("MachineDeployment", "workers", map[string]any{labelTopology: ""}, "metadata", "labels"), "label topology.cluster.x-k8s.io/owned=: spec.topology of Cluster.cluster.x-k8s.io prod owns it"},
		"AGenerationThatIsNotObserved": {set("MachineDeployment", "workers", int64(7), "metadata", "generation"), "MachineDeployment.cluster.x-k8s.io workers: status.observedGeneration is 1, must be 7"},
		"AScaleInProgress":             {set("MachineDeployment", "workers", int64(3), "spec", "replicas"), "MachineDeployment.cluster.x-k8s.io workers: spec.replicas is 3, and it has 2 Machines: wait"},
		"ARolloutInProgress": {func(w *World) {
			s := w.get(coreGroup, "MachineSet", "workers-a1").DeepCopy()
			s.SetName("workers-b2")
			s.SetUID("b2")
			w.Add(s)
		}, "a rollout is in progress: the MachineSets workers-a1 and workers-b2 have Machines"},
		"AMachineThatIsDeleted":    {set("Machine", "workers-a1-1", deleted, "metadata", "deletionTimestamp"), "Machine.cluster.x-k8s.io workers-a1-1: it is being deleted: wait until it is gone"},
		"AMachineThatIsRemediated": {annotate("Machine", "workers-a1-1", annotationRemediate), "Machine.cluster.x-k8s.io workers-a1-1: annotation cluster.x-k8s.io/remediate-machine: it is to be replaced"},
		"AHookOfClusterAPI":        {annotate("Machine", "workers-a1-1", prefixPreDrain+"/backup"), "Machine.cluster.x-k8s.io workers-a1-1: annotation pre-drain.delete.hook.machine.cluster.x-k8s.io/backup=true: Drover does not know this hook"},
		"AControlPlane": {func(w *World) {
			o := w.get(coreGroup, "Machine", "workers-a1-1")
			w.Add(labeled(o, labelControlPlane, new(string)))
		}, "label cluster.x-k8s.io/control-plane: Drover has no control planes"},
		"AnotherVersion":             {set("Machine", "workers-a1-1", "v1.34.0", "spec", "version"), `Machine.cluster.x-k8s.io workers-a1-1: spec.version is "v1.34.0", and spec.template.spec.version of MachineSet web-x7 "v1.35.4"`},
		"AnotherFailureDomain":       {set("MachineSet", "web-x7", "b", "spec", "template", "spec", "failureDomain"), `Machine.cluster.x-k8s.io workers-a1-0: spec.failureDomain is "", and spec.template.spec.failureDomain of MachineSet web-x7 "b"`},
		"AMachineWithoutAProviderID": {set("Machine", "workers-a1-1", nil, "spec", "providerID"), "Machine.cluster.x-k8s.io workers-a1-1: spec.providerID is empty"},
		"AMachineWithoutANode":       {set("Machine", "workers-a1-1", nil, "status", "nodeRef"), "Machine.cluster.x-k8s.io workers-a1-1: status.nodeRef is empty"},
		"ANodeThatIsNotThere":        {func(w *World) { delete(w.objects, key{"", "Node", "node-1"}) }, `Machine.cluster.x-k8s.io workers-a1-1: spec.providerID "lab://1": 0 Nodes of the target cluster have it, must be one`},
		"TwoNodesOfOneVM":            {func(w *World) { w.Add(node("copy", 1)) }, `spec.providerID "lab://1": 2 Nodes of the target cluster have it, must be one`},
		"ANodeOfAnotherName":         {set("Machine", "workers-a1-1", "other", "status", "nodeRef", "name"), `its Node is "other", and the Node with its providerID is "node-1"`},
		"ANodeOfDrover": {func(w *World) {
			w.get("", "Node", "node-1").SetLabels(map[string]string{"cluster.drover.dev/join-token": "t"})
		}, `Node "node-1" has the label cluster.drover.dev/join-token=t: Drover made it for another Machine. Remove the label if that does not exist`},
		"ATaintThatTheNodeWouldGet":     {set("MachineSet", "web-x7", []any{map[string]any{"key": "gpu", "value": "yes", "effect": "NoExecute"}}, "spec", "template", "spec", "taints"), `MachineSet web-x7: spec.template.spec.taints: Node "node-0" has no taint gpu=yes:NoExecute, and would get it`},
		"AnInfraMachineThatIsNotThere":  {func(w *World) { delete(w.objects, key{"infrastructure.cluster.x-k8s.io", "LabMachine", "infra-1"}) }, `LabMachine.infrastructure.cluster.x-k8s.io "infra-1" does not exist: spec.infrastructureRef of Machine.cluster.x-k8s.io workers-a1-1 names it`},
		"AnInfraMachineThatIsDeleted":   {set("LabMachine", "infra-1", deleted, "metadata", "deletionTimestamp"), "LabMachine infra-1: it is being deleted: wait until it is gone"},
		"AnInfraMachineThatIsPaused":    {annotate("LabMachine", "infra-1", annotationPausedCAPI), "LabMachine infra-1: annotation cluster.x-k8s.io/paused: its provider would delete no VM"},
		"AnInfraMachineThatIsNotReady":  {set("LabMachine", "infra-1", map[string]any{}, "status"), "LabMachine infra-1: neither status.initialization.provisioned nor status.ready is true"},
		"AnInfraMachineOfAnotherVM":     {set("LabMachine", "infra-1", "lab://7", "spec", "providerID"), `LabMachine infra-1: spec.providerID is "lab://7", and that of Machine.cluster.x-k8s.io workers-a1-1 "lab://1"`},
		"AnInfraMachineOfAnotherOwner":  {set("LabMachine", "infra-1", []any{}, "metadata", "ownerReferences"), "LabMachine infra-1: metadata.ownerReferences: Machine.cluster.x-k8s.io workers-a1-1 must be its controller"},
		"AnInfraMachineOfAnotherImport": {set("LabMachine", "infra-1", map[string]any{clusterapi.LabelVirtualMachine: "x"}, "metadata", "labels"), "LabMachine infra-1: label clusterapi.drover.dev/virtual-machine=x: it is the VM of a VirtualMachine already"},
		"ASelectorOfTheClusterAlone":    {set("MachineSet", "workers-a1", map[string]any{"matchLabels": map[string]any{labelCluster: "prod"}}, "spec", "selector"), "MachineSet.cluster.x-k8s.io workers-a1: spec.selector cluster.x-k8s.io/cluster-name=prod selects workers-a1-0"},
		"AMachineOfDroverOfTheName": {func(w *World) {
			w.Add(parse(`{apiVersion: machine.drover.dev/v1alpha1, kind: Machine, metadata: {name: workers-a1-1}}`))
		}, "Machine workers-a1-1: it exists, and is another one than Machine.cluster.x-k8s.io workers-a1-1"},
		"AMachineOfDroverWithTheVM": {func(w *World) {
			w.Add(parse(`{apiVersion: machine.drover.dev/v1alpha1, kind: Machine, metadata: {name: web-1}, spec: {providerID: "lab://1"}}`))
		}, `Machine web-1: spec.providerID is "lab://1": it has the VM of Machine.cluster.x-k8s.io workers-a1-1 already`},
		"AVirtualMachineOfTheName": {func(w *World) {
			w.Add(parse(`{apiVersion: clusterapi.drover.dev/v1alpha1, kind: VirtualMachine, metadata: {name: workers-a1-1}}`))
		}, "VirtualMachine workers-a1-1: it exists, and annotation crossplane.io/external-name is"},
		"AHandoverToAnotherMachineDeployment": {func(w *World) {
			w.Add(annotated(w.from(), map[string]*string{clusterapi.AnnotationImported: ptrTo(record{From: "workers", To: "other"}.String())}))
		}, `it is being imported into MachineDeployment "other"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := settled("v1beta2", 2)
			tc.change(w)
			_, err := Take.Next(w)
			var o Obstacle
			if !errors.As(err, &o) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want %q", err, tc.want)
			}
			if _, err := Take.Preview(w); err == nil {
				t.Error("a preview ignores it")
			}
		})
	}
}

func ptrTo(s string) *string { return &s }

func TestDifferencesMayBeAccepted(t *testing.T) {
	w := settled("v1beta2", 2)
	class := w.class().DeepCopy()
	_ = unstructured.SetNestedField(class.Object, "large", "spec", "forProvider", "infraMachine", "spec", "size")
	w.Add(class)
	w.Differences = true
	if _, err := Take.Next(w); err != nil {
		t.Error(err)
	}
}

// TestWhatIsNotGivenBack has the obstacles of the way back.
func TestWhatIsNotGivenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*World)
		want   string
	}{
		"AClusterThatIsGone":      {func(w *World) { delete(w.objects, keyOf(w.cluster())) }, `Cluster.cluster.x-k8s.io "prod" does not exist`},
		"ToADeploymentThatIsGone": {func(w *World) { delete(w.objects, keyOf(w.from())) }, `MachineDeployment.cluster.x-k8s.io "workers" does not exist`},
		"ToASetThatIsGone":        {func(w *World) { delete(w.objects, key{coreGroup, "MachineSet", "workers-a1"}) }, "MachineSet.cluster.x-k8s.io workers-a1 with the UID MachineSet-cluster-workers-a1, its former owner, does not exist"},
		"AMachineThatIsDeleted":   {func(w *World) { deleteOf(w, machinev1alpha1.Group, "Machine", "workers-a1-0") }, "Machine workers-a1-0: it is being deleted: wait until it is gone"},
		"AVMThatIsDeleted":        {func(w *World) { deleteOf(w, "infrastructure.cluster.x-k8s.io", "LabMachine", "infra-0") }, "Machine.cluster.x-k8s.io workers-a1-0: it is being deleted: wait until it is gone"},
		"AMachineThatWasUpdated": {func(w *World) {
			m := w.get(machinev1alpha1.Group, "Machine", "workers-a1-0").DeepCopy()
			_ = unstructured.SetNestedField(m.Object, "v1.36.0", "spec", "version")
			w.Add(m)
		}, `Machine workers-a1-0: spec.version is "v1.36.0", and that of Machine.cluster.x-k8s.io workers-a1-0 "v1.35.4"`},
		"DuringARollout":            {func(w *World) { s := w.set().DeepCopy(); s.SetName("web-y8"); s.SetUID("y8"); w.Add(s) }, "or a rollout of it is in progress"},
		"FromASetThatTheUserPaused": {func(w *World) { w.Add(annotated(w.set(), map[string]*string{annotationPaused: ptrTo("true")})) }, `MachineSet web-x7: annotation crossplane.io/paused is "true"`},
		"AnImportDuringTheWayBack": {func(w *World) {
			w.Add(annotated(w.get(clusterapi.Group, "VirtualMachine", "workers-a1-0"), map[string]*string{annotationPaused: ptrTo("true")}))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, start := settled("v1beta2", 2), settled("v1beta2", 2)
			play(t, Take, w, start, -1)
			tc.change(w)
			d := GiveBack
			if tc.want == "" {
				d, tc.want = Take, "it is being taken back"
			}
			if _, err := d.Next(w); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func deleteOf(w *World, group, kind, name string) {
	o := w.get(group, kind, name).DeepCopy()
	now := metav1.Now()
	o.SetDeletionTimestamp(&now)
	w.Add(o)
}

// TestAHandoverWaitsForSlowControllers has controllers that report nothing before it is waited for.
func TestAHandoverWaitsForSlowControllers(t *testing.T) {
	w, start := settled("v1beta2", 3), settled("v1beta2", 3)
	playWith(t, Take, w, start, -1, false)
	if !w.isTaken() {
		t.Error("the Machines are not Drover's")
	}
	playWith(t, GiveBack, w, start, -1, false)
	controllers(w)
	if d := left(w, start); d != "" {
		t.Errorf("not as it was: %s", d)
	}
}

func TestTheWayBackNamesWhatClusterAPIWillCreate(t *testing.T) {
	w, start := settled("v1beta2", 3), settled("v1beta2", 3)
	play(t, Take, w, start, -1)
	for _, k := range []key{{coreGroup, "Machine", "workers-a1-2"}, {clusterapi.Group, "VirtualMachine", "workers-a1-2"}, {machinev1alpha1.Group, "Machine", "workers-a1-2"}} {
		delete(w.objects, k)
	}
	p, err := GiveBack.Next(w)
	if err != nil || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "spec.replicas is 3, and 2 Machines come back") {
		t.Errorf("notes %q, error %v", p.Notes, err)
	}
}
