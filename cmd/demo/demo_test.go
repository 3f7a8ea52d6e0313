package main

import (
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/view"
	"github.com/drover-dev/drover/internal/localcloud"
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
	if got, err := show(v, &strings.Builder{}, true); err != nil || got != want {
		t.Errorf("got\n%s\nwant\n%s\n%v", got, want, err)
	}
	if got, err := show(v, &strings.Builder{}, false); err != nil || strings.Contains(got, "90s") {
		t.Errorf("elsewhere than on a terminal there are no ages:\n%s\n%v", got, err)
	}
}

func TestADeploymentIsSettledWhenAllOfTheNewestIsAvailable(t *testing.T) {
	md := machinev1alpha1.MachineDeployment{}
	md.Generation, md.Status.ObservedGeneration = 2, 2
	md.Spec.Replicas, md.Status.AvailableReplicas, md.Status.UpdatedReplicas = 3, 3, 3
	if !settled([]machinev1alpha1.MachineDeployment{md}) {
		t.Error("it is")
	}
	md.Status.UpdatedReplicas = 2
	if settled([]machinev1alpha1.MachineDeployment{md}) {
		t.Error("one Machine is of an old template")
	}
	if settled(nil) {
		t.Error("there is no deployment at all")
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
