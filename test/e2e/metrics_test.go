package e2e

import (
	"context"
	"fmt"
	"testing"

	dto "github.com/prometheus/client_model/go"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// TestMetricsShowHowAFleetIs follows a MachineDeployment by the metrics of provider-drover, until
// they have no series of it left. The test runs alone, as those do that restart provider-drover:
// a restart resets its counters.
func TestMetricsShowHowAFleetIs(t *testing.T) {
	f := plane.NewFleet(t)
	md := f.Deployment("measured", 2, 1, 0)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	set := onlySet(t, f).Name

	step(t, "MachinesThatRun", func(t *testing.T) {
		awaitMetric(t, f, "drover_machines", 2, map[string]string{"deployment": md.Name, "set": set, "phase": "Running"})
		awaitMetric(t, f, "drover_machine_ready_seconds", 2, map[string]string{"deployment": md.Name, "set": ""})
		awaitMetric(t, f, "drover_machine_replacements_total", 0, map[string]string{"deployment": md.Name, "reason": "VMLost"})
		here := kit.Fleet{Plane: f.Plane}
		awaitMetric(t, here, "drover_target_cluster_reachable", 1, map[string]string{"kind": "ClusterProviderConfig", "name": "default"})
	})
	step(t, "AFreezeAndWhatFailedMeanwhile", func(t *testing.T) {
		kubectl(t, f, "label", "md", md.Name, machinev1alpha1.LabelFreeze+"=true")
		awaitMetric(t, f, "drover_frozen", 1, map[string]string{"deployment": md.Name, "set": "", "reason": "ManualFreeze"})
		awaitMetric(t, f, "drover_frozen", 1, map[string]string{"deployment": md.Name, "set": set, "reason": "DeploymentFrozen"})
		loseOne(t, f, machineNames(t, f))
		awaitMetric(t, f, "drover_machines_failed", 1, map[string]string{"deployment": md.Name, "set": set, "reason": "VMLost"})
		awaitMetric(t, f, "drover_machines", 1, map[string]string{"deployment": md.Name, "phase": "Failed"})
	})
	step(t, "AReplacementCountsOnce", func(t *testing.T) {
		kubectl(t, f, "label", "md", md.Name, machinev1alpha1.LabelFreeze+"-")
		awaitFrozen(t, f, md, "")
		f.AwaitDeployment(t, md.Name)
		awaitMetric(t, f, "drover_machine_replacements_total", 1, map[string]string{"deployment": md.Name, "reason": "VMLost"})
		awaitMetric(t, f, "drover_machine_ready_seconds", 3, map[string]string{"deployment": md.Name})
		awaitMetric(t, f, "drover_node_drain_seconds", 1, map[string]string{"deployment": md.Name})
		awaitMetric(t, f, "drover_frozen", -1, nil)
		awaitMetric(t, f, "drover_machines_failed", -1, nil)
	})
	step(t, "OrphansOnceTheCloudWasLookedAt", func(t *testing.T) {
		c := &machinev1alpha1.OrphanCollector{}
		c.Name = f.Namespace
		f.Create(t, c)
		patience.Eventually(t, func(ctx context.Context) string {
			families, err := f.Metrics(ctx, "provider-drover")
			if err != nil {
				return err.Error()
			}
			for _, m := range families["drover_orphan_vms"].GetMetric() {
				if isSeries(m, "", map[string]string{"name": c.Name}) {
					return ""
				}
			}
			return "no series of it"
		})
		must(t, f.Client.Delete(t.Context(), c))
	})
	step(t, "NothingIsLeftOfADeletedDeployment", func(t *testing.T) {
		f.DeleteDeployment(t, md.Name)
		patience.Eventually(t, func(ctx context.Context) string {
			families, err := f.Metrics(ctx, "provider-drover")
			if err != nil {
				return err.Error()
			}
			for name, family := range families {
				for _, m := range family.GetMetric() {
					if l := kit.LabelsOf(m); l["namespace"] == f.Namespace {
						return fmt.Sprintf("%s%v is left", name, l)
					}
				}
			}
			return ""
		})
	})
}

// awaitMetric waits until the only series of a metric with these labels in the fleet's namespace
// has a value. For a histogram, the value is the number of samples; -1 means that there is no
// series.
func awaitMetric(t *testing.T, f kit.Fleet, name string, want float64, labels map[string]string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		families, err := f.Metrics(ctx, "provider-drover")
		if err != nil {
			return err.Error()
		}
		var found []string
		for _, m := range families[name].GetMetric() {
			if !isSeries(m, f.Namespace, labels) {
				continue
			}
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			if value == want {
				return ""
			}
			found = append(found, fmt.Sprintf("%v %v", kit.LabelsOf(m), value))
		}
		if want == -1 && len(found) == 0 {
			return ""
		}
		return fmt.Sprintf("%s%v in namespace %s: found %q, want %v", name, labels, f.Namespace, found, want)
	}, f.Describe)
}

func isSeries(m *dto.Metric, namespace string, labels map[string]string) bool {
	l := kit.LabelsOf(m)
	for k, v := range labels {
		if l[k] != v {
			return false
		}
	}
	return l["namespace"] == namespace
}
