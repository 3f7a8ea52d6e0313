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
)

// An importSource is a system whose MachineDeployments kubectl drover import takes over.
type importSource struct {
	system handover.System
	// command and title name the system, and long describes the import.
	command, title string
	long           string
	// differences, kubeconfig and undo describe these flags.
	differences, kubeconfig, undo string
	// mayConfirm means that a user may confirm that the controllers are stopped.
	mayConfirm bool
	// connect to the cluster of the Nodes if no flag names it.
	connect func(context.Context, handover.Run) (client.Client, error)
}

// importFlags of the commands that import from another system.
type importFlags struct {
	to, dryRun                   string
	undo, differences, confirmed bool
	targetKubeconfig, context    string
	timeout                      time.Duration
}

func (f importFlags) validate() error {
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

// importFrom is the command that imports from a system.
func (a *app) importFrom(s importSource) *cobra.Command {
	f := importFlags{}
	use := "kubectl drover import " + s.command
	cmd := &cobra.Command{
		Use:   s.command + " NAME --to md/NAME",
		Short: "Take over the Machines of a MachineDeployment of " + s.title + ", or give them back, without touching a VM or a Node",
		Long:  s.long,
		Example: "  # What would be done?\n  " + use + " workers --to md/workers --dry-run\n\n  # Do it\n  " + use + " workers --to md/workers\n\n" +
			"  # Give the Machines back to " + s.title + "\n  " + use + " workers --undo",
		Args: oneDeploymentOf(s.title), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.validate(); err != nil {
				return err
			}
			r := handover.Run{System: s.system, From: args[0], To: f.to, Undo: f.undo, Differences: f.differences, Confirmed: f.confirmed, Timeout: f.timeout, Log: a.log}
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
			if r.Target, err = f.connect(cmd.Context(), s, r); err != nil {
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
	flags.BoolVar(&f.undo, "undo", false, s.undo)
	flags.BoolVar(&f.differences, "accept-differences", false, s.differences)
	if s.mayConfirm {
		flags.BoolVar(&f.confirmed, "controllers-are-stopped", false, "The controllers of "+s.title+" run nowhere any more, although no Lease in the namespace shows it.")
	}
	flags.StringVar(&f.dryRun, "dry-run", "none", `Must be "none" or "client". With "client", which --dry-run alone means, the steps are shown and nothing is changed.`)
	flags.Lookup("dry-run").NoOptDefVal = "client"
	flags.StringVar(&f.targetKubeconfig, "target-kubeconfig", "", "A kubeconfig of the cluster that has the Nodes. By default "+s.kubeconfig)
	flags.StringVar(&f.context, "target-context", "", "The context of --target-kubeconfig. By default its current one.")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "How long each wait may take.")
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"none", "client"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("to", a.completeRefs(view.MachineDeployment))
	return cmd
}

func oneDeploymentOf(title string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 || strings.Contains(args[0], "/") {
			return fmt.Errorf("%q: name one MachineDeployment of %s, without its kind: %s", args, title, cmd.UseLine())
		}
		return nil
	}
}

// connect to the cluster of the Nodes.
func (f importFlags) connect(ctx context.Context, s importSource, r handover.Run) (client.Client, error) {
	if f.targetKubeconfig != "" {
		return connectTo(f.targetKubeconfig, f.context)
	}
	return s.connect(ctx, r)
}
