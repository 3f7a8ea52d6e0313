package monitoring

import (
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-state-metrics/v2/pkg/customresource"
	"k8s.io/kube-state-metrics/v2/pkg/customresourcestate"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// factories that kube-state-metrics creates from its configuration, by the resources that it
// lists.
func factories(t *testing.T) map[string]customresource.RegistryFactory {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(read(t, examples+"kube-state-metrics.yaml")))
	d.KnownFields(false)
	config := customresourcestate.Metrics{}
	if err := d.Decode(&config); err != nil {
		t.Fatal(err)
	}
	out := map[string]customresource.RegistryFactory{}
	for _, r := range config.Spec.Resources {
		f, err := customresourcestate.NewCustomResourceMetrics(r)
		if err != nil {
			t.Fatal(err)
		}
		out[f.Name()] = f
	}
	return out
}

// metricsOfObjects are the names of the metrics that kube-state-metrics exports.
func metricsOfObjects(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, f := range factories(t) {
		for _, g := range f.MetricFamilyGenerators() {
			out[g.Name] = true
		}
	}
	return out
}

// The metrics of an object in the text format of Prometheus.
func reported(t *testing.T, f customresource.RegistryFactory, object any) []string {
	t.Helper()
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, g := range f.MetricFamilyGenerators() {
		family := string(g.Generate(&unstructured.Unstructured{Object: raw}).ByteSlice())
		out = append(out, strings.Split(strings.TrimSpace(family), "\n")...)
	}
	slices.Sort(out)
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

func TestTheStateOfAMachineDeploymentIsReported(t *testing.T) {
	md := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}}
	md.Spec.Replicas = 5
	md.Status.Replicas, md.Status.UpdatedReplicas, md.Status.ReadyReplicas, md.Status.AvailableReplicas = 6, 3, 4, 2
	md.Status.Conditions = []metav1.Condition{
		{Type: "Stalled", Status: "True", Reason: "TooManyUnhealthy"},
		{Type: "Ready", Status: "False", Reason: "Unavailable"},
		{Type: "Reconciling", Status: "Unknown", Reason: "New"},
	}
	const of = `customresource_group="machine.drover.dev",customresource_kind="MachineDeployment",customresource_version="v1alpha1",name="web",namespace="team-a"`
	want := []string{
		`drover_machinedeployment_spec_replicas{` + of + `} 5`,
		`drover_machinedeployment_status_available_replicas{` + of + `} 2`,
		`drover_machinedeployment_status_condition{` + of + `,reason="New",type="Reconciling"} 0`,
		`drover_machinedeployment_status_condition{` + of + `,reason="TooManyUnhealthy",type="Stalled"} 1`,
		`drover_machinedeployment_status_condition{` + of + `,reason="Unavailable",type="Ready"} 0`,
		`drover_machinedeployment_status_ready_replicas{` + of + `} 4`,
		`drover_machinedeployment_status_replicas{` + of + `} 6`,
		`drover_machinedeployment_status_updated_replicas{` + of + `} 3`,
	}
	if got := reported(t, factories(t)["machinedeployments"], md); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTheConditionsOfAPoolAndOfACollectorAreReported(t *testing.T) {
	stalled := []metav1.Condition{{Type: "Stalled", Status: "True", Reason: "ClassNotOffered"}}
	pool := &machinev1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}}
	pool.Status.Conditions = stalled
	collector := &machinev1alpha1.OrphanCollector{ObjectMeta: metav1.ObjectMeta{Name: "all"}}
	collector.Status.Conditions = stalled
	for resource, tc := range map[string]struct {
		object any
		want   string
	}{
		"nodepools":        {pool, `drover_nodepool_status_condition{customresource_group="machine.drover.dev",customresource_kind="NodePool",customresource_version="v1alpha1",name="web",namespace="team-a",reason="ClassNotOffered",type="Stalled"} 1`},
		"orphancollectors": {collector, `drover_orphancollector_status_condition{customresource_group="machine.drover.dev",customresource_kind="OrphanCollector",customresource_version="v1alpha1",name="all",reason="ClassNotOffered",type="Stalled"} 1`},
	} {
		if got := reported(t, factories(t)[resource], tc.object); !slices.Equal(got, []string{tc.want}) {
			t.Errorf("%s: got %v, want %s", resource, got, tc.want)
		}
	}
}

func TestAnObjectWithoutAStatusHasNoConditions(t *testing.T) {
	md := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}}
	for _, line := range reported(t, factories(t)["machinedeployments"], md) {
		if strings.Contains(line, "status_condition") {
			t.Errorf("got %s", line)
		}
	}
}
