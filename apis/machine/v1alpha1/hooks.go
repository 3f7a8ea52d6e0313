package v1alpha1

import (
	"slices"
	"strings"
)

// Hooks let other controllers hold the deletion of a Machine at one stage. Each hook is an
// annotation of the Machine: a prefix, and the name of the hook. Its value has no meaning. To let
// the deletion continue, the owner of the hook removes it. spec.drain.hookTimeout limits how long a
// hook may hold.
const (
	// HookPreDrain holds before the Node is cordoned and drained.
	HookPreDrain = "pre-drain.hook." + Group + "/"
	// HookPreTerminate holds before the VM is deleted, after the Node is deleted.
	HookPreTerminate = "pre-terminate.hook." + Group + "/"
)

// HooksIn returns the names of the hooks of a prefix, sorted.
func HooksIn(annotations map[string]string, prefix string) []string {
	var out []string
	for k := range annotations {
		if name, ok := strings.CutPrefix(k, prefix); ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
