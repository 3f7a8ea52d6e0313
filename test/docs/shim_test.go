package docs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/drover-dev/drover/test/kit"
)

// The test binary also stands in for the tools that the pages name: the PATH of a script has a
// link to it for each tool. It reads these variables.
const (
	envBinaries = "DROVER_BIN"
	// envReal is set for a script whose commands take effect.
	envReal = "DOCS_REAL"
	// envRoot is the repository, for a script whose commands take effect: Go embeds no files behind links.
	envRoot = "DOCS_ROOT"
	// envPlugin is the path of kubectl drover, if it is another one than that of envBinaries.
	envPlugin = "DOCS_PLUGIN"
	// envFunction is the address of a function-drover that renders.
	envFunction = "DOCS_FUNCTION"
)

var shims = map[string]func(args []string) []string{"kubectl": kubectl, "crossplane": crossplane, "make": makeTarget, "kubectl-drover": plugin}

// shim runs the tool that the binary was called as. It does not return in this case.
func shim() {
	tool, ok := shims[filepath.Base(os.Args[0])]
	if !ok {
		return
	}
	args := os.Args[1:]
	if isCreationOf("secret", args) && !runsAsItIs(args) {
		os.Exit(applySecret(args))
	}
	command := tool(args)
	err := syscall.Exec(command[0], command, os.Environ())
	fmt.Fprintf(os.Stderr, "%s: %v\n", command[0], err)
	os.Exit(1)
}

func binary(name string) string { return filepath.Join(os.Getenv(envBinaries), name) }

// mutating are the verbs of kubectl that change objects and support dry runs.
var mutating = []string{"apply", "create", "delete", "patch", "annotate", "label", "scale", "drain", "replace", "taint", "cordon", "uncordon"}

// kubectl makes a command that would change objects a server-side dry run, so that only the API
// server validates it.
func kubectl(args []string) []string {
	verb := verbOf(args)
	if verb == "drover" {
		i := slices.Index(args, "drover")
		return plugin(slices.Delete(slices.Clone(args), i, i+1))
	}
	if i := slices.Index(args, verb); slices.Contains(mutating, verb) && !isCreationOf("token", args) && !runsAsItIs(args) {
		args = slices.Insert(slices.Clone(args), i+1, "--dry-run=server")
	}
	return append([]string{binary("drover-kube"), "kubectl"}, args...)
}

// runsAsItIs reports whether a command of kubectl runs unchanged: the command is a dry run, or
// shall take effect.
func runsAsItIs(args []string) bool {
	return os.Getenv(envReal) != "" || slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--dry-run") })
}

// verbOf a command of kubectl: the first word that is neither a flag nor the value of one.
func verbOf(args []string) string {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-n" || a == "--namespace" || a == "--context" || a == "--kubeconfig":
			i++
		case !strings.HasPrefix(a, "-"):
			return a
		}
	}
	return ""
}

// isCreationOf reports whether a command of kubectl creates an object of a kind by a subcommand.
func isCreationOf(kind string, args []string) bool {
	i := slices.Index(args, "create")
	return filepath.Base(os.Args[0]) == "kubectl" && i >= 0 && i+1 < len(args) && args[i+1] == kind
}

// applySecret validates a Secret by a server-side dry run. The Secret may exist on the control
// plane already.
func applySecret(args []string) int {
	made := &bytes.Buffer{}
	create := exec.Command(binary("drover-kube"), append(append([]string{"kubectl"}, args...), "--dry-run=client", "-o", "yaml")...)
	create.Stdout, create.Stderr = made, os.Stderr
	if create.Run() != nil {
		return 1
	}
	flags := []string{"kubectl", "apply", "--dry-run=server", "-f", "-"}
	if i := slices.Index(args, "--context"); i >= 0 {
		flags = append(flags, args[i:i+2]...)
	}
	apply := exec.Command(binary("drover-kube"), flags...)
	apply.Stdin, apply.Stdout, apply.Stderr = made, os.Stdout, os.Stderr
	if apply.Run() != nil {
		return 1
	}
	return 0
}

// crossplane renders without Docker, which it would use by default.
func crossplane(args []string) []string {
	if slices.Contains(args, "render") {
		args = append(args, "--crossplane-binary="+binary("crossplane"), "-a", "render.crossplane.io/runtime-development-target="+os.Getenv(envFunction))
	}
	return append([]string{binary("crossplane-cli")}, args...)
}

// makeTarget resolves a target and its variables, and runs nothing unless it shall take effect: most targets take
// minutes or hours.
func makeTarget(args []string) []string {
	command := []string{"/usr/bin/make", "--no-print-directory"}
	if os.Getenv(envReal) == "" {
		return append(append(command, "-n", "-C", kit.Root()), args...)
	}
	return append(append(command, "-C", os.Getenv(envRoot)), args...)
}

func plugin(args []string) []string {
	program := binary("kubectl-drover")
	if p := os.Getenv(envPlugin); p != "" {
		program = p
	}
	return append([]string{program}, args...)
}
