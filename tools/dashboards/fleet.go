package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// inNamespaces selects the namespaces that the user chose.
const inNamespaces = `namespace=~"$namespace"`

// fleet shows all Machines of a control cluster, and Drover itself.
func fleet() *dashboard.DashboardBuilder {
	const of = "{" + inNamespaces + "}"
	return start("drover-fleet", "Drover / Fleet", "All Machines of a control cluster, and the controllers that make them.").
		WithVariable(variable("namespace", "Namespace", "").Multi(true).IncludeAll(true).AllValue(".*")).
		WithRow(dashboard.NewRowBuilder("Now")).
		WithPanel(number("Machines", "All Machines, whatever their phase.", "sum(drover_machines"+of+")", false)).
		WithPanel(number("Running", "Machines whose Node is Ready.", `sum(drover_machines{`+inNamespaces+`, phase="Running"})`, false)).
		WithPanel(number("Failed", "Machines that failed and are not replaced yet.", "sum(drover_machines_failed"+of+")", true)).
		WithPanel(number("Nodes not Ready", "Machines in the phase Unknown: their Nodes are not Ready.", `sum(drover_machines{`+inNamespaces+`, phase="Unknown"})`, true)).
		WithPanel(number("Stuck", "Machines that are for more than 30 minutes on their way to their Node, or in one stage of their deletion.", "sum(drover_machines_stuck"+of+")", true)).
		WithPanel(number("Frozen", "MachineDeployments and MachineSets that are frozen.", "sum(drover_frozen"+of+")", true)).
		WithPanel(number("Orphans", "VMs without a Machine. They cost money.", "sum(drover_orphan_vms)", true)).
		WithPanel(number("Clusters out of reach", "Target clusters whose API server cannot be reached. Nothing that joins them is created or replaced.", "count(drover_target_cluster_reachable == 0)", true)).
		WithRow(dashboard.NewRowBuilder("Machines")).
		WithPanel(stacked("Machines by phase", "", units.Short, query("sum by (phase) (drover_machines"+of+")", "{{phase}}"))).
		WithPanel(stacked("Failed Machines by reason", "status.failureReason of Machines that are not replaced yet.", units.Short, query("sum by (reason) (drover_machines_failed"+of+")", "{{reason}}"))).
		WithPanel(stacked("Machines by pool", "", units.Short, query("sum by (namespace, deployment) (drover_machines"+of+")", "{{namespace}}/{{deployment}}"))).
		WithPanel(graph("Stuck Machines by pool and stage", "The runbook's section DroverMachinesStuck has what to do.", units.Short,
			query("sum by (namespace, deployment, stage) (drover_machines_stuck"+of+")", "{{namespace}}/{{deployment}} {{stage}}"))).
		WithRow(dashboard.NewRowBuilder("Speed")).
		WithPanel(graph("From creation to running", "How long Machines take that came up within the last hour.", units.Seconds, quantiles("drover_machine_ready_seconds", of)...)).
		WithPanel(graph("Drains", "How long Nodes take to drain that were gone within the last hour.", units.Seconds, quantiles("drover_node_drain_seconds", of)...)).
		WithPanel(stacked("Replaced Machines an hour", "Failed Machines that were given up, for others to take their places.", units.Short,
			query("sum by (reason) (increase(drover_machine_replacements_total"+of+"[1h]))", "{{reason}}"))).
		WithPanel(states("Frozen", "Frozen MachineDeployments and MachineSets, by reason.", query("max by (namespace, deployment, set, reason) (drover_frozen"+of+")", "{{namespace}}/{{deployment}} {{set}} {{reason}}"))).
		WithRow(dashboard.NewRowBuilder("Rollouts")).
		WithPanel(states("Held rollouts", "MachineDeployments whose rollout waits for a user, a window, a wave or a gate, or whose template was rejected, by reason.", query("max by (namespace, deployment, reason) (drover_rollout_held"+of+")", "{{namespace}}/{{deployment}} {{reason}}"))).
		WithPanel(states("Waves of RolloutPolicies", "Waves that are not complete. Failed and Overdue hold the rollouts of later waves.",
			query(`max by (policy, wave, state) (drover_rollout_wave{state!~"Empty|Complete"})`, "{{policy}}/{{wave}} {{state}}"))).
		WithRow(dashboard.NewRowBuilder("Controllers")).
		WithPanel(graph("Reconciles a second", "", units.Short, query(`sum by (controller) (rate(controller_runtime_reconcile_total[5m])) > 0`, "{{controller}}"))).
		WithPanel(graph("Errors of reconciles a second", "A lasting error has a cause: the conditions of the objects and the log of provider-drover have it.", units.Short,
			query(`sum by (controller) (rate(controller_runtime_reconcile_errors_total[5m]))`, "{{controller}}"))).
		WithPanel(graph("Duration of reconciles, 99 %", "", units.Seconds,
			query(`histogram_quantile(0.99, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket[5m])))`, "{{controller}}"))).
		WithPanel(graph("Waiting in queues", "", units.Short, query(`sum by (name) (workqueue_depth)`, "{{name}}"))).
		WithPanel(graph("Calls of function-drover a second", "By step of the pipelines.", units.Short, query(`sum by (step) (rate(drover_function_calls_total[5m]))`, "{{step}}"))).
		WithPanel(graph("Requests to API servers a second", "", units.Short, query(`sum by (method, code) (rate(rest_client_requests_total[5m]))`, "{{method}} {{code}}"))).
		WithPanel(graph("Memory", "", units.BytesIEC, query(`process_resident_memory_bytes{job=~".*drover.*"}`, "{{job}} {{pod}}"))).
		WithPanel(graph("CPU", "", units.Short, query(`rate(process_cpu_seconds_total{job=~".*drover.*"}[5m])`, "{{job}} {{pod}}")))
}
