package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/handover"
	"github.com/drover-dev/drover/internal/target"
)

func (a *app) importCAPI() *cobra.Command {
	return a.importFrom(importSource{
		system: handover.ClusterAPI, command: "capi", title: "Cluster API",
		long: "Take over the Machines of a MachineDeployment of Cluster API with their InfraMachines, without touching a VM or a Node. Everything is checked before the first change, and each obstacle is named. " +
			"A command that was interrupted is run again. --undo gives the Machines back as they were.\n\nThe MachineDeployment of Drover must exist in the same namespace, with a class of the provider clusterapi. " +
			"Cluster API's controllers may run: they leave alone what is paused for them.",
		undo:        "Give the Machines back to Cluster API, with the owners, labels and pauses that they had.",
		differences: "Take over VMs that differ from spec.forProvider.infraMachine.spec of the class. The next rollout replaces them.",
		kubeconfig:  "that of Cluster API, in the Secret CLUSTER-kubeconfig.",
		connect:     connectByClusterAPI,
	})
}

// connectByClusterAPI connects to the cluster of the Nodes with the kubeconfig that Cluster API keeps.
func connectByClusterAPI(ctx context.Context, r handover.Run) (client.Client, error) {
	kubeconfig, err := handover.Kubeconfig(ctx, r.Client, r.Namespace, r.From)
	if err != nil {
		return nil, err
	}
	// Who may write the Secret must not run commands here.
	cfg, err := target.ParseKubeconfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig of Cluster API: %w: name another one by --target-kubeconfig", err)
	}
	return clientFor(cfg)
}
