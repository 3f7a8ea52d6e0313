package v1alpha1

import (
	"slices"
	"strings"
)

// Hooks let other controllers hold the deletion of a Machine at a point. Each is an annotation of
// the Machine: a prefix, and the name of the hook. Its value has no meaning. The owner who set it
// takes it off when the deletion may go on; spec.drain.hookTimeout is how long it may
// take.
const (
	// HookPreDrain holds before the Node is cordoned and drained.
	HookPreDrain = "pre-drain.hook." + Group + "/"
	// HookPreTerminate holds before the VM is deleted, when the Node is gone.
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
