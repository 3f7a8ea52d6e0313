package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// pool returns the dashboard of one MachineDeployment.
func pool() *dashboard.DashboardBuilder {
	const (
		here = `namespace="$namespace", deployment="$deployment"`
		of   = "{" + here + "}"
		// Kube-state-metrics exports these with its configuration in examples/monitoring.
		selector = `{namespace="$namespace", name="$deployment"}`
	)
	return start("drover-pool", "Drover / Pool", "One MachineDeployment.").
		WithVariable(variable("namespace", "Namespace", "")).
		WithVariable(variable("deployment", "MachineDeployment", `{namespace="$namespace", deployment!=""}`)).
		WithRow(dashboard.NewRowBuilder("Now")).
		WithPanel(number("Wanted", "spec.replicas, by kube-state-metrics.", "drover_machinedeployment_spec_replicas"+selector, false)).
		WithPanel(number("Available", "status.availableReplicas, by kube-state-metrics.", "drover_machinedeployment_status_available_replicas"+selector, false)).
		WithPanel(number("Updated", "status.updatedReplicas, by kube-state-metrics.", "drover_machinedeployment_status_updated_replicas"+selector, false)).
		WithPanel(number("Running", "Machines whose Node is Ready.", `sum(drover_machines{`+here+`, phase="Running"})`, false)).
		WithPanel(number("Failed", "Machines that failed and are not replaced yet.", "sum(drover_machines_failed"+of+")", true)).
		WithPanel(number("Nodes not Ready", "Machines in the phase Unknown: their Nodes are not Ready.", `sum(drover_machines{`+here+`, phase="Unknown"})`, true)).
		WithPanel(number("Stuck", "Machines that are for more than 30 minutes on their way to their Node, or in one stage of their deletion.", "sum(drover_machines_stuck"+of+")", true)).
		WithPanel(number("Stalled", "The condition Stalled, by kube-state-metrics: it goes on only when a user changes something.",
			`sum(drover_machinedeployment_status_condition{namespace="$namespace", name="$deployment", type="Stalled"})`, true)).
		WithRow(dashboard.NewRowBuilder("Machines")).
		WithPanel(stacked("Machines by phase", "", units.Short, query("sum by (phase) (drover_machines"+of+")", "{{phase}}"))).
		WithPanel(stacked("Machines by MachineSet", "A rollout takes Machines from one to the other.", units.Short, query("sum by (set) (drover_machines"+of+")", "{{set}}"))).
		WithPanel(stacked("Failed Machines by reason", "status.failureReason of Machines that are not replaced yet.", units.Short, query("sum by (reason) (drover_machines_failed"+of+")", "{{reason}}"))).
		WithPanel(graph("Stuck Machines by stage", "The runbook's section DroverMachinesStuck has what to do.", units.Short, query("sum by (stage) (drover_machines_stuck"+of+")", "{{stage}}"))).
		WithRow(dashboard.NewRowBuilder("Speed")).
		WithPanel(graph("From creation to running", "How long Machines take that came up within the last hour.", units.Seconds, quantiles("drover_machine_ready_seconds", of)...)).
		WithPanel(graph("Drains", "How long Nodes take to drain that were gone within the last hour.", units.Seconds, quantiles("drover_node_drain_seconds", of)...)).
		WithPanel(stacked("Replaced Machines an hour", "Failed Machines that were given up, for others to take their places.", units.Short,
			query("sum by (reason) (increase(drover_machine_replacements_total"+of+"[1h]))", "{{reason}}"))).
		WithPanel(stacked("Reboots an hour", "Reboots that have ended, by who requested them and by their result.", units.Short,
			query("sum by (by, result) (increase(drover_machine_reboots_total"+of+"[1h]))", "{{by}} {{result}}"))).
		WithPanel(states("Frozen", "By reason.", query("max by (set, reason) (drover_frozen"+of+")", "{{set}} {{reason}}"))).
		WithRow(dashboard.NewRowBuilder("Conditions")).
		WithPanel(states("Conditions that are True", "By kube-state-metrics.", query("max by (type) (drover_machinedeployment_status_condition"+selector+")", "{{type}}")).Span(24))
}

// quantiles returns the queries for quantiles of a histogram within the last hour.
func quantiles(histogram, of string) []*prometheus.DataqueryBuilder {
	var out []*prometheus.DataqueryBuilder
	for _, q := range []struct{ of, name string }{{"0.5", "half"}, {"0.9", "90 %"}, {"0.99", "99 %"}} {
		out = append(out, query("histogram_quantile("+q.of+", sum by (le) (rate("+histogram+"_bucket"+of+"[1h])))", q.name))
	}
	return out
}
