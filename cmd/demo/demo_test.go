package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
	"github.com/drover-dev/drover/internal/kubectl/view"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/patience"
)

func TestTheScreenHasStatePhaseNodeVersionAndAge(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	running := machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b", CreationTimestamp: metav1.NewTime(now.Add(-90 * time.Second))}}
	running.Spec.Version = "v1.35.4"
	running.Status.Phase = machinev1alpha1.MachineRunning
	running.Status.NodeRef = &machinev1alpha1.NodeReference{Kind: "Node", Name: "node-b"}
	v := &view.View{Time: metav1.NewTime(now), Machines: []machinev1alpha1.Machine{running}}

	want := strings.TrimLeft(`
ma/b  namespace default  in progress
  [####################] 1 of 1 available, 1 updated; v1.35.4
  MACHINE  PHASE    WAITS FOR  NODE    VERSION  AGE
  b        Running  -          node-b  v1.35.4  90s
`, "\n")
	if _, got, err := show(v, &strings.Builder{}, true); err != nil || got != want {
		t.Errorf("got\n%s\nwant\n%s\n%v", got, want, err)
	}
	if _, got, err := show(v, &strings.Builder{}, false); err != nil || strings.Contains(got, "90s") {
		t.Errorf("elsewhere than on a terminal there are no ages:\n%s\n%v", got, err)
	}
}

// TestTheLastScreenIsComplete: the sentence after it states that every Machine has its Node.
func TestTheLastScreenIsComplete(t *testing.T) {
	row := func(name string, phase machinev1alpha1.MachinePhase, node, waits string) diagnosis.Row {
		return diagnosis.Row{Ref: view.Ref{Kind: view.Machine, Name: name}, Phase: string(phase), Node: node, Waits: waits}
	}
	a, b := row("a", machinev1alpha1.MachineRunning, "node-a", ""), row("b", machinev1alpha1.MachineRunning, "node-b", "")
	all := diagnosis.Counts{Desired: 2, Updated: 2, Available: 2}
	for _, tc := range []struct {
		name     string
		state    diagnosis.State
		counts   diagnosis.Counts
		machines []diagnosis.Row
		want     string
	}{
		{"AllRun", diagnosis.Complete, all, []diagnosis.Row{a, b}, ""},
		{"TheCountsAreNewerThanTheConditions", diagnosis.InProgress, all, []diagnosis.Row{a, b}, "md/workers has 2 of 2 Machines available; kubectl drover why md/workers explains it"},
		{"TheConditionsAreOlderThanTheSpec", diagnosis.Complete, diagnosis.Counts{Desired: 3, Updated: 2, Available: 2}, []diagnosis.Row{a, b}, "md/workers has 2 of 3 Machines available; kubectl drover why md/workers explains it"},
		{"AMachineOfAnOldTemplateIsLeft", diagnosis.Complete, diagnosis.Counts{Desired: 2, Updated: 1, Available: 2}, []diagnosis.Row{a, b}, "md/workers has 2 of 2 Machines available; kubectl drover why md/workers explains it"},
		{"AMachineJoins", diagnosis.Complete, all, []diagnosis.Row{a, row("b", machinev1alpha1.MachineJoining, "", "NodeNotJoined")}, "b is Joining NodeNotJoined; kubectl drover why ma/b explains it"},
		{"AMachineIsDeleted", diagnosis.Complete, all, []diagnosis.Row{row("c", machinev1alpha1.MachineTerminating, "node-c", ""), a, b}, "c is Terminating; kubectl drover why ma/c explains it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := diagnosis.Group{Ref: view.Ref{Kind: view.MachineDeployment, Name: "workers"}, State: tc.state, Counts: tc.counts, Machines: tc.machines}
			if got := incomplete(diagnosis.Report{State: tc.state, Groups: []diagnosis.Group{g}}); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if got := incomplete(diagnosis.Report{State: diagnosis.Complete}); got == "" {
		t.Error("a report of nothing is complete, before the first object is read")
	}
}

// TestAnAPIServerThatDoesNotAnswerIsAskedAgain: one that has just started, on a busy computer, may refuse the first requests.
func TestAnAPIServerThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	now := metav1.NewTime(time.Now())
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a", Generation: 1, CreationTimestamp: now}}
	m.Status.Phase, m.Status.ObservedGeneration = machinev1alpha1.MachineRunning, 1
	m.Status.NodeRef = &machinev1alpha1.NodeReference{Kind: "Node", Name: "node-a"}
	m.Status.Conditions = []metav1.Condition{{Type: machinev1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Available", LastTransitionTime: now}}
	config := &clusterv1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	refused := 0
	c := interceptor.NewClient(fakeclient.NewClientBuilder().WithScheme(scheme()).WithObjects(m, config).Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if refused == 0 {
				refused++
				return errors.New("connection refused")
			}
			return c.List(ctx, l, opts...)
		},
	})
	out := &strings.Builder{}
	ctx, cancel := patience.Context(t)
	defer cancel()
	if err := follow(ctx, c, out); err != nil || refused != 1 || !strings.Contains(out.String(), "ma/a  namespace default  complete") {
		t.Errorf("error %v after %d refusals, and the screen\n%s", err, refused, out)
	}
}

func TestTheExamplesOfRealMachinesFitTogether(t *testing.T) {
	read := func(name string, into any) {
		t.Helper()
		b, err := os.ReadFile("../../examples/local-real/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(b, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	classes := map[string]bool{}
	for _, name := range []string{"machineclass", "machineclass-medium"} {
		class := machinev1alpha1.MachineClass{}
		read(name, &class)
		classes[class.Name] = true
		if want := "http://" + localcloud.GatewayAddress + "/release"; class.Spec.OperatingSystem.KubeletDownloadURL != want {
			t.Errorf("%s downloads kubelets from %q, want %q", name, class.Spec.OperatingSystem.KubeletDownloadURL, want)
		}
		if !strings.Contains(string(class.Spec.ForProvider.Raw), `"`+localcloud.ImageDebian12Real+`"`) {
			t.Errorf("%s boots %s", name, class.Spec.ForProvider.Raw)
		}
	}
	md, ds := machinev1alpha1.MachineDeployment{}, appsv1.DaemonSet{}
	read("machinedeployment", &md)
	read("daemonset", &ds)
	if md.Name != realName || ds.Name != realName || !classes[md.Spec.Template.Spec.ClassRef.Name] || !strings.Contains(rollPatch, `"real-medium"`) || !classes["real-medium"] {
		t.Errorf("names do not fit: %s, %s, %s and %v", md.Name, ds.Name, md.Spec.Template.Spec.ClassRef.Name, classes)
	}
	for k, v := range ds.Spec.Template.Spec.NodeSelector {
		if string(md.Spec.Template.Spec.Metadata.Labels[k]) != v {
			t.Errorf("the pods are for Nodes with %s=%s, which the machines do not have", k, v)
		}
	}
}
