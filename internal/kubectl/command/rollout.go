package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/action"
	"github.com/drover-dev/drover/internal/kubectl/collect"
	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

func (a *app) rollout() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rollout SUBCOMMAND",
		Short:   "Manage rollouts of MachineDeployments, as kubectl rollout does of Deployments",
		Example: "  kubectl drover rollout status md/workers\n\n  kubectl drover rollout undo md/workers --to-revision=3",
	}
	cmd.AddCommand(a.revisions(), a.undo(), a.pause(), a.resume(), a.restart(), a.rolloutStatus(), a.approve(), a.hold(), a.abort(), a.retry(), a.pass())
	return cmd
}

// deployments that the arguments name.
func (a *app) deployments(ctx context.Context, args []string) (*view.View, []*machinev1alpha1.MachineDeployment, error) {
	v, all, err := a.named(ctx, args, view.MachineDeployment)
	if err != nil {
		return nil, nil, err
	}
	var out []*machinev1alpha1.MachineDeployment
	for _, ref := range all {
		d := v.Deployment(ref.Namespace, ref.Name)
		if d == nil {
			return nil, nil, view.NotFound(ref)
		}
		out = append(out, d)
	}
	return v, out, nil
}

// named reads the namespace, and parses the arguments.
func (a *app) named(ctx context.Context, args []string, kinds ...string) (*view.View, []view.Ref, error) {
	ns, err := a.namespace()
	if err != nil {
		return nil, nil, err
	}
	all, err := refs(args, ns, kinds...)
	if err != nil {
		return nil, nil, err
	}
	v, err := a.read(ctx, false, collect.Options{})
	return v, all, err
}

func (a *app) revisions() *cobra.Command {
	var o output
	var revision int64
	cmd := &cobra.Command{
		Use:   "history (KIND NAME | KIND/NAME)",
		Short: "Show the revisions of a MachineDeployment or NodePool",
		Long:  "Show the revisions of a MachineDeployment, or of each MachineDeployment of a NodePool. Each of these counts its revisions by itself.",
		Example: "  kubectl drover rollout history md/workers\n\n  # All of one revision\n  kubectl drover rollout history md/workers --revision=3\n\n" +
			"  # Of each failure domain of a pool\n  kubectl drover rollout history np/web",
		Args: objects(1), ValidArgsFunction: a.completeRefs(view.MachineDeployment, view.NodePool),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, all, err := a.named(cmd.Context(), args, view.MachineDeployment, view.NodePool)
			if err != nil {
				return err
			}
			entries, err := action.HistoryOf(v, all[0], revision)
			if err != nil {
				return err
			}
			return o.write(a.Out, entries, func() string { return a.screen(o.format == "wide").History(entries, revision != 0) })
		},
	}
	o.add(cmd)
	cmd.Flags().Int64Var(&revision, "revision", 0, "Show all of this revision.")
	return cmd
}

func (a *app) undo() *cobra.Command {
	var o action.Undo
	f := a.newChange("rolled back")
	cmd := &cobra.Command{
		Use:   "undo (md NAME | md/NAME) [--to-revision=N]",
		Short: "Roll back to an earlier revision",
		Long: "Roll back to an earlier revision: its class, version, cluster, failure domain, labels and annotations are written into the template, as kubectl rollout undo does.\n\n" +
			"With --hold, spec.rollbackTo is set instead: it holds although a GitOps tool writes the template again, until --release.",
		Example: "  kubectl drover rollout undo md/workers\n\n  # A certain revision, in spite of a GitOps tool\n  kubectl drover rollout undo md/workers --to-revision=3 --hold",
		Args:    objects(1), ValidArgsFunction: a.completeRefs(view.MachineDeployment),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, all, err := a.deployments(cmd.Context(), args)
			if err != nil {
				return err
			}
			return f.each(cmd.Context(), all, func(d *machinev1alpha1.MachineDeployment) (action.Change, error) { return action.UndoRollout(d, o) })
		},
	}
	cmd.Flags().Int64Var(&o.ToRevision, "to-revision", 0, "The revision to roll back to. 0 is the one before the current one.")
	cmd.Flags().BoolVar(&o.Hold, "hold", false, "Set spec.rollbackTo, and leave the template as it is.")
	cmd.Flags().BoolVar(&o.Release, "release", false, "Remove spec.rollbackTo, so that the template is rolled out again.")
	cmd.MarkFlagsMutuallyExclusive("hold", "release")
	cmd.MarkFlagsMutuallyExclusive("to-revision", "release")
	f.add(cmd)
	return cmd
}

func (a *app) pause() *cobra.Command {
	return a.held("pause", "Hold the rollouts of a MachineDeployment or NodePool", "paused", action.Pause)
}

func (a *app) resume() *cobra.Command {
	return a.held("resume", "Let held rollouts go on", "resumed", action.Resume)
}

func (a *app) held(name, short, done string, decide func(*view.View, view.Ref) (action.Change, error)) *cobra.Command {
	return a.requested(&cobra.Command{
		Use:     name + " (KIND NAME | KIND/NAME)",
		Short:   short,
		Long:    short + ". Scaling, and replacing Machines that failed, go on during a pause.",
		Example: fmt.Sprintf("  kubectl drover rollout %s md/workers\n\n  kubectl drover rollout %s np/web", name, name),
	}, done, func(v *view.View, ref view.Ref) ([]action.Change, error) { return one(decide(v, ref)) })
}

// requested is a command that changes the rollouts of MachineDeployments, or of those of NodePools.
func (a *app) requested(cmd *cobra.Command, done string, decide func(*view.View, view.Ref) ([]action.Change, error)) *cobra.Command {
	return a.changeCommand(cmd, done, []string{view.MachineDeployment, view.NodePool}, decide)
}

func (a *app) approve() *cobra.Command {
	return a.requested(&cobra.Command{
		Use:   "approve (KIND NAME | KIND/NAME)",
		Short: "Approve the step of a rollout, so that the next one may begin",
		Long: "Approve the step of spec.strategy.rollingUpdate.steps that a rollout is at. The annotation " + machinev1alpha1.AnnotationRolloutApprove +
			" names the rollout and the step: a change of the template voids it. Of a NodePool, the rollouts of all its failure domains that wait are approved.",
		Example: "  kubectl drover rollout approve md/workers",
	}, "approved", action.Approve)
}

func (a *app) hold() *cobra.Command {
	undo, reason := false, ""
	cmd := a.requested(&cobra.Command{
		Use:   "hold (KIND NAME | KIND/NAME) [--reason TEXT | --undo]",
		Short: "Hold the rollouts of a MachineDeployment or NodePool, without a change of their spec",
		Long: "Hold the rollouts of a MachineDeployment or NodePool by the annotation " + machinev1alpha1.AnnotationRolloutHold +
			". Scaling, and replacing Machines that failed, go on. Unlike a pause it changes no spec, so that a GitOps tool does not end it, and the cluster-autoscaler goes on.",
		Example: "  kubectl drover rollout hold md/workers --reason='incident 42'\n\n  kubectl drover rollout hold md/workers --undo",
	}, "held", func(v *view.View, ref view.Ref) ([]action.Change, error) { return action.Hold(v, ref, reason, undo) })
	cmd.Flags().StringVar(&reason, "reason", "", "Cause of the hold, for those who read the status.")
	cmd.Flags().BoolVar(&undo, "undo", false, "Let the rollouts continue.")
	cmd.MarkFlagsMutuallyExclusive("reason", "undo")
	return cmd
}

func (a *app) abort() *cobra.Command {
	return a.requested(&cobra.Command{
		Use:   "abort (KIND NAME | KIND/NAME)",
		Short: "Reject the template that is rolled out, and go back to the last revision that was complete",
		Long: "Reject the template that is rolled out, and go back to the last revision that was complete. The spec does not change: the template is rejected until it is another one, or until " +
			"kubectl drover rollout retry. The way back waits for no step and no window.",
		Example: "  kubectl drover rollout abort md/workers",
	}, "aborted", action.Abort)
}

func (a *app) retry() *cobra.Command {
	return a.requested(&cobra.Command{
		Use:     "retry (KIND NAME | KIND/NAME)",
		Short:   "Roll a rejected template out again, or begin a step again whose analysis failed",
		Long:    "Roll a rejected template out again, from the first step on. If an analysis of a step failed, or has no verdict after its timeout, that step begins again, with its analyses.",
		Example: "  kubectl drover rollout retry md/workers",
	}, "retried", action.Retry)
}

func (a *app) pass() *cobra.Command {
	f := a.newChange("passed")
	cmd := &cobra.Command{
		Use:   "pass POLICY WAVE",
		Short: "Let the rollouts of later waves of a RolloutPolicy begin although a wave is not complete",
		Long: "Let the rollouts of later waves of a RolloutPolicy begin although a wave is not complete, or a rollout in it failed. The annotation " + machinev1alpha1.AnnotationPassWave +
			" names the time since which the wave is not complete: when the wave is complete, it holds later ones as before.",
		Example: "  kubectl drover rollout pass fleet development",
		Args:    cobra.ExactArgs(2), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			p := &machinev1alpha1.RolloutPolicy{}
			if err := c.Get(cmd.Context(), client.ObjectKey{Name: args[0]}, p); err != nil {
				return err
			}
			change, err := action.PassWave(p, args[1])
			if err != nil {
				return err
			}
			return f.carryOut(cmd.Context(), change)
		},
	}
	f.add(cmd)
	return cmd
}

func (a *app) restart() *cobra.Command {
	return a.requested(&cobra.Command{
		Use:   "restart (KIND NAME | KIND/NAME)",
		Short: "Replace all Machines, by the strategy, although the template did not change",
		Long: "Replace all Machines, by the strategy, although the template did not change: the annotation " + action.AnnotationRestartedAt +
			" of the template of a MachineDeployment is set, as kubectl rollout restart does, or spec.rollout.after of a NodePool.",
		Example: "  kubectl drover rollout restart md/workers\n\n  kubectl drover rollout restart np/web",
	}, "restarted", func(v *view.View, ref view.Ref) ([]action.Change, error) {
		return one(action.RestartOf(v, ref, a.now()))
	})
}

func (a *app) rolloutStatus() *cobra.Command {
	watch := true
	timeout := time.Duration(0)
	cmd := &cobra.Command{
		Use:   "status (KIND NAME | KIND/NAME)",
		Short: "Wait until a rollout is complete, and show how far it is",
		Long: "Wait until a rollout is complete, and write how far it is whenever that changes. It ends as well when a user must act, with what to do." +
			exitCodes,
		Example: "  kubectl drover rollout status md/workers --timeout=20m",
		Args:    objects(1), ValidArgsFunction: a.completeRefs(view.MachineDeployment, view.NodePool, view.MachineSet),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			return a.awaitRollout(ctx, args, watch)
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", true, "Wait until the rollout is complete.")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "How long to wait at most. 0 is for ever.")
	return cmd
}

func (a *app) awaitRollout(ctx context.Context, args []string, watch bool) error {
	ref, err := a.optionalRef(args)
	if err != nil {
		return err
	}
	last := ""
	for {
		v, err := a.read(ctx, false, collect.Options{})
		if err != nil {
			return err
		}
		r, err := diagnosis.Status(v, ref, a.now())
		if err != nil {
			return err
		}
		text := rolloutText(r.Groups[0])
		if r.State == diagnosis.NeedsUser {
			r.Groups[0].Machines = nil
			text = a.screen(false).Status(r)
		}
		if text != last {
			fmt.Fprintln(a.Out, strings.TrimRight(text, "\n"))
			last = text
		}
		if !watch || r.State != diagnosis.InProgress {
			return exit(r.State, nil)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not complete: %w", ref, ctx.Err())
		case <-time.After(interval):
		}
	}
}

// rolloutText is one line, as in kubectl rollout status.
func rolloutText(g diagnosis.Group) string {
	if g.State == diagnosis.Complete {
		text := fmt.Sprintf("%s successfully rolled out", g.Ref)
		if next := g.NextByAge; next != nil {
			text += fmt.Sprintf("\nThe next Machine by age is %s, from %s on", next.Machine, next.From.UTC().Format(time.RFC3339))
		}
		return text
	}
	c := g.Counts
	text := fmt.Sprintf("Waiting for %s: %d of %d Machines are updated, %d are available", g.Ref, c.Updated, c.Desired, c.Available)
	if g.Doing != "" {
		text += " (" + g.Doing + ")"
	}
	return text + "..."
}
