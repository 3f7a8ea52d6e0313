package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/kubectl/collect"
	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
	"github.com/drover-dev/drover/internal/kubectl/render"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

// interval between two reads.
const interval = 2 * time.Second

const exitCodes = `

Exit codes: 0 complete, 1 error, 2 in progress, 3 a user must act.`

// read reads a view for one object, or for all.
func (a *app) read(ctx context.Context, all bool, o collect.Options) (*view.View, error) {
	c, err := a.connect()
	if err != nil {
		return nil, err
	}
	if !all {
		if o.Namespace, err = a.namespace(); err != nil {
			return nil, err
		}
	}
	return collect.View(ctx, c, a.now(), o)
}

// optionalRef is the object that the arguments name, nil if they name none.
func (a *app) optionalRef(args []string) (*view.Ref, error) {
	if len(args) == 0 {
		return nil, nil
	}
	ns, err := a.namespace()
	if err != nil {
		return nil, err
	}
	all, err := refs(args, ns, view.NodePool, view.MachineDeployment, view.MachineSet, view.Machine)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("name one object, not %d", len(all))
	}
	return &all[0], nil
}

func (a *app) status() *cobra.Command {
	var all, watch bool
	var o output
	var target targetFlag
	cmd := &cobra.Command{
		Use:   "status [(KIND NAME | KIND/NAME)] [-A] [--watch]",
		Short: "Show how far pools and Machines are, what blocks them, and what to do next",
		Long: "Show on one screen how far NodePools, MachineDeployments, MachineSets and Machines are, what blocks them, and what to do next.\n\n" +
			"The NodeClaims of Karpenter are read from the cluster of --target-context, or from this one if the Machines join it." + exitCodes,
		Example: "  # All of the namespace\n  kubectl drover status\n\n  # One MachineDeployment, until it is complete\n  kubectl drover status md workers --watch\n\n" +
			"  # Of all namespaces, for a script\n  kubectl drover status -A -o json",
		Args: cobra.MaximumNArgs(2), ValidArgsFunction: a.completeRefs(view.NodePool, view.MachineDeployment, view.MachineSet, view.Machine),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := a.optionalRef(args)
			switch {
			case err != nil:
				return err
			case all && ref != nil:
				return fmt.Errorf("-A and the name of an object exclude each other")
			}
			cluster, err := target.connect()
			if err != nil {
				return err
			}
			look := func(ctx context.Context) (diagnosis.Report, error) {
				v, err := a.read(ctx, all, collect.Options{Resources: true, NotRunning: true, NodeClaims: true, Target: cluster})
				if err != nil {
					return diagnosis.Report{}, err
				}
				return diagnosis.Status(v, ref, a.now())
			}
			if watch {
				return a.watch(cmd.Context(), o, look)
			}
			r, err := look(cmd.Context())
			if err == nil {
				err = o.write(a.Out, r, func() string { return a.screen(o.format == "wide").Status(r) })
			}
			return exit(r.State, err)
		},
	}
	o.add(cmd)
	target.add(cmd)
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "Show all namespaces.")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "Show changes until all is complete.")
	return cmd
}

// exit with the code of a state.
func exit(s diagnosis.State, err error) error {
	if err != nil {
		return err
	}
	if code := s.ExitCode(); code != 0 {
		return ExitError{code}
	}
	return nil
}

// watch shows the state until it is complete. On a terminal it redraws the screen, elsewhere it appends each
// change.
func (a *app) watch(ctx context.Context, o output, look func(context.Context) (diagnosis.Report, error)) error {
	last := ""
	for {
		r, err := look(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // The user ended it.
			}
			return err
		}
		screen := a.screen(o.format == "wide")
		if !render.IsTerminal(a.Out) {
			// With ages, each screen would differ.
			screen.Now = time.Time{}
		}
		b := &strings.Builder{}
		if err := o.write(b, r, func() string { return screen.Status(r) }); err != nil {
			return err
		}
		if text := b.String(); text != last {
			a.replaceScreen(text)
			last = text
		}
		if r.State == diagnosis.Complete {
			return nil
		}
		select {
		case <-ctx.Done():
			return exit(r.State, nil)
		case <-time.After(interval):
		}
	}
}

func (a *app) replaceScreen(text string) {
	if render.IsTerminal(a.Out) {
		// Each line clears the rest of the one that it replaces.
		text = "\x1b[H" + strings.ReplaceAll(text, "\n", "\x1b[K\n") + "\x1b[J"
	}
	fmt.Fprint(a.Out, text)
}

// A targetFlag names the target cluster.
type targetFlag struct{ kubeconfig, context string }

func (f *targetFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.kubeconfig, "target-kubeconfig", "", "The kubeconfig of the target cluster, to read what is there too.")
	cmd.Flags().StringVar(&f.context, "target-context", "", "The context of the target cluster, to read what is there too.")
}

// connect to the target cluster, nil if the user names none.
func (f *targetFlag) connect() (client.Client, error) {
	if f.kubeconfig == "" && f.context == "" {
		return nil, nil
	}
	c, err := connectTo(f.kubeconfig, f.context)
	if err != nil {
		return nil, fmt.Errorf("target cluster: %w", err)
	}
	return c, nil
}

func (a *app) why() *cobra.Command {
	var o output
	var target targetFlag
	cmd := &cobra.Command{
		Use:   "why (KIND NAME | KIND/NAME)",
		Short: "Explain one object: cause and cure first, then all that happened",
		Long: "Explain one Machine, MachineSet, MachineDeployment or NodePool: cause and cure first, then its VM, join token, certificates, Node, conditions, and all events on one timeline.\n\n" +
			"The Node and the certificate requests are read from the cluster of --target-context, or from this one if the Machines join it." + exitCodes,
		Example: "  kubectl drover why ma/workers-x7k2p-4mzq9\n\n  # With the Node and the certificate requests of another cluster\n  kubectl drover why ma/workers-x7k2p-4mzq9 --target-context=prod",
		Args:    objects(1), ValidArgsFunction: a.completeRefs(view.Machine, view.MachineDeployment, view.MachineSet, view.NodePool),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := a.optionalRef(args)
			if err != nil {
				return err
			}
			options := collect.Options{Resources: true, Names: []string{}, Events: true}
			if ref.Kind == view.Machine {
				options.Names, options.Nodes, options.NodeClaims, options.Tokens = []string{ref.Name}, true, true, true
			}
			if options.Target, err = target.connect(); err != nil {
				return err
			}
			v, err := a.read(cmd.Context(), false, options)
			if err != nil {
				return err
			}
			answer, err := diagnosis.Why(v, *ref, a.now())
			if err == nil {
				err = o.write(a.Out, answer, func() string { return a.screen(o.format == "wide").Why(answer) })
			}
			return exit(answer.State, err)
		},
	}
	o.add(cmd)
	target.add(cmd)
	return cmd
}

func (a *app) history() *cobra.Command {
	var all bool
	var o output
	cmd := &cobra.Command{
		Use:   "history [(KIND NAME | KIND/NAME)] [-A]",
		Short: "Show why Machines were replaced: when, for which reason, by whom, and how long the drain took",
		Long: "Show the last ten replacements of NodePools, MachineDeployments and MachineSets, oldest first: the Node, the time, the reason, the user or the rule that caused it, and how long " +
			"the drain took. They are in status.replacements, which outlives events.\n\nA replacement is the deletion of a Machine with a Node although the pool did not shrink. Scale-downs, and Machines that " +
			"never had a Node, are not listed.",
		Example: "  # Why was my Node replaced last night?\n  kubectl drover history np/web\n\n  # All of the namespace\n  kubectl drover history\n\n  # For a script\n  kubectl drover history md/workers -o json",
		Args:    cobra.MaximumNArgs(2), ValidArgsFunction: a.completeRefs(view.NodePool, view.MachineDeployment, view.MachineSet),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := a.optionalRef(args)
			switch {
			case err != nil:
				return err
			case all && ref != nil:
				return fmt.Errorf("-A and the name of an object exclude each other")
			case ref != nil && ref.Kind == view.Machine:
				return fmt.Errorf("a Machine has no history of its own: name its NodePool, MachineDeployment or MachineSet")
			}
			v, err := a.read(cmd.Context(), all, collect.Options{})
			if err != nil {
				return err
			}
			list, err := diagnosis.Replacements(v, ref)
			if err != nil {
				return err
			}
			return o.write(a.Out, list, func() string { return a.screen(o.format == "wide").Replacements(list) })
		},
	}
	o.add(cmd)
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "Show all namespaces.")
	return cmd
}

func (a *app) tree() *cobra.Command {
	var all bool
	var o output
	cmd := &cobra.Command{
		Use:     "tree [(KIND NAME | KIND/NAME)]",
		Short:   "Show objects with all that is below them, down to VMs and Nodes",
		Long:    "Show NodePools, MachineDeployments, MachineSets and Machines as a tree, with the VM, its companions, the Secret of the join token and the Node of each Machine.",
		Example: "  kubectl drover tree\n\n  kubectl drover tree md/workers",
		Args:    cobra.MaximumNArgs(2), ValidArgsFunction: a.completeRefs(view.NodePool, view.MachineDeployment, view.MachineSet, view.Machine),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := a.optionalRef(args)
			if err != nil {
				return err
			}
			v, err := a.read(cmd.Context(), all, collect.Options{Resources: true, Tokens: true})
			if err != nil {
				return err
			}
			branches, err := diagnosis.Tree(v, ref, a.now())
			if err != nil {
				return err
			}
			return o.write(a.Out, branches, func() string { return a.screen(o.format == "wide").Tree(branches) })
		},
	}
	o.add(cmd)
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "Show all namespaces.")
	return cmd
}
