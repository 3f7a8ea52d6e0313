package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

func leaves(c *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	for _, below := range c.Commands() {
		out = append(out, leaves(below)...)
	}
	if len(c.Commands()) == 0 {
		out = append(out, c)
	}
	return out
}

func TestEachCommandHasAnExampleAndHelp(t *testing.T) {
	all := leaves(New(genericiooptions.NewTestIOStreamsDiscard()))
	if len(all) < 16 {
		t.Errorf("%d commands", len(all))
	}
	for _, c := range all {
		if c.Example == "" || c.Short == "" || !strings.Contains(c.Example, "kubectl drover ") {
			t.Errorf("%s: example %q, short %q", c.CommandPath(), c.Example, c.Short)
		}
		if c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 {
			t.Errorf("%s completes files", c.CommandPath())
		}
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s: --%s has no usage", c.CommandPath(), f.Name)
			}
		})
	}
}

func TestArgumentsNameObjectsAsKubectlDoes(t *testing.T) {
	cases := map[string]struct {
		args []string
		want []view.Ref
		err  string
	}{
		"Slash":        {[]string{"md/a"}, []view.Ref{{Kind: view.MachineDeployment, Namespace: "n", Name: "a"}}, ""},
		"KindAndNames": {[]string{"machines", "a", "b"}, []view.Ref{{Kind: view.Machine, Namespace: "n", Name: "a"}, {Kind: view.Machine, Namespace: "n", Name: "b"}}, ""},
		"FullKind":     {[]string{"MachineSet.machine.drover.dev/a"}, []view.Ref{{Kind: view.MachineSet, Namespace: "n", Name: "a"}}, ""},
		"UnknownKind":  {[]string{"pod/a"}, nil, `"pod" is no kind that this command takes: it must be one of NodePool, MachineDeployment, MachineSet, Machine`},
		"NoName":       {[]string{"md"}, nil, "names no object"},
		"EmptyName":    {[]string{"md/"}, nil, "names no object"},
		"Mixed":        {[]string{"md/a", "b"}, nil, "all as names behind one kind"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := refs(tc.args, "n", view.NodePool, view.MachineDeployment, view.MachineSet, view.Machine)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || len(got) != len(tc.want) {
				t.Fatalf("got %v, %v", got, err)
			}
			for i := range got {
				if got[i] != tc.want[i] {
					t.Errorf("got %v, want %v", got, tc.want)
				}
			}
		})
	}
}

func TestAnErrorEndsWithOne(t *testing.T) {
	out, errs := &bytes.Buffer{}, &bytes.Buffer{}
	code := Run(context.Background(), genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: errs}, []string{"move"})
	if code != 1 || errs.String() != "error: --namespace is required\n" {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
}

// TestBadArgumentsAreRefusedBeforeAClusterIsRead: there is no cluster here.
func TestBadArgumentsAreRefusedBeforeAClusterIsRead(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"AFormatThatThereIsNot":           {[]string{"status", "-o", "yml"}, `"yml" for "-o, --output" flag: must be one of json, yaml, wide`},
		"AnObjectThatIsMissing":           {[]string{"why"}, "name an object as KIND/NAME or KIND NAME: kubectl drover why"},
		"ARollbackOfNothing":              {[]string{"rollout", "undo"}, "name an object as KIND/NAME or KIND NAME: kubectl drover rollout undo"},
		"AFreezeOfNothing":                {[]string{"freeze"}, "name an object as KIND/NAME or KIND NAME: kubectl drover freeze"},
		"TwoObjectsWhereOneIsTaken":       {[]string{"why", "md/a", "md/b", "md/c"}, "3 arguments, and kubectl drover why takes one object"},
		"AKindThatIsNotDrovers":           {[]string{"status", "deploy/web"}, `"deploy" is no kind that this command takes: it must be one of NodePool`},
		"AKindWithoutAName":               {[]string{"status", "md"}, `"md" names no object: write KIND/NAME or KIND NAME`},
		"ARevisionThatIsNoNumber":         {[]string{"rollout", "undo", "md/web", "--to-revision=abc"}, `"abc" for "--to-revision" flag`},
		"ATimeoutWithoutAUnit":            {[]string{"rollout", "status", "md/web", "--timeout=30"}, `missing unit in duration "30"`},
		"AFlagThatThereIsNot":             {[]string{"preserve", "ma/x", "--timeout=2d"}, "unknown flag: --timeout"},
		"AFileThatThereIsNot":             {[]string{"plan", "-f", "/nonexistent.yaml"}, "/nonexistent.yaml: no such file"},
		"APlanOfNothing":                  {[]string{"plan"}, `required flag(s) "filename" not set`},
		"ADrainOfADeployment":             {[]string{"drain", "md/web"}, `"md" is no kind that this command takes: it must be one of Machine`},
		"AContextThatThereIsNot":          {[]string{"status", "--context", "nope"}, `context "nope" does not exist`},
		"ACommandThatIsMisspelt":          {[]string{"statsu"}, `unknown command "statsu" for "kubectl drover"`},
		"AnImportOfNoMachineDeployment":   {[]string{"import", "capi"}, "name one MachineDeployment of Cluster API, without its kind: kubectl drover import capi NAME --to md/NAME"},
		"AnImportOfTwo":                   {[]string{"import", "capi", "a", "b"}, `["a" "b"]: name one MachineDeployment of Cluster API`},
		"AnImportIntoNothing":             {[]string{"import", "capi", "a"}, "--to md/NAME is required"},
		"AnImportIntoAnotherKind":         {[]string{"import", "capi", "a", "--to", "ms/a"}, `--to: "ms" is no kind that this command takes: it must be one of MachineDeployment`},
		"AWayBackToSomewhereElse":         {[]string{"import", "capi", "a", "--undo", "--to", "md/a"}, "--undo goes with neither --to nor --accept-differences"},
		"ADryRunThatThereIsNot":           {[]string{"import", "capi", "a", "--to", "md/a", "--dry-run=server"}, "--dry-run=server: must be none or client"},
		"AContextWithoutAKubeconfig":      {[]string{"import", "capi", "a", "--to", "md/a", "--target-context=x"}, "--target-context needs --target-kubeconfig"},
		"AnImportFromMCMOfNothing":        {[]string{"import", "mcm"}, "name one MachineDeployment of machine-controller-manager, without its kind: kubectl drover import mcm NAME --to md/NAME"},
		"AnImportFromMCMOfAKind":          {[]string{"import", "mcm", "mcd/a", "--to", "md/a"}, `["mcd/a"]: name one MachineDeployment of machine-controller-manager`},
		"AnImportFromMCMIntoNothing":      {[]string{"import", "mcm", "a"}, "--to md/NAME is required"},
		"AWayBackToMCMWithDifferences":    {[]string{"import", "mcm", "a", "--undo", "--accept-differences"}, "--undo goes with neither --to nor --accept-differences"},
		"AConfirmationForClusterAPI":      {[]string{"import", "capi", "a", "--controllers-are-stopped"}, "unknown flag: --controllers-are-stopped"},
		"AWatchThatIsNeitherTrueNorFalse": {[]string{"status", "--watch=yes"}, `invalid argument "yes" for "-w, --watch" flag`},
	} {
		t.Run(name, func(t *testing.T) {
			errs := &bytes.Buffer{}
			code := Run(context.Background(), genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, ErrOut: errs}, tc.args)
			if code != 1 || !strings.Contains(errs.String(), tc.want) {
				t.Errorf("code %d: %s, want %q", code, errs, tc.want)
			}
		})
	}
}

func TestTheCompletionOfKubectlRunsThePlugin(t *testing.T) {
	out := &bytes.Buffer{}
	code := Run(context.Background(), genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: &bytes.Buffer{}}, []string{"completion", "kubectl"})
	if code != 0 || !strings.Contains(out.String(), `exec kubectl-drover __complete "$@"`) {
		t.Errorf("code %d:\n%s", code, out)
	}
}

func TestTheExitCodeIsThatOfTheState(t *testing.T) {
	for state, want := range map[diagnosis.State]error{diagnosis.Complete: nil, diagnosis.InProgress: ExitError{2}, diagnosis.NeedsUser: ExitError{3}} {
		if got := exit(state, nil); !errors.Is(got, want) {
			t.Errorf("%s ends with %v, want %v", state, got, want)
		}
		if got := exit(state, io.EOF); !errors.Is(got, io.EOF) {
			t.Errorf("an error of %s ends with %v", state, got)
		}
	}
}
