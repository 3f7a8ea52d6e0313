package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/handover"
	"github.com/drover-dev/drover/internal/kubectl/view"
	"github.com/drover-dev/drover/internal/target"
)

// importCAPIFlags of kubectl drover import capi.
type importCAPIFlags struct {
	to, dryRun                string
	undo, differences         bool
	targetKubeconfig, context string
	timeout                   time.Duration
}

func (f importCAPIFlags) validate() error {
	switch {
	case f.dryRun != "none" && f.dryRun != "client":
		return fmt.Errorf("--dry-run=%s: must be none or client", f.dryRun)
	case f.undo && (f.to != "" || f.differences):
		return fmt.Errorf("--undo goes with neither --to nor --accept-differences: the objects know where they came from")
	case !f.undo && f.to == "":
		return fmt.Errorf("--to md/NAME is required: the MachineDeployment of Drover that gets the Machines")
	case f.context != "" && f.targetKubeconfig == "":
		return fmt.Errorf("--target-context needs --target-kubeconfig")
	case f.timeout <= 0:
		return fmt.Errorf("--timeout=%s: must be positive", f.timeout)
	}
	return nil
}

func (a *app) importCAPI() *cobra.Command {
	f := importCAPIFlags{}
	cmd := &cobra.Command{
		Use:   "capi NAME --to md/NAME",
		Short: "Take over the Machines of a MachineDeployment of Cluster API, or give them back, without touching a VM or a Node",
		Long: "Take over the Machines of a MachineDeployment of Cluster API with their InfraMachines, without touching a VM or a Node. Everything is checked before the first change, and each obstacle is named. " +
			"A command that was interrupted is run again. --undo gives the Machines back as they were.\n\nThe MachineDeployment of Drover must exist in the same namespace, with a class of the provider clusterapi. " +
			"Cluster API's controllers may run: they leave alone what is paused for them.",
		Example: "  # What would be done?\n  kubectl drover import capi workers --to md/workers --dry-run\n\n  # Do it\n  kubectl drover import capi workers --to md/workers\n\n" +
			"  # Give the Machines back to Cluster API\n  kubectl drover import capi workers --undo",
		Args: oneDeploymentOfClusterAPI, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.validate(); err != nil {
				return err
			}
			r := handover.Run{From: args[0], To: f.to, Undo: f.undo, Differences: f.differences, Timeout: f.timeout, Log: a.log}
			var err error
			if r.Namespace, err = a.namespace(); err != nil {
				return err
			}
			if strings.Contains(f.to, "/") {
				to, err := refs([]string{f.to}, r.Namespace, view.MachineDeployment)
				if err != nil {
					return fmt.Errorf("--to: %w", err)
				}
				r.To = to[0].Name
			}
			if r.Client, err = a.connect(); err != nil {
				return err
			}
			if r.Target, err = f.connect(cmd.Context(), r); err != nil {
				return fmt.Errorf("target cluster: %w", err)
			}
			if f.dryRun == "client" {
				return r.Preview(cmd.Context())
			}
			return r.Do(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "The MachineDeployment of Drover that gets the Machines, as md/NAME.")
	flags.BoolVar(&f.undo, "undo", false, "Give the Machines back to Cluster API, with the owners, labels and pauses that they had.")
	flags.BoolVar(&f.differences, "accept-differences", false, "Take over VMs that differ from spec.forProvider.infraMachine.spec of the class. The next rollout replaces them.")
	flags.StringVar(&f.dryRun, "dry-run", "none", `Must be "none" or "client". With "client", which --dry-run alone means, the steps are shown and nothing is changed.`)
	flags.Lookup("dry-run").NoOptDefVal = "client"
	flags.StringVar(&f.targetKubeconfig, "target-kubeconfig", "", "A kubeconfig of the cluster that has the Nodes. By default that of Cluster API, in the Secret CLUSTER-kubeconfig.")
	flags.StringVar(&f.context, "target-context", "", "The context of --target-kubeconfig. By default its current one.")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "How long each wait may take.")
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"none", "client"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("to", a.completeRefs(view.MachineDeployment))
	return cmd
}

func oneDeploymentOfClusterAPI(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || strings.Contains(args[0], "/") {
		return fmt.Errorf("%q: name one MachineDeployment of Cluster API, without its kind: %s", args, cmd.UseLine())
	}
	return nil
}

// connect to the cluster of the Nodes.
func (f importCAPIFlags) connect(ctx context.Context, r handover.Run) (client.Client, error) {
	if f.targetKubeconfig != "" {
		return connectTo(f.targetKubeconfig, f.context)
	}
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
