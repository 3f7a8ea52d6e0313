package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	drover "github.com/drover-dev/drover"
	"github.com/drover-dev/drover/internal/kubectl/installation"
	"github.com/drover-dev/drover/internal/ratelimit"
)

// Version and Registry of the packages that kubectl drover installs by default: those of the release that it belongs
// to. The linker sets them.
var (
	Version  = "v0.1.0"
	Registry = installation.DefaultRegistry
)

// installFlags of kubectl drover install.
type installFlags struct {
	installation.Options
	part, output, dryRun string
	force                bool
	timeout              time.Duration
}

func (a *app) install() *cobra.Command {
	f := installFlags{}
	clouds := append(installation.Clouds(drover.Manifests), installation.TargetCluster)
	cmd := &cobra.Command{
		Use:   "install (CLOUD | " + installation.TargetCluster + ")",
		Short: "Install or upgrade Drover and all that a cloud needs",
		Long: "Install Drover and all that a cloud needs, in a cluster that has Crossplane: rights, admission policies and runtime configuration, the packages, each when the one before is healthy, and the " +
			"configuration of the cloud's provider. Then print what is left to do. With another --version it upgrades. What is already so is left alone, so that an installation that was interrupted continues.\n\n" +
			"A configuration that exists is never changed, and arguments of provider-drover that you added to its DeploymentRuntimeConfig stay. Objects with values that only you know, which begin with REPLACE-, are not applied.\n\n" +
			"With \"" + installation.TargetCluster + "\" it installs the rights and the policy of Drover in a cluster that Machines join, and that Drover does not run in.\n\n" +
			"Clouds: " + strings.Join(clouds[:len(clouds)-1], ", ") + ".",
		Example: "  kubectl drover install hcloud\n\n  # Machines of the namespace default join the cluster that Drover runs in\n  kubectl drover install hcloud --join-this-cluster=default\n\n" +
			"  # What would change?\n  kubectl drover install hcloud --dry-run=server\n\n  # All objects, for GitOps\n  kubectl drover install hcloud -o yaml > drover.yaml\n\n" +
			"  # A class and a MachineDeployment to fill in\n  kubectl drover install hcloud --part=example -o yaml > workers.yaml\n\n" +
			"  # In a cluster that Machines join\n  kubectl drover install " + installation.TargetCluster + " --context=prod",
		Args: cobra.ExactArgs(1), ValidArgs: clouds,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Cloud = args[0]
			return a.runInstall(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Version, "version", Version, "The version of Drover's packages.")
	flags.StringVar(&f.Registry, "registry", Registry, "The prefix of the names of Drover's packages.")
	flags.StringVar(&f.Mirror, "mirror", "", "The prefix of a registry that has a copy of the packages. Crossplane pulls them from there, under their names.")
	flags.StringSliceVar(&f.Joining, "join-this-cluster", nil, "Namespaces whose Machines may join the cluster that Drover runs in.")
	flags.StringSliceVar(&f.Networks, "cluster-networks", nil, "The networks of the Services and pods of this cluster, as CIDRs: no ProviderConfig of a tenant is connected to them. By default 10.96.0.0/12, or what is configured already.")
	flags.StringVar(&f.part, "part", "", "Only a part: one of (rights, packages, configuration, example). The part example is printed only, with -o yaml.")
	flags.StringVarP(&f.output, "output", "o", "", "Print the objects instead of applying them. One of: (yaml).")
	flags.StringVar(&f.dryRun, "dry-run", "none", `Must be "none" or "server". With "server", the API server checks each object and keeps nothing.`)
	flags.BoolVar(&f.force, "force-conflicts", false, "Write over fields that another client wrote.")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "How long to wait for each package.")
	for name, values := range map[string][]string{
		"part":   {installation.Rights, installation.Packages, installation.Configuration, installation.Example},
		"output": {"yaml"}, "dry-run": {"none", "server"},
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

func (f installFlags) validate() error {
	switch {
	case f.dryRun != "none" && f.dryRun != "server":
		return fmt.Errorf("--dry-run=%s: must be none or server", f.dryRun)
	case f.output != "" && f.output != "yaml":
		return fmt.Errorf("--output=%s: must be yaml", f.output)
	case !slices.Contains([]string{"", installation.Rights, installation.Packages, installation.Configuration, installation.Example}, f.part):
		return fmt.Errorf("--part=%s: must be one of rights, packages, configuration, example", f.part)
	case f.part == installation.Example && f.output == "":
		return errors.New("--part=example is only printed: add -o yaml, replace what begins with REPLACE-, and apply it")
	case strings.HasSuffix(f.Registry, "/") || f.Registry == "":
		return fmt.Errorf("--registry=%s: must be a prefix such as %s, without a slash at the end", f.Registry, installation.DefaultRegistry)
	}
	return nil
}

// selected are the steps that are applied or printed: by default all but the example.
func (f installFlags) selected(steps []installation.Step) []installation.Step {
	if f.part != "" {
		return installation.Select(steps, f.part)
	}
	return installation.Select(steps, installation.Rights, installation.Packages, installation.Configuration)
}

func (a *app) runInstall(ctx context.Context, f installFlags) error {
	if err := f.validate(); err != nil {
		return err
	}
	steps, err := installation.Plan(drover.Manifests, f.Options)
	if err != nil {
		return err
	}
	selected := f.selected(steps)
	if len(selected) == 0 || len(selected[0].Objects) == 0 {
		return fmt.Errorf("%s has no %s", f.Cloud, f.part)
	}
	if f.output == "yaml" {
		return printYAML(a.Out, selected)
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	i := &installer{client: c, flags: f, out: a.Out, progress: a.ErrOut, poll: time.Second}
	if f.Cloud != installation.TargetCluster {
		if err := i.hasCrossplane(); err != nil {
			return err
		}
	}
	for _, s := range selected {
		if err := i.step(ctx, s); err != nil {
			return err
		}
	}
	if f.dryRun == "server" {
		fmt.Fprintln(a.Out, "Nothing was changed: --dry-run=server.")
		return nil
	}
	if f.part != "" {
		return nil
	}
	context := ""
	if *a.config.Context != "" {
		context = " --context=" + *a.config.Context
	}
	return i.remains(ctx, steps, context)
}

// printYAML writes objects with the comments of their files.
func printYAML(out io.Writer, steps []installation.Step) error {
	for _, s := range steps {
		for _, o := range s.Objects {
			if _, err := io.WriteString(out, "---\n"+o.Text); err != nil {
				return err
			}
		}
	}
	return nil
}

// An installer carries out the steps of an installation.
type installer struct {
	client        client.Client
	flags         installFlags
	out, progress io.Writer
	// poll is the time between two looks at a package.
	poll time.Duration
}

// hasCrossplane fails if the API server does not serve the kinds of packages.
func (i *installer) hasCrossplane() error {
	for _, k := range []schema.GroupVersionKind{{Group: "pkg.crossplane.io", Version: "v1", Kind: "Configuration"}, {Group: "pkg.crossplane.io", Version: "v1beta1", Kind: "ImageConfig"}} {
		if _, err := i.client.RESTMapper().RESTMapping(k.GroupKind(), k.Version); meta.IsNoMatchError(err) {
			return fmt.Errorf("the cluster has no Crossplane, or an old one: it does not serve %s of %s/%s. Install Crossplane v2.4 or newer first: https://docs.crossplane.io/latest/get-started/install/", k.Kind, k.Group, k.Version)
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (i *installer) step(ctx context.Context, s installation.Step) error {
	for _, o := range s.Objects {
		if s.Part == installation.Configuration {
			if err := i.configure(ctx, o); err != nil {
				return err
			}
			continue
		}
		if s.Part == installation.Packages {
			var err error
			if o, err = i.named(ctx, o); err != nil {
				return err
			}
		}
		if err := i.apply(ctx, o); err != nil {
			return err
		}
		if s.Part == installation.Packages && i.flags.dryRun == "none" {
			if err := i.await(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// live returns the object in the cluster, nil if it does not exist.
func (i *installer) live(ctx context.Context, o installation.Object) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(o.GroupVersionKind())
	err := i.client.Get(ctx, client.ObjectKeyFromObject(o), u)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return u, err
}

// apply one object, and print the effect.
func (i *installer) apply(ctx context.Context, o installation.Object) error {
	before, err := i.live(ctx, o)
	if err != nil {
		return fmt.Errorf("%s: %w", o.Name(), err)
	}
	if o.GetKind() == "DeploymentRuntimeConfig" {
		if o, err = i.flags.WithArguments(o, before); err != nil {
			return err
		}
	}
	options := []client.ApplyOption{client.FieldOwner(fieldManager)}
	// The user asks for this version of a package. Crossplane or its CLI set the one before.
	if i.flags.force || o.GroupVersionKind().GroupVersion().String() == "pkg.crossplane.io/v1" {
		options = append(options, client.ForceOwnership)
	}
	if i.flags.dryRun == "server" {
		options = append(options, client.DryRunAll)
	}
	u := o.DeepCopy()
	err = i.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), options...)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%s: %w\nIf the values of this version shall replace those, add --force-conflicts", o.Name(), err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.Name(), err)
	}
	done := "configured"
	switch {
	case before == nil:
		done = "created"
	case isUnchanged(before, u):
		done = "unchanged"
	}
	i.print(o, done)
	return nil
}

// isUnchanged compares all of an object but its status, which controllers write meanwhile. A dry run returns a changed
// object with the old resource version.
func isUnchanged(before, after *unstructured.Unstructured) bool {
	content := func(u *unstructured.Unstructured) map[string]any {
		u = u.DeepCopy()
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
		delete(u.Object, "status")
		return u.Object
	}
	return equality.Semantic.DeepEqual(content(before), content(after))
}

func (i *installer) print(o installation.Object, done string) {
	if i.flags.dryRun == "server" {
		done += " (server dry run)"
	}
	fmt.Fprintln(i.out, o.Name(), done)
}

// configure applies a configuration that does not exist yet and has no placeholders. Its kind may be served a moment
// after its package is healthy.
func (i *installer) configure(ctx context.Context, o installation.Object) error {
	if len(o.Placeholders()) > 0 {
		i.print(o, "has values to replace and is not applied")
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, i.flags.timeout)
	defer cancel()
	for {
		before, err := i.live(ctx, o)
		switch {
		case err == nil && before != nil:
			i.print(o, "exists and is kept")
			return nil
		case err == nil:
			return i.apply(ctx, o)
		case !meta.IsNoMatchError(err):
			return fmt.Errorf("%s: %w", o.Name(), err)
		case i.flags.dryRun == "server":
			i.print(o, "is checked when its package is installed")
			return nil
		}
		if err := ratelimit.Sleep(ctx, i.poll); err != nil {
			return fmt.Errorf("%s: its kind is not served: %w", o.Name(), err)
		}
	}
}

// named returns a package under the name of the object that already installs it, such as one that "crossplane xpkg
// install" named. Crossplane refuses two objects with one package.
func (i *installer) named(ctx context.Context, o installation.Object) (installation.Object, error) {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(o.GroupVersionKind())
	if err := i.client.List(ctx, all); err != nil {
		return o, fmt.Errorf("%s: %w", o.Name(), err)
	}
	want, _, _ := unstructured.NestedString(o.Object, "spec", "package")
	for _, u := range all.Items {
		have, _, _ := unstructured.NestedString(u.Object, "spec", "package")
		if installation.Source(have) == installation.Source(want) && u.GetName() != o.GetName() {
			o = installation.Object{Unstructured: o.DeepCopy()}
			o.SetName(u.GetName())
			return o, nil
		}
	}
	return o, nil
}

// await a package until it is healthy in its version.
func (i *installer) await(ctx context.Context, o installation.Object) error {
	ctx, cancel := context.WithTimeout(ctx, i.flags.timeout)
	defer cancel()
	reported := ""
	for {
		u, err := i.live(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", o.Name(), err)
		}
		if u == nil {
			return fmt.Errorf("%s was deleted", o.Name())
		}
		waits := installation.Waits(u)
		if waits == "" {
			i.print(o, "is healthy")
			return nil
		}
		if waits != reported {
			fmt.Fprintf(i.progress, "  %s is %s\n", o.Name(), waits)
			reported = waits
		}
		if ratelimit.Sleep(ctx, i.poll) != nil {
			return fmt.Errorf("%s is %s. The same command continues when the cause is mended: kubectl describe %s", o.Name(), waits, o.Name())
		}
	}
}

// remains prints the steps that are left to the user.
func (i *installer) remains(ctx context.Context, steps []installation.Step, kubecontext string) error {
	facts := installation.Facts{Secrets: map[string]bool{}, Context: kubecontext}
	for _, s := range installation.Select(steps, installation.Configuration) {
		for _, o := range s.Objects {
			c := installation.CredentialOf(o)
			if c == nil {
				continue
			}
			// The content of a Secret is never read.
			m := &metav1.PartialObjectMetadata{}
			m.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
			if err := i.client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, m); err == nil {
				facts.Secrets[c.Namespace+"/"+c.Name] = true
			}
		}
	}
	if i.flags.Cloud == installation.TargetCluster {
		fmt.Fprintln(i.out, "\nThe cluster is ready for Machines. What is left to do:")
	} else {
		fmt.Fprintf(i.out, "\nDrover %s is installed for %s. What is left to do:\n", i.flags.Version, i.flags.Cloud)
	}
	for n, t := range installation.Remains(i.flags.Options, steps, facts) {
		fmt.Fprintf(i.out, "%d. %s\n", n+1, t.Text)
		for _, c := range t.Commands {
			fmt.Fprintln(i.out, "     "+c)
		}
	}
	return nil
}
