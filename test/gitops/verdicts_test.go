package gitops

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

var update = flag.Bool("update", false, "write the tables of testdata anew")

// A stage of the life of a MachineDeployment begins with a change.
type stage struct {
	name string
	// broken means that the change is a mistake, or corrects a mistake: Machines may be Degraded.
	broken bool
	do     func()
	// revision of the API server when the stage began.
	revision int64
}

// TestVerdictsOfArgoCDAndFlux judges every version of every object in the life of a
// MachineDeployment. The table of verdicts is testdata/verdicts.md.
func TestVerdictsOfArgoCDAndFlux(t *testing.T) {
	t.Parallel()
	f := plane(t).NewFleet(t)
	md := f.Deployment("workers", 2, 1, 0)
	r := record(t, f)

	patch := func(p string) {
		t.Helper()
		f.Patch(t, md, p)
	}
	await := func(what string, ok func(s machinev1alpha1.MachineDeploymentStatus) bool) {
		t.Helper()
		patience.Eventually(t, func(ctx context.Context) string {
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(md), md); err != nil {
				return err.Error()
			}
			if s := md.Status; s.ObservedGeneration != md.Generation || !ok(s) {
				return fmt.Sprintf("%s is waited for: %+v", what, s)
			}
			return ""
		}, f.Describe)
	}
	is := func(kind, status string) func(s machinev1alpha1.MachineDeploymentStatus) bool {
		return func(s machinev1alpha1.MachineDeploymentStatus) bool {
			return slices.ContainsFunc(s.Conditions, func(c metav1.Condition) bool { return c.Type == kind && string(c.Status) == status })
		}
	}
	// Conditions change after the numbers: a stage ends when both are final.
	settle := func() {
		t.Helper()
		f.AwaitDeployment(t, md.Name)
		await("Ready", func(s machinev1alpha1.MachineDeploymentStatus) bool {
			return plan.IsReadyFor(md.Generation, s.Conditions) && is("Reconciling", "False")(s)
		})
	}
	stages := []*stage{
		{name: "create 2 Machines", do: func() {
			f.Create(t, md)
			settle()
		}},
		{name: "scale to 3", do: func() {
			patch(`{"spec":{"replicas":3}}`)
			settle()
		}},
		{name: "roll to another version", do: func() {
			patch(fmt.Sprintf(`{"spec":{"template":{"spec":{"version":%q}}}}`, kit.NewVersion))
			settle()
		}},
		{name: "pause", do: func() {
			patch(`{"spec":{"paused":true}}`)
			await("the pause", func(machinev1alpha1.MachineDeploymentStatus) bool { return true })
		}},
		{name: "change the version while paused", do: func() {
			patch(fmt.Sprintf(`{"spec":{"template":{"spec":{"version":%q}}}}`, kit.OldVersion))
			await("Progressing", is("Progressing", "Unknown"))
		}},
		{name: "resume", do: func() {
			patch(`{"spec":{"paused":false}}`)
			settle()
		}},
		{name: "name a class that does not exist", broken: true, do: func() {
			patch(`{"spec":{"template":{"spec":{"classRef":{"name":"no-such-class"}}}}}`)
			await("Stalled", is("Stalled", "True"))
		}},
		{name: "mend the class", broken: true, do: func() {
			patch(`{"spec":{"template":{"spec":{"classRef":{"name":"small"}}}}}`)
			settle()
		}},
		{name: "delete", do: func() {
			if err := f.Client.Delete(t.Context(), md); err != nil {
				t.Fatal(err)
			}
			f.AwaitNothing(t)
		}},
	}
	live(t, f, stages)
	wantVerdicts(t, r, stages, "MachineDeployment", "verdicts.md")
}

// live applies the changes of the stages in order.
func live(t *testing.T, f kit.Fleet, stages []*stage) {
	t.Helper()
	for _, s := range stages {
		s.revision = revisionNow(t, f)
		s.do()
	}
}

// wantVerdicts checks that the verdicts on all versions of all objects are true, and that those
// on a kind match a file of testdata.
func wantVerdicts(t *testing.T, r *recorder, stages []*stage, kind, file string) {
	t.Helper()
	history := r.history(t)
	objects := make([]map[string]any, 0, len(history))
	for _, v := range history {
		objects = append(objects, v.Object)
	}
	verdicts := judge(t, objects, nil, nil)

	table, last := newTable(kind), verdict{}
	for i, v := range history {
		at := stageOf(stages, v.revision)
		if at == nil || v.deleted {
			continue
		}
		said := fmt.Sprintf("%s, %s %s, generation %d, revision %d: Argo CD says %s %q, Flux %s %q, kstatus %s %q", at.name, v.GetKind(), v.GetName(), v.GetGeneration(), v.revision,
			verdicts[i].Argo, verdicts[i].ArgoMessage, verdicts[i].Flux, verdicts[i].FluxMessage, verdicts[i].Kstatus, verdicts[i].KstatusMessage)
		if isWrong := mistake(v, verdicts[i], at.broken); isWrong != "" {
			t.Errorf("%s\n  %s\n  status: %v", said, isWrong, v.Object["status"])
		}
		if v.GetKind() == kind {
			table.add(at.name, v, verdicts[i])
			if verdicts[i].Argo != last.Argo || verdicts[i].Flux != last.Flux {
				// Shown if the test fails: what made a verdict change.
				t.Logf("%s\n  status: %v", said, v.Object["status"])
			}
			last = verdicts[i]
		}
	}
	wantTable(t, table, file)
	if len(history) < 100 {
		t.Errorf("only %d versions were judged", len(history))
	}
}

// wantTable checks that a table is that of a file of testdata.
func wantTable(t *testing.T, table *table, file string) {
	t.Helper()
	golden := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(golden, []byte(table.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := table.String(); got != string(want) {
		t.Errorf("the verdicts differ from %s, got:\n%s", golden, got)
	}
}

// mistake returns why a verdict contradicts the facts at that revision, empty if it is right.
func mistake(v version, got verdict, broken bool) string {
	_, hasStatus := v.Object["status"]
	if observed, _, _ := unstructured.NestedInt64(v.Object, "status", "observedGeneration"); observed < 1 && isObservable(v.GetKind()) {
		// A composite without a status is Current by kstatus alone: docs/gitops.md.
		isTakenForDone := got.Kstatus == "Current" && (hasStatus || !slices.Contains(composites, v.GetKind()))
		if got.Argo == "Healthy" || got.Flux == "Current" || isTakenForDone {
			return "no spec was observed"
		}
		got.Kstatus = ""
	}
	isDone := got.Argo == "Healthy" || isObservable(v.GetKind()) && (got.Flux == "Current" || got.Kstatus == "Current")
	if v.GetDeletionTimestamp() != nil && (isDone || got.Argo == "Degraded") {
		return "it is being deleted"
	}
	if !broken && (got.Argo == "Degraded" || got.Flux == "Failed" || got.Kstatus == "Failed") {
		return "nothing is wrong"
	}
	// Flux waits while an expression cannot be evaluated.
	if got.Argo == "none" || got.Argo == "Unknown" || got.Flux == "Unknown" && hasStatus {
		return "there is no verdict"
	}
	if v.GetDeletionTimestamp() != nil || !isDone {
		return ""
	}
	if paused, _, _ := unstructured.NestedBool(v.Object, "spec", "paused"); paused && got.Argo == "Healthy" {
		return "it is paused"
	}
	switch v.GetKind() {
	case "MachineDeployment":
		replicas, _, _ := unstructured.NestedInt64(v.Object, "spec", "replicas")
		wanted, _, _ := unstructured.NestedString(v.Object, "spec", "template", "spec", "version")
		class, _, _ := unstructured.NestedString(v.Object, "spec", "template", "spec", "classRef", "name")
		pool := v.GetLabels()[machinev1alpha1.LabelNodePool]
		zone, _, _ := unstructured.NestedString(v.Object, "spec", "template", "spec", "failureDomain")
		return unfinished(v.machines, func(m *unstructured.Unstructured) bool {
			in, _, _ := unstructured.NestedString(m.Object, "spec", "failureDomain")
			return pool == "" || in == zone
		}, replicas, wanted, class)
	case "NodePool":
		size, _, _ := unstructured.NestedInt64(v.Object, "spec", "size")
		wanted, _, _ := unstructured.NestedString(v.Object, "spec", "version")
		class, _, _ := unstructured.NestedString(v.Object, "spec", "class")
		return unfinished(v.machines, func(*unstructured.Unstructured) bool { return true }, size, wanted, class)
	}
	return ""
}

// unfinished returns why the counted Machines are not the desired ones, empty if they are.
func unfinished(all []*unstructured.Unstructured, counts func(*unstructured.Unstructured) bool, replicas int64, wanted, class string) string {
	count := int64(0)
	for _, m := range all {
		if !counts(m) {
			continue
		}
		count++
		version, _, _ := unstructured.NestedString(m.Object, "spec", "version")
		of, _, _ := unstructured.NestedString(m.Object, "spec", "classRef", "name")
		phase, _, _ := unstructured.NestedString(m.Object, "status", "phase")
		if version != wanted || of != class || phase != string(machinev1alpha1.MachineRunning) || m.GetDeletionTimestamp() != nil {
			return fmt.Sprintf("Machine %s of class %s has version %s and is %s", m.GetName(), of, version, phase)
		}
	}
	if count != replicas {
		return fmt.Sprintf("there are %d Machines of %d", count, replicas)
	}
	return ""
}

// revisionNow of the API server.
func revisionNow(t *testing.T, f kit.Fleet) int64 {
	t.Helper()
	l := &machinev1alpha1.MachineDeploymentList{}
	if err := f.Client.List(t.Context(), l, client.InNamespace(f.Namespace)); err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(l.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func stageOf(stages []*stage, revision int64) *stage {
	for _, s := range slices.Backward(stages) {
		if revision > s.revision {
			return s
		}
	}
	return nil
}

// A table has the verdicts on one object: the sequence of each client's verdicts per stage.
type table struct {
	kind                string
	stages              []string
	argo, flux, kstatus map[string][]string
	message             map[string]string
	last                version
}

func newTable(kind string) *table {
	return &table{kind: kind, argo: map[string][]string{}, flux: map[string][]string{}, kstatus: map[string][]string{}, message: map[string]string{}}
}

func (b *table) add(stage string, of version, v verdict) {
	// A version that is written before a stage's change arrives belongs to the previous stage.
	isChanged := b.last.Unstructured == nil || b.last.GetGeneration() != of.GetGeneration()
	if n := len(b.stages); n > 0 && !isChanged {
		stage = b.stages[n-1]
	}
	b.last = of
	if !slices.Contains(b.stages, stage) {
		b.stages = append(b.stages, stage)
	}
	b.argo[stage], b.flux[stage], b.kstatus[stage] = push(b.argo[stage], v.Argo), push(b.flux[stage], v.Flux), push(b.kstatus[stage], v.Kstatus)
	b.message[stage] = v.ArgoMessage
}

// push adds a verdict unless it is the last one.
func push(all []string, one string) []string {
	if n := len(all); n > 0 && all[n-1] == one {
		return all
	}
	return append(all, one)
}

// named matches the generated names, which differ in each run.
var named = regexp.MustCompile(`(workers|web|e2e)-[0-9a-z]+(-[0-9a-z]+)*`)

func (b *table) String() string {
	out := strings.Builder{}
	out.WriteString("# What Argo CD and Flux report of a " + b.kind + "\n\n" +
		"<!-- Written by \"go test ./test/gitops -update\". Do not edit. -->\n\n" +
		"Each client judged each version of the object, with the health checks of examples/argocd and examples/flux. Repetitions are left out.\n\n" +
		"| change | Argo CD | Flux | kstatus, as Flux without expressions | last message of Argo CD |\n|---|---|---|---|---|\n")
	for _, s := range b.stages {
		message := named.ReplaceAllString(b.message[s], "NAME")
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", s, strings.Join(b.argo[s], " → "), strings.Join(b.flux[s], " → "), strings.Join(b.kstatus[s], " → "), strings.ReplaceAll(message, "|", "\\|"))
	}
	return out.String()
}
