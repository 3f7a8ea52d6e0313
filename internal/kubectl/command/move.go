package command

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/move"
)

// moveFlags of kubectl drover move.
type moveFlags struct {
	toKubeconfig, toContext    string
	toDirectory, fromDirectory string
	sourceIsGone               bool
	timeout                    time.Duration
}

func (f moveFlags) validate(namespace string) error {
	switch {
	case namespace == "":
		return fmt.Errorf("--namespace is required")
	case f.toKubeconfig == "" && f.toDirectory == "":
		return fmt.Errorf("either --to-kubeconfig or --to-directory is required")
	case f.toKubeconfig != "" && f.toDirectory != "":
		return fmt.Errorf("--to-kubeconfig and --to-directory exclude each other")
	case f.fromDirectory != "" && f.toDirectory != "":
		return fmt.Errorf("--from-directory needs --to-kubeconfig")
	case f.sourceIsGone && f.fromDirectory == "":
		return fmt.Errorf("--source-is-gone needs --from-directory: a source that can be reached releases its VMs itself")
	}
	if f.fromDirectory != "" {
		if info, err := os.Stat(f.fromDirectory); err != nil || !info.IsDir() {
			return fmt.Errorf("--from-directory: %q is no directory", f.fromDirectory)
		}
	}
	return nil
}

func (a *app) move() *cobra.Command {
	var f moveFlags
	cmd := &cobra.Command{
		Use:   "move --namespace NAMESPACE (--to-kubeconfig FILE | --to-directory DIRECTORY)",
		Short: "Take the Machines of a namespace to another control cluster, without touching a VM or a Node",
		Example: "  # To another control cluster\n  kubectl drover move --namespace team --to-kubeconfig new.kubeconfig\n\n" +
			"  # Save them, and restore them elsewhere\n  kubectl drover move --namespace team --to-directory backup/team\n" +
			"  kubectl drover move --namespace team --from-directory backup/team --to-kubeconfig new.kubeconfig",
		Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			namespace := *a.config.Namespace
			if err := f.validate(namespace); err != nil {
				return err
			}
			m := &move.Move{Namespace: namespace, SourceIsGone: f.sourceIsGone, Timeout: f.timeout, Log: a.log}
			var err error
			if f.fromDirectory == "" {
				if m.Source, err = a.connect(); err != nil {
					return fmt.Errorf("source: %w", err)
				}
			} else {
				saved, err := move.Load(f.fromDirectory, namespace)
				if err != nil {
					return err
				}
				m.Saved = &saved
			}
			if f.toDirectory != "" {
				o, err := move.Read(cmd.Context(), m.Source, namespace)
				if err != nil {
					return err
				}
				return move.Save(f.toDirectory, o)
			}
			if m.Destination, err = connectTo(f.toKubeconfig, f.toContext); err != nil {
				return fmt.Errorf("destination: %w", err)
			}
			return m.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.toKubeconfig, "to-kubeconfig", "", "The kubeconfig of the destination.")
	flags.StringVar(&f.toContext, "to-context", "", "The context of the destination. By default the current one of --to-kubeconfig.")
	flags.StringVar(&f.toDirectory, "to-directory", "", "Save the objects in a directory, which must be empty. Nothing is moved.")
	flags.StringVar(&f.fromDirectory, "from-directory", "", "Take objects that were saved in a directory to --to-kubeconfig.")
	flags.BoolVar(&f.sourceIsGone, "source-is-gone", false, "With --from-directory: the control cluster that the objects were saved in runs nowhere any more, so that its VMs may be taken over.")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "How long each step may take.")
	_ = cmd.MarkFlagDirname("to-directory")
	_ = cmd.MarkFlagDirname("from-directory")
	return cmd
}

func (a *app) importVMs() *cobra.Command {
	set := ""
	cmd := &cobra.Command{
		Use:   "import EXTERNAL-NAME... --namespace NAMESPACE --machine-set NAME",
		Short: "Make orphans Machines of a MachineSet again, without touching a VM or a Node",
		Long: "Make orphans Machines of a MachineSet again, without touching a VM or a Node. The arguments are the VMs, by status.virtualMachines[].externalName of the OrphanCollector that reports " +
			"them. The replicas of the MachineSet must have room for them.",
		Example: "  kubectl drover import -n team --machine-set web-x7k2p vm-0123456789 vm-9876543210",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if *a.config.Namespace == "" {
				return fmt.Errorf("--namespace is required")
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			i := move.Import{Client: c, Namespace: *a.config.Namespace, Set: set, VMs: args, Log: a.log}
			return i.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&set, "machine-set", "", "The MachineSet that adopts the Machines. Its replicas must have room for them.")
	_ = cmd.MarkFlagRequired("machine-set")
	cmd.AddCommand(a.importCAPI(), a.importMCM())
	return cmd
}

func (a *app) log(format string, args ...any) { fmt.Fprintf(a.Out, format+"\n", args...) }
