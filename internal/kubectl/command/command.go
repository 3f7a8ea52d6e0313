// Package command has the commands of kubectl drover: flags, and the thin edge between the API server and
// the pure packages beside it.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/render"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

// Scheme of the objects that the commands read.
var Scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1alpha1.AddToScheme, machinev1alpha1.AddToScheme} {
		utilruntime.Must(add(s))
	}
	return s
}()

// An ExitError ends the program with a code, without a message.
type ExitError struct{ Code int }

// Error is never shown.
func (e ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// An app is what all commands share.
type app struct {
	genericiooptions.IOStreams
	config *genericclioptions.ConfigFlags
	now    func() time.Time

	// client, once it was made.
	client client.Client
}

// New returns kubectl drover.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	a := &app{IOStreams: streams, config: genericclioptions.NewConfigFlags(true), now: time.Now}
	root := &cobra.Command{
		Use:   "kubectl-drover",
		Short: "Operate Drover",
		Long: "kubectl drover shows how Machines and their pools are, why they are so and what to do, and carries out what operators do with them.\n\n" +
			"Objects are named as kubectl does: md workers, md/workers, ma/workers-x7k2p. Kinds: np (NodePool), md (MachineDeployment), ms (MachineSet), ma (Machine).",
		Example:       "  # What is there, how far is it, what blocks it?\n  kubectl drover status -A\n\n  # Why does this Machine not join?\n  kubectl drover why ma/workers-x7k2p-4mzq9",
		SilenceErrors: true, SilenceUsage: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl drover"},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	a.config.AddFlags(root.PersistentFlags())
	_ = root.RegisterFlagCompletionFunc("namespace", a.completeNamespaces)
	_ = root.RegisterFlagCompletionFunc("context", a.completeContexts)
	root.AddCommand(
		a.status(), a.why(), a.history(), a.tree(), a.offer(), a.rollout(), a.plan(),
		a.drain(), a.replace(), a.reboot(), a.preserve(), a.freeze(),
		a.move(), a.importVMs(), a.install(), a.completion(),
	)
	return root
}

// Run kubectl drover and return its exit code.
func Run(ctx context.Context, streams genericiooptions.IOStreams, args []string) int {
	root := New(streams)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	exit := ExitError{}
	switch {
	case errors.As(err, &exit):
		return exit.Code
	case err != nil:
		fmt.Fprintln(streams.ErrOut, "error:", err)
		return 1
	}
	return 0
}

// connect to the control cluster that kubectl uses.
func (a *app) connect() (client.Client, error) {
	if a.client != nil {
		return a.client, nil
	}
	cfg, err := a.config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	a.client, err = clientFor(cfg)
	return a.client, err
}

func clientFor(cfg *rest.Config) (client.Client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = 100, 200
	// Warnings of the API server go to the user once, and not into a log.
	cfg.WarningHandler = rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{Deduplicate: true})
	return client.New(cfg, client.Options{Scheme: Scheme})
}

// connectTo another cluster.
func connectTo(kubeconfig, kubecontext string) (client.Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: kubecontext}).ClientConfig()
	if err != nil {
		return nil, err
	}
	return clientFor(cfg)
}

// namespace that kubectl uses.
func (a *app) namespace() (string, error) {
	ns, _, err := a.config.ToRawKubeConfigLoader().Namespace()
	return ns, err
}

// kinds by the names that kubectl takes.
var kinds = map[string]string{
	"np": view.NodePool, "nodepool": view.NodePool, "nodepools": view.NodePool,
	"md": view.MachineDeployment, "machinedeployment": view.MachineDeployment, "machinedeployments": view.MachineDeployment,
	"ms": view.MachineSet, "machineset": view.MachineSet, "machinesets": view.MachineSet,
	"ma": view.Machine, "machine": view.Machine, "machines": view.Machine,
}

// anyNumber of objects that a command takes.
const anyNumber = -1

// objects are the arguments of a command that takes at least one object, and at most that number of them.
func objects(most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("name an object as KIND/NAME or KIND NAME: %s", cmd.UseLine())
		case most != anyNumber && len(args) > most+1:
			return fmt.Errorf("%d arguments, and %s takes one object: write KIND/NAME or KIND NAME", len(args), cmd.CommandPath())
		}
		return nil
	}
}

// refs of the arguments: KIND NAME..., or KIND/NAME.... Those of other kinds than allowed are refused.
func refs(args []string, namespace string, allowed ...string) ([]view.Ref, error) {
	var out []view.Ref
	add := func(kind, name string) error {
		// machines.machine.drover.dev is taken too.
		short, _, _ := strings.Cut(strings.ToLower(kind), ".")
		k, ok := kinds[short]
		if !ok || !contains(allowed, k) {
			return fmt.Errorf("%q is no kind that this command takes: it must be one of %s", kind, strings.Join(allowed, ", "))
		}
		if name == "" {
			return fmt.Errorf("%q names no object: write %s/NAME", kind, kind)
		}
		out = append(out, view.Ref{Kind: k, Namespace: namespace, Name: name})
		return nil
	}
	if len(args) > 0 && !strings.Contains(args[0], "/") {
		if len(args) == 1 {
			return nil, fmt.Errorf("%q names no object: write KIND/NAME or KIND NAME", args[0])
		}
		for _, name := range args[1:] {
			if err := add(args[0], name); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	for _, arg := range args {
		kind, name, ok := strings.Cut(arg, "/")
		if !ok {
			return nil, fmt.Errorf("%q: write all objects as KIND/NAME, or all as names behind one kind", arg)
		}
		if err := add(kind, name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// screen of the output, with its size if it is a terminal.
func (a *app) screen(wide bool) render.Screen {
	width, height := 0, 0
	if f, ok := a.Out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil {
			width, height = w, h
		}
	}
	if wide {
		width, height = 0, 0
	}
	return render.NewScreen(a.Out, width, height, a.now())
}

// An output is the flag -o of commands that show data of their own.
type output struct{ format string }

// formats of output.
var formats = []string{"json", "yaml", "wide"}

func (o *output) add(cmd *cobra.Command) {
	cmd.Flags().VarP(o, "output", "o", "Output format. One of: (json, yaml, wide).")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// String is the format, "" for text.
func (o *output) String() string { return o.format }

// Type of the flag, as the help shows it.
func (o *output) Type() string { return "string" }

// Set refuses a format that there is not, before a command reads or changes anything.
func (o *output) Set(format string) error {
	if format != "" && !contains(formats, format) {
		return fmt.Errorf("must be one of %s", strings.Join(formats, ", "))
	}
	o.format = format
	return nil
}

// write data in the format, or as text.
func (o *output) write(out io.Writer, data any, text func() string) error {
	var b []byte
	var err error
	switch o.format {
	case "", "wide":
		b = []byte(text())
	case "yaml":
		b, err = yaml.Marshal(data)
	case "json":
		if b, err = yaml.Marshal(data); err == nil {
			b, err = yaml.YAMLToJSON(b)
		}
		b = append(b, '\n')
	}
	if err != nil {
		return err
	}
	_, err = out.Write(b)
	return err
}
