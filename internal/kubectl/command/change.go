package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/action"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

// fieldManager of all that kubectl drover writes.
const fieldManager = "kubectl-drover"

// A change carries changes out, with the flags and the output of kubectl.
type change struct {
	*app
	print  *genericclioptions.PrintFlags
	dryRun string
}

func (a *app) newChange(done string) *change {
	return &change{app: a, print: genericclioptions.NewPrintFlags(done).WithTypeSetter(Scheme), dryRun: "none"}
}

func (f *change) add(cmd *cobra.Command) {
	f.print.AddFlags(cmd)
	cmd.Flags().StringVar(&f.dryRun, "dry-run", "none", `Must be "none" or "server". With "server", the API server checks the change and keeps nothing.`)
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"none", "server"}, cobra.ShellCompDirectiveNoFileComp))
}

// each object is changed, in their order.
func (f *change) each(ctx context.Context, all []*machinev1alpha1.MachineDeployment, decide func(*machinev1alpha1.MachineDeployment) (action.Change, error)) error {
	for _, d := range all {
		c, err := decide(d)
		if err == nil {
			err = f.carryOut(ctx, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// carryOut one change, and print the object.
func (f *change) carryOut(ctx context.Context, c action.Change) error {
	if f.dryRun != "none" && f.dryRun != "server" {
		return fmt.Errorf("--dry-run=%s: it must be none or server", f.dryRun)
	}
	cl, err := f.connect()
	if err != nil {
		return err
	}
	done := c.Done
	if f.dryRun == "server" {
		cl, done = client.NewDryRunClient(cl), done+" (server dry run)"
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(machinev1alpha1.SchemeGroupVersion.WithKind(c.Kind))
	o.SetNamespace(c.Namespace)
	o.SetName(c.Name)
	if c.Patch != nil {
		if err := cl.Patch(ctx, o, client.RawPatch(types.MergePatchType, c.Patch), client.FieldOwner(fieldManager)); err != nil {
			return err
		}
	}
	if c.Delete {
		if err := cl.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	f.print.NamePrintFlags.Operation = done
	var p printers.ResourcePrinter
	if p, err = f.print.ToPrinter(); err != nil {
		return err
	}
	if err := p.PrintObj(o, f.Out); err != nil {
		return err
	}
	if c.Note != "" && (f.print.OutputFormat == nil || *f.print.OutputFormat == "") {
		fmt.Fprintln(f.ErrOut, c.Note)
	}
	return nil
}

// changeCommand changes the objects that it names, of some kinds.
func (a *app) changeCommand(cmd *cobra.Command, done string, kinds []string, decide func(*view.View, view.Ref) ([]action.Change, error)) *cobra.Command {
	f := a.newChange(done)
	cmd.Args, cmd.ValidArgsFunction = objects(anyNumber), a.completeRefs(kinds...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		v, all, err := a.named(cmd.Context(), args, kinds...)
		if err != nil {
			return err
		}
		for _, ref := range all {
			changes, err := decide(v, ref)
			if err != nil {
				return err
			}
			for _, c := range changes {
				if err := f.carryOut(cmd.Context(), c); err != nil {
					return err
				}
			}
		}
		return nil
	}
	f.add(cmd)
	return cmd
}

// one is the list of one change.
func one(c action.Change, err error) ([]action.Change, error) {
	if err != nil {
		return nil, err
	}
	return []action.Change{c}, nil
}

// machineCommand changes the Machines that it names.
func (a *app) machineCommand(cmd *cobra.Command, done string, decide func(*machinev1alpha1.Machine) (action.Change, error)) *cobra.Command {
	return a.changeCommand(cmd, done, []string{view.Machine}, func(v *view.View, ref view.Ref) ([]action.Change, error) {
		m := v.Machine(ref.Namespace, ref.Name)
		if m == nil {
			return nil, view.NotFound(ref)
		}
		return one(decide(m))
	})
}

func (a *app) drain() *cobra.Command {
	var o action.Drain
	cmd := a.machineCommand(&cobra.Command{
		Use:   "drain (ma NAME | ma/NAME) (--delete | --force | --skip | --undo)",
		Short: "Drain the Node of a Machine and delete the Machine, or end a drain that is blocked",
		Long: "Drain the Node of a Machine and delete the Machine with its VM (--delete), or decide about a drain that is under way: --force deletes pods without regard to their budgets, " +
			"--skip deletes the Node with its pods, --undo takes either back. Drover drains a Node when its Machine is deleted: it empties no Node that stays.",
		Example: "  # Drain a Node by its budgets, and delete the Machine. Its set creates another.\n  kubectl drover drain ma/workers-x7k2p-4mzq9 --delete\n\n" +
			"  # A PodDisruptionBudget blocks the drain\n  kubectl drover drain ma/workers-x7k2p-4mzq9 --force",
	}, "drained", func(m *machinev1alpha1.Machine) (action.Change, error) { return action.DrainMachine(m, o) })
	cmd.Flags().BoolVar(&o.Delete, "delete", false, "Delete the Machine. Its Node is drained first, by its PodDisruptionBudgets and spec.drain.")
	cmd.Flags().BoolVar(&o.Force, "force", false, "Delete the pods that are left without regard to their budgets.")
	cmd.Flags().BoolVar(&o.Skip, "skip", false, "Do not drain: the Node is deleted with its pods.")
	cmd.Flags().BoolVar(&o.Undo, "undo", false, "Take --force and --skip back.")
	return cmd
}

// user returns the name by which the API server knows the user, "" if it is not known.
func (a *app) user(ctx context.Context) string {
	c, err := a.connect()
	if err != nil {
		return "" // The command itself reports it.
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}

func (a *app) replace() *cobra.Command {
	undo, user := false, ""
	cmd := a.machineCommand(&cobra.Command{
		Use:   "replace (ma NAME | ma/NAME) [--undo]",
		Short: "Ask for another Machine in place of this one",
		Long: "Ask for another Machine in place of this one. The set replaces it within spec.remediation: with the order CreateFirst it is kept until the other is available.\n\n" +
			"Your user name is recorded in the annotation " + machinev1alpha1.AnnotationReplaceRequestedBy + ", and later in status.replacements of the pool.",
		Example: "  kubectl drover replace ma/workers-x7k2p-4mzq9\n\n  # Call it off\n  kubectl drover replace ma/workers-x7k2p-4mzq9 --undo",
	}, "replaced", func(m *machinev1alpha1.Machine) (action.Change, error) { return action.Replace(m, user, undo) })
	cmd.PreRun = func(cmd *cobra.Command, _ []string) {
		if !undo {
			user = a.user(cmd.Context())
		}
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "Call the replacement off.")
	return cmd
}

func (a *app) reboot() *cobra.Command {
	o, drain := action.Reboot{}, "Default"
	cmd := a.machineCommand(&cobra.Command{
		Use:   "reboot (ma NAME | ma/NAME) [--drain=Never] [--undo]",
		Short: "Reboot the VM of a Machine",
		Long: "Reboot the VM of a Machine: its Node is cordoned and drained, the operating system is asked to restart, and the VM is reset if that is refused or shows nothing. " +
			"The reboot has succeeded when the Node reports another boot ID and is healthy. The Machine keeps its VM and its Node. There are clouds whose VMs Drover cannot reboot.",
		Example: "  kubectl drover reboot ma/workers-x7k2p-4mzq9\n\n  # A Node that is wedged cannot be drained\n  kubectl drover reboot ma/workers-x7k2p-4mzq9 --drain=Never\n\n" +
			"  # Call it off, before the VM is rebooted\n  kubectl drover reboot ma/workers-x7k2p-4mzq9 --undo",
	}, "rebooted", func(m *machinev1alpha1.Machine) (action.Change, error) {
		if drain != "Default" && drain != machinev1alpha1.RebootDrainNever {
			return action.Change{}, fmt.Errorf("--drain=%s: must be Default or %s", drain, machinev1alpha1.RebootDrainNever)
		}
		o.SkipDrain = drain == machinev1alpha1.RebootDrainNever
		return action.RebootMachine(m, o)
	})
	cmd.Flags().StringVar(&drain, "drain", drain, `Must be "Default" or "Never". With "Never", the Node is cordoned and its pods stay on it.`)
	cmd.Flags().StringVar(&o.ID, "id", time.Now().UTC().Format("20060102-150405"), "ID of the request. A Machine is rebooted once for each ID. The default is the current time.")
	cmd.Flags().BoolVar(&o.Undo, "undo", false, "Withdraw the request. It has no effect once the VM is rebooted.")
	_ = cmd.RegisterFlagCompletionFunc("drain", cobra.FixedCompletions([]string{"Default", machinev1alpha1.RebootDrainNever}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) preserve() *cobra.Command {
	undo, whenFailed := false, false
	cmd := a.machineCommand(&cobra.Command{
		Use:     "preserve (ma NAME | ma/NAME) [--when-failed | --undo]",
		Short:   "Keep a Machine for analysis",
		Long:    "Keep a Machine for analysis, for spec.preserve.timeout: nothing replaces it meanwhile.",
		Example: "  # From now on\n  kubectl drover preserve ma/workers-x7k2p-4mzq9\n\n  # Once it fails\n  kubectl drover preserve ma/workers-x7k2p-4mzq9 --when-failed\n\n  # No more\n  kubectl drover preserve ma/workers-x7k2p-4mzq9 --undo",
	}, "preserved", func(m *machinev1alpha1.Machine) (action.Change, error) { return action.Preserve(m, whenFailed, undo) })
	cmd.Flags().BoolVar(&whenFailed, "when-failed", false, "Keep it from the moment that it fails.")
	cmd.Flags().BoolVar(&undo, "undo", false, "Keep it no more.")
	return cmd
}

func (a *app) freeze() *cobra.Command {
	undo := false
	cmd := a.changeCommand(&cobra.Command{
		Use:     "freeze (KIND NAME | KIND/NAME) [--undo]",
		Short:   "Hold the creation and the replacement of Machines",
		Long:    "Hold the creation and the replacement of Machines of a MachineDeployment, of a MachineSet that stands alone, or of all MachineDeployments of a NodePool. Scaling down and deletions go on.",
		Example: "  kubectl drover freeze md/workers\n\n  # Let it go on\n  kubectl drover freeze md/workers --undo",
	}, "frozen", []string{view.MachineDeployment, view.MachineSet, view.NodePool},
		func(v *view.View, ref view.Ref) ([]action.Change, error) { return action.Freeze(v, ref, undo) })
	cmd.Flags().BoolVar(&undo, "undo", false, "Let Machines be created and replaced again.")
	return cmd
}
