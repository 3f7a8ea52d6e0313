package command

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/handover"
)

func (a *app) importMCM() *cobra.Command {
	return a.importFrom(importSource{
		system: handover.MCM, command: "mcm", title: "machine-controller-manager",
		long: "Take over the Machines of a MachineDeployment of gardener's machine-controller-manager, without touching a VM, draining a Node or restarting a pod. Everything is checked before the first change, and each obstacle is named. " +
			"A command that was interrupted is run again. --undo gives the Machines back as they were.\n\nThe MachineDeployment of Drover must exist in the same namespace, with a class of the cloud of the VMs: " +
			"Alibaba Cloud, AWS, Hetzner Cloud or OpenStack. The VMs are known by the providerID of their Nodes.\n\nThe controllers of machine-controller-manager must be stopped meanwhile. Its Machines stay as objects without a MachineSet and a Node. " +
			"Keep each of them as long as its VM exists and machine-controller-manager may run: it deletes each VM that has its tags and no Machine.",
		undo:        "Give the Machines back to machine-controller-manager, with the owners, labels and replicas that they had.",
		differences: "Take over VMs whose Nodes show another instance type than the class has. The next rollout replaces them.",
		kubeconfig:  "that of the Machines.",
		mayConfirm:  true,
		connect:     func(_ context.Context, r handover.Run) (client.Client, error) { return r.Client, nil },
	})
}
