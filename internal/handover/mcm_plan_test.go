package handover

import (
	"errors"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestMCMHandsOverItsMachinesAndKeepsThemAsAShield(t *testing.T) {
	w, start := settledMCM(3), settledMCM(3)
	play(t, Take, w, start, -1)
	if n := len(w.members()); n != 3 {
		t.Fatalf("%d members", n)
	}
	for i, m := range w.members() {
		if m.drover == nil || m.vm == nil || !metav1.IsControlledBy(m.drover, w.set()) {
			t.Fatalf("%s has not changed hands", m.name)
		}
		want := stringAt(mcmNode(i), "spec", "providerID")
		if l := m.drover.GetLabels(); l["app"] != "web" || l["machine.drover.dev/template-hash"] != "x7" || stringAt(m.drover, "spec", "providerID") != want {
			t.Errorf("Machine %v", m.drover.Object)
		}
		a := m.vm.GetAnnotations()
		if !strings.HasSuffix(want, "/"+a[xpmeta.AnnotationKeyExternalName]) || a[machinev1alpha1.AnnotationNodeName] != m.node() || a[machinev1alpha1.AnnotationInstallation] != "here" || stringAt(m.vm, "spec", "forProvider", "instanceType") != "m5.large" {
			t.Errorf("VirtualMachine %v", m.vm.Object)
		}
		if l := m.machine.GetLabels(); len(l) != 1 || l["team"] != "red" || len(m.machine.GetOwnerReferences()) > 0 {
			t.Errorf("Machine of machine-controller-manager %v", m.machine.Object)
		}
		if f := w.nodeOf(m).GetFinalizers(); len(f) > 0 {
			t.Errorf("Node %s keeps the finalizers %v: Drover could not delete it", m.node(), f)
		}
	}
	for _, o := range w.theirOwners() {
		if intAt(o, "spec", "replicas") != 0 {
			t.Errorf("%s would create Machines", describe(o))
		}
	}
	if isPausedByUs(w.set()) || recordOf(w.set()) != nil {
		t.Errorf("set %v", w.set().Object)
	}
	if n := play(t, Take, w, start, -1); n != 0 {
		t.Errorf("%d steps when there is nothing to do", n)
	}
}

// TestTheWayBackToMCMLeavesEverythingAsItWas kills a handover after each step, and the way back after each of its own.
func TestTheWayBackToMCMLeavesEverythingAsItWas(t *testing.T) {
	start := settledMCM(2)
	// A Node without the finalizer gets none, and a foreign label and owner of a Machine stay.
	n := start.get("", "Node", "node-1").DeepCopy()
	n.SetFinalizers(nil)
	start.Add(n)
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
}

func TestASecondImportFromMCMAfterTheWayBack(t *testing.T) {
	start := settledMCM(3)
	first := start.clone()
	play(t, Take, first, start, -1)
	second := first.clone()
	undo(t, second, start)
	play(t, Take, second, start, -1)
	if d := left(second, first); d != "" {
		t.Errorf("the second import is another one: %s", d)
	}
}

func TestKillsAndChangesOfMindWithMCM(t *testing.T) {
	for seed := range int64(10) {
		random := rand.New(rand.NewSource(seed))
		start := settledMCM(1 + random.Intn(4))
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

func TestAPreviewOfAnImportFromMCMHasItsStepsAndSaysWhatToKeep(t *testing.T) {
	w, start := settledMCM(3), settledMCM(3)
	p, err := Take.Preview(w)
	if err != nil {
		t.Fatal(err)
	}
	if d := left(w, start); d != "" {
		t.Errorf("a preview changes something: %s", d)
	}
	if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "keep each Machine.machine.sapcloud.io as long as its VM exists") {
		t.Errorf("notes %q", p.Notes)
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

func TestAnImportFromMCMWaitsForSlowControllers(t *testing.T) {
	w, start := settledMCM(3), settledMCM(3)
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

// TestMachinesThatDroverDeletedSinceAreLeftOut has an import whose Drover scaled down: its Machine of machine-controller-manager is
// no longer imported, and comes back as one whose Node is missing.
func TestMachinesThatDroverDeletedSinceAreLeftOut(t *testing.T) {
	w, start := settledMCM(3), settledMCM(3)
	play(t, Take, w, start, -1)
	for _, k := range []key{{machinev1alpha1.Group, "Machine", "workers-a1-2"}, {awsMachine.Group, "VirtualMachine", "workers-a1-2"}, {"", "Node", "node-2"}} {
		delete(w.objects, k)
	}
	for _, o := range []*unstructured.Unstructured{w.to(), w.set()} {
		set(o.GetKind(), o.GetName(), int64(2), "spec", "replicas")(w)
	}
	delete(start.objects, key{"", "Node", "node-2"})
	if n := play(t, Take, w, start, -1); n != 0 || len(w.members()) != 2 {
		t.Errorf("%d steps, and %d members", n, len(w.members()))
	}
	play(t, GiveBack, w, start, -1)
	m := w.get(mcmGroup, "Machine", "workers-a1-2")
	if !metav1.IsControlledBy(m, w.sets()[0]) || m.GetLabels()[labelNode] != "node-2" || intAt(w.from(), "spec", "replicas") != 3 {
		t.Errorf("Machine %v", m.Object)
	}
}

// TestAMarkThatMCMSetMeanwhileIsTakenFromANode has controllers that were started for other MachineDeployments.
func TestAMarkThatMCMSetMeanwhileIsTakenFromANode(t *testing.T) {
	w, start := settledMCM(2), settledMCM(2)
	play(t, Take, w, start, -1)
	set("Node", "node-1", "1", "metadata", "annotations", annotationUnmanaged)(w)
	undo(t, w, start)
}

// TestWhatIsNotTakenFromMCM has the obstacles, each in the words that a user sees.
func TestWhatIsNotTakenFromMCM(t *testing.T) {
	const group = "Machine.machine.sapcloud.io "
	status := func(field string, value any) func(*World) {
		return set("Machine", "workers-a1-1", value, "status", "currentStatus", field)
	}
	node := func(value any, path ...string) func(*World) { return set("Node", "node-1", value, path...) }
	workload := func(name, why string, c corev1.Container) func(*World) {
		return func(w *World) {
			w.MCM.Workloads = append(w.MCM.Workloads, Workload{Name: name, Namespace: namespace, Why: why, Containers: []corev1.Container{c}})
		}
	}
	elsewhere := func(c corev1.Container) func(*World) {
		c.Image = "registry/machine-controller-manager:v1"
		return func(w *World) {
			w.MCM.Workloads = append(w.MCM.Workloads, Workload{Name: "Deployment garden/mcm", Namespace: "garden", Why: "spec.replicas is 1", Containers: []corev1.Container{c}})
		}
	}
	leases := func(l ...coordinationv1.Lease) func(*World) { return func(w *World) { w.MCM.Leases = l } }
	for name, tc := range map[string]struct {
		change func(*World)
		want   string
	}{
		"AMachineControllerThatHoldsItsLease":          {leases(lease("machine-controller-manager", -time.Hour), lease("machine-controller", -time.Second)), "Lease team/machine-controller: mcm-0 holds it: stop machine-controller-manager and the machine controller"},
		"ControllersWithoutALease":                     {leases(lease("machine-controller-manager", -time.Hour)), "Lease team/machine-controller does not exist: the controllers may run without an election of a leader, or in another cluster. If you are sure that they are stopped, confirm it by --controllers-are-stopped"},
		"ADeploymentElsewhereForItsNamespace":          {elsewhere(corev1.Container{Args: []string{"--namespace", "team"}}), "Deployment garden/mcm: spec.replicas is 1, and it runs a controller"},
		"ADeploymentElsewhereForANamespaceInAVariable": {elsewhere(corev1.Container{Args: []string{"--namespace=$(OF)"}, Env: []corev1.EnvVar{{Name: "OF", Value: "team"}}}), "Deployment garden/mcm: spec.replicas is 1, and it runs a controller"},
		"ADeploymentElsewhereForAnUnknownNamespace":    {elsewhere(corev1.Container{Args: []string{"--namespace=$(OF)"}}), "Deployment garden/mcm: spec.replicas is 1, and it runs a controller"},
		"ADeploymentThatWillStartTheControllers":       {workload("Deployment team/mcm", "spec.replicas is 1", corev1.Container{Image: "registry:5000/gardener/machine-controller-manager-provider-aws:v0.20@sha256:00"}), "Deployment team/mcm: spec.replicas is 1, and it runs a controller of machine-controller-manager: stop"},
		"APodOfTheControllersThatHasNotEnded":          {workload("Pod team/mcm-0", `status.phase is "Running"`, corev1.Container{Image: "mirror/mcm", Command: []string{"./machine-controller-manager"}}), `Pod team/mcm-0: status.phase is "Running", and it runs a controller`},
		"AShootOfGardener":                             {func(w *World) { w.MCM.Shoot = true }, `Namespace "team": label gardener.cloud/role=shoot: a gardenlet writes its MachineDeployments`},
		"AnAutoscalerThatPointsAtIt":                   {workload("Deployment kube-system/cluster-autoscaler", "spec.replicas is 1", corev1.Container{Command: []string{"./cluster-autoscaler", "--nodes=1:3:team.workers"}}), "Deployment kube-system/cluster-autoscaler: spec.replicas is 1, and its argument --nodes names team.workers: it would scale it"},
		"AMachineDeploymentThatIsNotThere":             {func(w *World) { w.From = "other" }, `MachineDeployment.machine.sapcloud.io "other" does not exist: name one of namespace team`},
		"AMachineDeploymentThatIsDeleted":              {set("MachineDeployment", "workers", deleted, "metadata", "deletionTimestamp"), "MachineDeployment.machine.sapcloud.io workers: it is being deleted"},
		"AMachineDeploymentThatIsPaused":               {set("MachineDeployment", "workers", true, "spec", "paused"), "MachineDeployment.machine.sapcloud.io workers: spec.paused is true"},
		"AMachineDeploymentThatIsFrozen":               {set("MachineSet", "workers-a1", "True", "metadata", "labels", "freeze"), "MachineSet.machine.sapcloud.io workers-a1: label freeze=True: it has too many Machines"},
		"AMachineDeploymentThatIsRolledBack":           {set("MachineDeployment", "workers", map[string]any{"revision": int64(3)}, "spec", "rollbackTo"), `MachineDeployment.machine.sapcloud.io workers: spec.rollbackTo is {"revision":3}`},
		"AMachineDeploymentThatIsUpdatedInPlace":       {set("MachineSet", "workers-a1", "true", "metadata", "labels", labelScaleUpDisabled), "label node.machine.sapcloud.io/scale-up-disabled=true: an update in place is in progress"},
		"ATemplateThatIsNotObserved":                   {set("MachineDeployment", "workers", int64(7), "metadata", "generation"), "MachineDeployment.machine.sapcloud.io workers: status.observedGeneration is 1, must be 7"},
		"AScaleInProgress":                             {set("MachineDeployment", "workers", int64(3), "spec", "replicas"), "MachineDeployment.machine.sapcloud.io workers: spec.replicas is 3, and it has 2 Machines"},
		"ARolloutInProgress":                           {func(w *World) { s := w.sets()[0].DeepCopy(); s.SetName("workers-b2"); s.SetUID("b2"); w.Add(s) }, "a rollout is in progress: the MachineSets workers-a1 and workers-b2 have Machines"},
		"MachinesThatAnAutoscalerHasDeleted":           {set("MachineDeployment", "workers", map[string]any{annotationTriggerDeletion: "workers-a1-1~2030"}, "metadata", "annotations"), `annotation node.machine.sapcloud.io/trigger-deletion-by-mcm is "workers-a1-1~2030": an autoscaler has these Machines deleted`},
		"AMachineThatFailed":                           {status("phase", "Failed"), group + `workers-a1-1: status.currentStatus.phase is "Failed", must be "Running"`},
		"AMachineThatIsTerminated":                     {status("phase", "Terminating"), group + `workers-a1-1: status.currentStatus.phase is "Terminating", must be "Running"`},
		"AMachineThatIsPending":                        {status("phase", "Pending"), group + `workers-a1-1: status.currentStatus.phase is "Pending", must be "Running"`},
		"AMachineWhoseNodeIsUnhealthy":                 {status("phase", "Unknown"), group + `workers-a1-1: status.currentStatus.phase is "Unknown", must be "Running"`},
		"AMachineThatIsDeleted":                        {set("Machine", "workers-a1-1", deleted, "metadata", "deletionTimestamp"), group + "workers-a1-1: it is being deleted"},
		"AMachineThatIsPreserved":                      {status("preserveExpiryTime", "2030-01-05T00:00:00Z"), group + "workers-a1-1: status.currentStatus.preserveExpiryTime is 2030-01-05T00:00:00Z: it is preserved"},
		"AMachineToPreserve":                           {set("Machine", "workers-a1-1", map[string]any{annotationPreserve: "when-failed"}, "metadata", "annotations"), group + "workers-a1-1: annotation node.machine.sapcloud.io/preserve=when-failed: Drover does not know it"},
		"AMachineMarkedForDeletion":                    {set("Machine", "workers-a1-1", map[string]any{annotationMarked: "2030"}, "metadata", "annotations"), group + "workers-a1-1: annotation machine.sapcloud.io/marked-for-deletion-time=2030: an autoscaler has it deleted"},
		"AMachineToDeleteFirst":                        {set("Machine", "workers-a1-1", map[string]any{annotationPriority: "1"}, "metadata", "annotations"), group + "workers-a1-1: annotation machinepriority.machine.sapcloud.io=1: it is to be deleted first"},
		"AMachineWithoutAProviderID":                   {set("Machine", "workers-a1-1", nil, "spec", "providerID"), group + "workers-a1-1: spec.providerID is empty"},
		"AMachineWithoutTheLabelOfItsNode":             {set("Machine", "workers-a1-1", nil, "metadata", "labels", labelNode), group + "workers-a1-1: label node is missing"},
		"AMachineWhoseNodeIsMissing":                   {func(w *World) { delete(w.objects, key{"", "Node", "node-1"}) }, group + `workers-a1-1: its Node "node-1" does not exist in the target cluster: name another cluster by --target-kubeconfig`},
		"ANodeOfAnotherCloud":                          {node("gce:///p/z/vm", "spec", "providerID"), group + `workers-a1-1: spec.providerID of Node "node-1" is "gce:///p/z/vm", and must be aws:///ZONE/INSTANCE-ID, as the provider of MachineClass small has it`},
		"ANodeOfAnotherVM":                             {node("aws:///eu-west-1a/i-0007", "spec", "providerID"), group + `workers-a1-1: spec.providerID is "aws:///eu-west-1/i-0001", and that of its Node "node-1" "aws:///eu-west-1a/i-0007": they are of two VMs`},
		"TwoNodesOfOneVM":                              {func(w *World) { n := mcmNode(1); n.SetName("copy"); w.Add(n) }, `spec.providerID "aws:///eu-west-1a/i-0001": 2 Nodes of the target cluster have it, must be one`},
		"ANodeOfDrover":                                {node("t", "metadata", "labels", "cluster.drover.dev/join-token"), `Node "node-1" has the label cluster.drover.dev/join-token=t`},
		"ANodeOfAnotherVersion":                        {node("v1.34.0", "status", "nodeInfo", "kubeletVersion"), `MachineSet web-x7: spec.template.spec.version is "v1.35.4", and Node "node-1" has "v1.34.0"`},
		"ANodeOfAnotherZone":                           {node("eu-west-1b", "metadata", "labels", corev1.LabelTopologyZone), `MachineSet web-x7: spec.template.spec.failureDomain is "eu-west-1a", and label topology.kubernetes.io/zone of Node "node-1" is "eu-west-1b"`},
		"ANodeOfAnotherSize":                           {node("m5.xlarge", "metadata", "labels", corev1.LabelInstanceTypeStable), `MachineClass small: its instance types are ["m5.large"], and label node.kubernetes.io/instance-type of Node "node-1" is "m5.xlarge". Correct the class`},
		"ANodeThatARolloutLeft":                        {node([]any{map[string]any{"key": taintPreferNoSchedule, "effect": "PreferNoSchedule"}}, "spec", "taints"), "Node node-1: taint deployment.machine.sapcloud.io/prefer-no-schedule:PreferNoSchedule: machine-controller-manager or its companion has not taken it away"},
		"ANodeThatTheAutoscalerMustKeepForMCM":         {node("true", "metadata", "annotations", annotationScaleDownByMCM), "Node node-1: annotation cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm=true: a rollout of machine-controller-manager is not complete"},
		"ANodeToPreserve":                              {node("now", "metadata", "annotations", annotationPreserve), "Node node-1: annotation node.machine.sapcloud.io/preserve=now"},
		"ANodeThatIsUpdatedInPlace":                    {node("true", "metadata", "labels", labelCandidate), "Node node-1: label node.machine.sapcloud.io/candidate-for-update=true"},
		"ANodeThatIsTerminated":                        {node([]any{map[string]any{"type": "Terminating", "status": "True", "message": "scaling down"}}, "status", "conditions"), "Node node-1: condition Terminating is True: scaling down"},
		"ATaintThatTheNodeWouldGet":                    {set("MachineSet", "web-x7", []any{map[string]any{"key": "gpu", "value": "yes", "effect": "NoExecute"}}, "spec", "template", "spec", "taints"), `MachineSet web-x7: spec.template.spec.taints: Node "node-0" has no taint gpu=yes:NoExecute`},
		"AnotherSetThatWouldAdoptTheMachines": {func(w *World) {
			w.Add(parse(`{apiVersion: machine.sapcloud.io/v1alpha1, kind: MachineSet, metadata: {name: red}, spec: {selector: {matchLabels: {team: red}}}}`))
		}, "MachineSet.machine.sapcloud.io red: spec.selector {\"matchLabels\":{\"team\":\"red\"}} selects workers-a1-0 without the labels"},
		"ACloudWhoseVMsHaveALabelOfTheirOwn": {set("MachineClass", "small", "gcp", "spec", "provider"), `MachineClass small: spec.provider is "gcp", must be one of ` + namesOfClouds() + `: its provider finds an instance by the label drover-vm`},
		"ACloudThatDroverDoesNotKnow":        {set("MachineClass", "small", "ionos", "spec", "provider"), `MachineClass small: spec.provider is "ionos", must be one of ` + namesOfClouds() + `: VMs of other clouds are not known by the providerID`},
		"AProviderThatIsNotInstalled":        {func(w *World) { w.MCM.Kind.Kind = "" }, `MachineClass small: spec.provider is "aws", and there is no Composition of Machines with the label provider=aws`},
		"AClassThatIsNotThere":               {func(w *World) { delete(w.objects, keyOf(w.class())) }, `MachineClass "small" does not exist: spec.template.spec.classRef of MachineSet web-x7 names it`},
		"AConfigurationThatIsNotThere":       {func(w *World) { delete(w.objects, key{awsMachine.Group, "ClusterProviderConfig", "prod"}) }, `ClusterProviderConfig.aws.drover.dev "prod" does not exist: spec.providerConfigRef of MachineClass small names it`},
		"AClassWithTheTagsOfMCM":             {set("MachineClass", "small", map[string]any{"kubernetes.io/cluster/prod": "1", "kubernetes.io/role/node": "1"}, "spec", "forProvider", "tags"), `MachineClass small: spec.forProvider has the tags "kubernetes.io/role/node" and "kubernetes.io/cluster/prod": machine-controller-manager deletes each VM that has both`},
		"ATargetThatIsNotThere":              {func(w *World) { w.To = "other" }, `MachineDeployment "other" does not exist: create it in namespace team with replicas: 0`},
		"ATargetThatIsPaused":                {annotate("MachineSet", "web-x7", annotationPaused), `MachineSet web-x7: annotation crossplane.io/paused is "true"`},
		"ATargetThatIsBeingScaled":           {set("MachineDeployment", "web", int64(2), "spec", "replicas"), "MachineDeployment web: spec.replicas is 2, and MachineSet web-x7 has 0 Machines"},
		"ATargetThatAnImportFromClusterAPIChanges": {func(w *World) {
			w.Add(annotated(w.set(), map[string]*string{"clusterapi.drover.dev/imported": ptrTo(`{"from":"workers","to":"web"}`)}))
		}, "MachineSet web-x7: workers is being imported into it"},
		"AMachineOfDroverOfTheName": {func(w *World) {
			w.Add(parse(`{apiVersion: machine.drover.dev/v1alpha1, kind: Machine, metadata: {name: workers-a1-1}}`))
		}, "Machine workers-a1-1: it exists, and is another one than Machine.machine.sapcloud.io workers-a1-1"},
		"AMachineThatDroverManagesAlready": {func(w *World) {
			w.Add(parse(`{apiVersion: machine.drover.dev/v1alpha1, kind: Machine, metadata: {name: web-1}, spec: {providerID: "aws:///eu-west-1a/i-0001"}}`))
		}, `Machine web-1: spec.providerID is "aws:///eu-west-1a/i-0001": it has the VM of Machine.machine.sapcloud.io workers-a1-1 already`},
		"AVMThatDroverHasUnderAnotherName": {func(w *World) {
			w.Add(parse(`{apiVersion: aws.drover.dev/v1alpha1, kind: VirtualMachine, metadata: {name: web-1, annotations: {crossplane.io/external-name: i-0001}}}`))
		}, `VirtualMachine web-1: annotation crossplane.io/external-name is "i-0001": it has the VM of Machine.machine.sapcloud.io workers-a1-1 already`},
		"AnImportIntoAnotherMachineDeployment": {func(w *World) {
			w.Add(annotated(w.from(), map[string]*string{machinev1alpha1.AnnotationImported: ptrTo(record{Group: mcmGroup, From: "workers", To: "other"}.String())}))
		}, `it is being imported into MachineDeployment "other"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := settledMCM(2)
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

// TestWhatIsNoObstacleToAnImportFromMCM has what looks like one.
func TestWhatIsNoObstacleToAnImportFromMCM(t *testing.T) {
	for name, change := range map[string]func(*World){
		"ControllersWithoutALeaseThatAUserConfirmsToBeStopped": func(w *World) { w.MCM.Leases, w.MCM.Confirmed = nil, true },
		"DifferencesThatAUserAccepts": func(w *World) {
			w.Differences = true
			set("Node", "node-1", "m5.xlarge", "metadata", "labels", corev1.LabelInstanceTypeStable)(w)
		},
		"ControllersOfOtherNamespaces": func(w *World) {
			of := func(args []string, env ...corev1.EnvVar) {
				w.MCM.Workloads = append(w.MCM.Workloads, Workload{Name: "Deployment other/mcm", Namespace: "other", Why: "spec.replicas is 1", Containers: []corev1.Container{{Image: "machine-controller-manager", Args: args, Env: env}}})
			}
			of([]string{"--namespace=other"})
			of([]string{"--namespace=$(OWN)"}, corev1.EnvVar{Name: "OWN", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}})
			of(nil) // The namespace default.
		},
		"AnAutoscalerOfAnotherMachineDeployment": func(w *World) {
			w.MCM.Workloads = append(w.MCM.Workloads, Workload{Name: "Deployment team/cluster-autoscaler", Why: "spec.replicas is 1", Containers: []corev1.Container{{Args: []string{"--nodes=1:3:team.workers-2", "--nodes=1:3:other.workers"}}}})
		},
		"AnAutoscalerThatIsStopped": func(w *World) {
			w.MCM.Workloads = append(w.MCM.Workloads, Workload{Name: "Deployment team/cluster-autoscaler", Containers: []corev1.Container{{Args: []string{"--nodes=1:3:team.workers"}}}})
		},
		"ANodeOfOneOfSeveralSizes": func(w *World) {
			set("MachineClass", "small", nil, "spec", "forProvider", "instanceType")(w)
			set("MachineClass", "small", []any{map[string]any{"name": "small", "instanceType": "m5.large"}, map[string]any{"name": "m5.xlarge"}}, "spec", "instanceTypes")(w)
			set("Node", "node-1", "m5.xlarge", "metadata", "labels", corev1.LabelInstanceTypeStable)(w)
		},
		"AClassWithAnotherFieldForTheSize": set("MachineClass", "small", nil, "spec", "forProvider", "instanceType"),
		"ANodeThatIsNotToBePreserved":      set("Node", "node-1", "false", "metadata", "annotations", annotationPreserve),
		"ANodeThatAUserCordoned":           set("Node", "node-1", true, "spec", "unschedulable"),
		"AnOldSetWithoutMachines": func(w *World) {
			s := w.sets()[0].DeepCopy()
			s.SetName("workers-b2")
			s.SetUID("b2")
			_ = unstructured.SetNestedField(s.Object, int64(0), "spec", "replicas")
			_ = unstructured.SetNestedField(s.Object, "456", "spec", "selector", "matchLabels", "machine-template-hash")
			w.Add(s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := settledMCM(2)
			change(w)
			if _, err := Take.Next(w); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWhatIsNotGivenBackToMCM has the obstacles of the way back.
func TestWhatIsNotGivenBackToMCM(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*World)
		want   string
	}{
		"WhileItsControllersRun":       {func(w *World) { w.MCM.Leases[1] = lease("machine-controller", 0) }, "Lease team/machine-controller: mcm-0 holds it"},
		"ToADeploymentThatIsGone":      {func(w *World) { delete(w.objects, keyOf(w.from())) }, `MachineDeployment.machine.sapcloud.io "workers" does not exist`},
		"ToASetThatIsGone":             {func(w *World) { delete(w.objects, keyOf(w.sets()[0])) }, "MachineSet.machine.sapcloud.io workers-a1 with the UID"},
		"AMachineThatDroverDeletes":    {func(w *World) { deleteOf(w, machinev1alpha1.Group, "Machine", "workers-a1-0") }, "Machine workers-a1-0: it is being deleted: wait until it is gone"},
		"AMachineOfMCMThatIsDeleted":   {func(w *World) { deleteOf(w, mcmGroup, "Machine", "workers-a1-0") }, "Machine.machine.sapcloud.io workers-a1-0: it is being deleted: wait until it is gone"},
		"DuringARolloutOfDrover":       {func(w *World) { s := w.set().DeepCopy(); s.SetName("web-y8"); s.SetUID("y8"); w.Add(s) }, "or a rollout of it is in progress"},
		"NothingThatWasNeverTakenOver": {func(w *World) { w.Add(annotated(w.from(), w.forgotten(nil))) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, start := settledMCM(2), settledMCM(2)
			play(t, Take, w, start, -1)
			tc.change(w)
			p, err := GiveBack.Next(w)
			if tc.want == "" {
				if err != nil || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "it has no annotation machine.drover.dev/imported: nothing of it is imported") || !p.IsDone() {
					t.Fatalf("plan %v, error %v", p, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestTheExternalNameIsInTheProviderIDOfTheNode has the forms of each cloud, as its cloud-controller-manager and the driver of
// machine-controller-manager write them.
func TestTheExternalNameIsInTheProviderIDOfTheNode(t *testing.T) {
	for name, tc := range map[string]struct {
		node, machine, want string
	}{
		"alibaba":   {"eu-central-1.i-gw8c1x2y3z", "eu-central-1.i-gw8c1x2y3z", "i-gw8c1x2y3z"},
		"aws":       {"aws:///eu-west-1a/i-0a1b2c3d", "aws:///eu-west-1/i-0a1b2c3d", "i-0a1b2c3d"},
		"hcloud":    {"hcloud://4711", "hcloud:///fsn1-dc14/4711", "4711"},
		"openstack": {"openstack:///3f1b2c4d-0000-4000-8000-0123456789ab", "openstack:///region/3f1b2c4d-0000-4000-8000-0123456789ab", "3f1b2c4d-0000-4000-8000-0123456789ab"},
	} {
		t.Run(name, func(t *testing.T) {
			i := slices.IndexFunc(clouds, func(c cloud) bool { return c.name == name })
			c := clouds[i]
			if is := c.externalName(tc.node); is != tc.want || !c.isOf(tc.machine, tc.want) || c.isOf(tc.machine+"0", tc.want) {
				t.Errorf("external name %q, want %q", is, tc.want)
			}
			vm := parse(`{apiVersion: %s.drover.dev/v1alpha1, kind: VirtualMachine, metadata: {name: a}}`, name)
			if is := c.reported(vm); is != "" {
				t.Errorf("a VM that was not found reports %q", is)
			}
			at := tc.node
			if c.status == "id" {
				at = tc.want
			}
			_ = unstructured.SetNestedField(vm.Object, at, "status", "atProvider", c.status)
			if is := c.reported(vm); is != tc.node {
				t.Errorf("a VM reports %q, want %q", is, tc.node)
			}
			for _, other := range clouds {
				if other.name != name && other.externalName(tc.node) != "" {
					t.Errorf("%s knows the VM", other.name)
				}
			}
		})
	}
}
