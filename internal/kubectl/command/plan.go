package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/healthprofile"
	"github.com/drover-dev/drover/internal/kubectl/collect"
	"github.com/drover-dev/drover/internal/kubectl/forecast"
	"github.com/drover-dev/drover/internal/kubectl/view"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/deployment"
)

// lastApplied is the annotation in which kubectl apply keeps the applied object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func (a *app) plan() *cobra.Command {
	var files []string
	var o output
	var target targetFlag
	manager, detailed := "", false
	cmd := &cobra.Command{
		Use:   "plan -f FILE",
		Short: "Show what a change of NodePools or MachineDeployments would do, without doing it",
		Long: "Show what a change of NodePools or MachineDeployments would do, without doing it: which Machines are replaced, updated in place, created and deleted, in which order, how many at a time, what " +
			"blocks it, and how long it takes at least.\n\nThe API server checks the change and fills in defaults by a dry run, as kubectl apply sends it. Drover's own planners foresee the rest. " +
			"Objects of other kinds in the file are left out, except that a class or a configuration of the file counts as one that exists.\n\n" +
			"Exit codes: 0, 1 for an error. With --detailed-exitcode: 0 nothing changes, 1 error, 2 only what exists changes, in place, 3 Machines are created, replaced or deleted, 4 the change is blocked.",
		Example: "  kubectl drover plan -f workers.yaml\n\n  # With the PodDisruptionBudgets of the cluster that the Machines join\n  kubectl drover plan -f workers.yaml --target-context=prod\n\n" +
			"  # From a pipe, for a script\n  kustomize build . | kubectl drover plan -f - -o json\n\n" +
			"  # In CI: 3 or more needs a review\n  kubectl drover plan -f workers.yaml --detailed-exitcode",
		Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			objects, err := a.objects(files)
			if err != nil {
				return err
			}
			p := &planner{app: a, ctx: cmd.Context(), objects: objects, manager: manager}
			if p.target, err = target.connect(); err != nil {
				return err
			}
			forecasts, err := p.all()
			if err != nil {
				return err
			}
			if err := o.write(a.Out, forecasts, func() string { return a.screen(o.format == "wide").Forecasts(forecasts) }); err != nil || !detailed {
				return err
			}
			if code := forecast.OutcomeOf(forecasts).ExitCode(); code != 0 {
				return ExitError{code}
			}
			return nil
		},
	}
	o.add(cmd)
	target.add(cmd)
	cmd.Flags().StringSliceVarP(&files, "filename", "f", nil, "The file with the changed objects, - for standard input.")
	cmd.Flags().StringVar(&manager, "field-manager", "kubectl", "The field manager by which the change will be applied on the server side. It does not count for objects that kubectl apply wrote on the client side.")
	cmd.Flags().BoolVar(&detailed, "detailed-exitcode", false, "End with an exit code that tells the outcome of the change.")
	_ = cmd.MarkFlagRequired("filename")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	return cmd
}

// objects of files.
func (a *app) objects(files []string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, file := range files {
		var b []byte
		var err error
		if file == "-" {
			b, err = io.ReadAll(a.In)
		} else {
			b, err = os.ReadFile(file) //nolint:gosec // The user names it.
		}
		if err != nil {
			return nil, err
		}
		decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(b), 4096)
		for {
			u := &unstructured.Unstructured{}
			if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if len(u.Object) > 0 {
				out = append(out, u)
			}
		}
	}
	return out, nil
}

// A planner forecasts the effect of a command's changes.
type planner struct {
	*app
	ctx     context.Context //nolint:containedctx // A planner is used for one command.
	objects []*unstructured.Unstructured
	target  client.Client
	manager string
}

func (p *planner) all() ([]forecast.Forecast, error) {
	out := []forecast.Forecast{}
	for _, u := range p.objects {
		foresee := p.deployment
		switch u.GroupVersionKind() {
		case machinev1alpha1.MachineDeploymentGroupVersionKind:
		case machinev1alpha1.NodePoolGroupVersionKind:
			foresee = p.pool
		default:
			continue
		}
		if err := p.inNamespace(u); err != nil {
			return nil, err
		}
		all, err := foresee(u)
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", u.GetKind(), u.GetName(), err)
		}
		out = append(out, all...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no NodePool and no MachineDeployment of %s among the %d objects of the file", machinev1alpha1.SchemeGroupVersion, len(p.objects))
	}
	return out, nil
}

// inNamespace sets the namespace of the command on an object without one, as kubectl apply does.
func (p *planner) inNamespace(u *unstructured.Unstructured) error {
	if u.GetNamespace() != "" {
		return nil
	}
	ns, err := p.namespace()
	u.SetNamespace(ns)
	return err
}

// deployment forecasts the change of a MachineDeployment.
func (p *planner) deployment(u *unstructured.Unstructured) ([]forecast.Forecast, error) {
	c, err := p.connect()
	if err != nil {
		return nil, err
	}
	before, after := &machinev1alpha1.MachineDeployment{}, &machinev1alpha1.MachineDeployment{}
	if err := p.dryRun(c, before, u, after); err != nil {
		return nil, err
	}
	v, err := p.look(c, u.GetNamespace())
	if err != nil {
		return nil, err
	}
	in, err := p.input(c, v, before, after)
	if err != nil {
		return nil, err
	}
	in.Before, in.After, in.Labels = before, after, after.Labels
	if by := metav1.GetControllerOf(before); by != nil && by.Kind == view.NodePool {
		if pool := v.Pool(before.Namespace, by.Name); pool != nil {
			in.Labels = pool.Labels
		}
	}
	return []forecast.Forecast{forecast.Of(p.now(), in)}, nil
}

func (p *planner) look(c client.Client, namespace string) (*view.View, error) {
	return collect.View(p.ctx, c, p.now(), collect.Options{Namespace: namespace, Target: p.target, Nodes: true, Budgets: true})
}

// input returns the input of a forecast: the objects of the MachineDeployment as it is, and of the template as
// it will be.
func (p *planner) input(c client.Client, v *view.View, before, after *machinev1alpha1.MachineDeployment) (in forecast.Input, err error) {
	for _, s := range v.SetsOf(before) {
		in.Sets = append(in.Sets, *s)
		for _, m := range v.MachinesOf(s) {
			in.Machines = append(in.Machines, *m)
		}
	}
	if in.Config = v.ConfigOf(after.Namespace, after.Spec.Template.Spec.ClusterRef); in.Config != nil && in.Config.Missing &&
		p.has(clusterv1alpha1.SchemeGroupVersion.WithKind(in.Config.Kind), in.Config.Namespace, in.Config.Name) {
		in.Config = nil
	}
	if v.Target != nil && v.Target.Budgets != nil {
		in.TargetRead, in.Pods, in.Budgets = true, v.Target.Pods, v.Target.Budgets
	}
	if in.ClassMissing, err = p.lacksClass(c, after); err != nil {
		return in, err
	}
	if in.AnalysesMissing, err = p.lacksAnalyses(c, after); err != nil {
		return in, err
	}
	if in.Policies, err = p.policies(c); err != nil {
		return in, err
	}
	in.Profiles, err = p.profiles(c, after.Spec.Template.Spec.Health)
	return in, err
}

// lacksAnalyses returns the RolloutAnalyses that the steps name, and that exist neither in the cluster nor in the file.
func (p *planner) lacksAnalyses(c client.Client, d *machinev1alpha1.MachineDeployment) (missing []string, err error) {
	for _, s := range deployment.StepsOf(d) {
		for _, name := range s.Analyses {
			if slices.Contains(missing, name) || p.has(machinev1alpha1.RolloutAnalysisGroupVersionKind, d.Namespace, name) {
				continue
			}
			err := c.Get(p.ctx, client.ObjectKey{Namespace: d.Namespace, Name: name}, &machinev1alpha1.RolloutAnalysis{})
			switch {
			case apierrors.IsNotFound(err):
				missing = append(missing, name)
			case apierrors.IsForbidden(err):
				// Drover's own condition reports a missing one.
			case err != nil:
				return nil, err
			}
		}
	}
	return missing, nil
}

// policies are the RolloutPolicies. Users without the right to read them see in the status what holds a rollout.
func (p *planner) policies(c client.Client) ([]machinev1alpha1.RolloutPolicy, error) {
	list := &machinev1alpha1.RolloutPolicyList{}
	if err := c.List(p.ctx, list); err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	return list.Items, nil
}

// profiles of a health: built-in ones, those of the file and those of the cluster.
func (p *planner) profiles(c client.Client, h machinev1alpha1.Health) (out plan.HealthProfiles, err error) {
	for _, name := range h.Profiles {
		found, err := p.profile(c, name)
		switch {
		case apierrors.IsNotFound(err):
			out.Missing = append(out.Missing, name)
		case apierrors.IsForbidden(err):
			// Drover's own condition reports a missing one.
		case err != nil:
			return out, err
		default:
			out.Found = append(out.Found, found)
		}
	}
	return out, nil
}

func (p *planner) profile(c client.Client, name string) (*machinev1alpha1.HealthProfile, error) {
	if b := healthprofile.BuiltIn(name); b != nil {
		return b, nil
	}
	out := &machinev1alpha1.HealthProfile{}
	for _, u := range p.objects {
		if u.GroupVersionKind() == machinev1alpha1.HealthProfileGroupVersionKind && u.GetName() == name {
			return out, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out)
		}
	}
	return out, c.Get(p.ctx, client.ObjectKey{Name: name}, out)
}

// dryRun returns the object as the API server would store it. As kubectl apply does, it merges the last applied
// object, the live object and the file. An object that kubectl apply did not write is applied on the server
// side.
func (p *planner) dryRun(c client.Client, before client.Object, u *unstructured.Unstructured, after client.Object) error {
	if err := client.IgnoreNotFound(c.Get(p.ctx, client.ObjectKeyFromObject(u), before)); err != nil {
		return err
	}
	dry := client.NewDryRunClient(c)
	out := u.DeepCopy()
	original, applied := before.GetAnnotations()[lastApplied]
	switch {
	case before.GetUID() == "":
		if err := dry.Create(p.ctx, out); err != nil {
			return err
		}
	case applied:
		patch, err := threeWay(original, before, u)
		if err != nil {
			return err
		}
		if err := dry.Patch(p.ctx, out, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return err
		}
	default:
		if err := dry.Apply(p.ctx, client.ApplyConfigurationFromUnstructured(out), client.FieldOwner(p.manager), client.ForceOwnership); err != nil {
			return err
		}
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(out.Object, after)
}

func threeWay(original string, before client.Object, u *unstructured.Unstructured) ([]byte, error) {
	modified, err := u.MarshalJSON()
	if err != nil {
		return nil, err
	}
	live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	if err != nil {
		return nil, err
	}
	current, err := (&unstructured.Unstructured{Object: live}).MarshalJSON()
	if err != nil {
		return nil, err
	}
	return jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(original), modified, current)
}

// has reports whether the file has an object. The namespace is empty for a kind without one.
func (p *planner) has(kind schema.GroupVersionKind, namespace, name string) bool {
	return slices.ContainsFunc(p.objects, func(u *unstructured.Unstructured) bool {
		return u.GroupVersionKind() == kind && u.GetName() == name && (namespace == "" || u.GetNamespace() == "" || u.GetNamespace() == namespace)
	})
}

// lacksClass reports whether the class of the template exists neither in the cluster nor in the file.
func (p *planner) lacksClass(c client.Client, d *machinev1alpha1.MachineDeployment) (bool, error) {
	ref := d.Spec.Template.Spec.ClassRef
	kind, namespace := machinev1alpha1.MachineClassGroupVersionKind, d.Namespace
	if ref.Kind == machinev1alpha1.ClusterMachineClassGroupVersionKind.Kind {
		kind, namespace = machinev1alpha1.ClusterMachineClassGroupVersionKind, ""
	}
	if p.has(kind, namespace, ref.Name) {
		return false, nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	err := c.Get(p.ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, u)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	// If the user may not read classes, Drover's own condition reports a missing one.
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	return false, err
}
