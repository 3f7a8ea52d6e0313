package installation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var containersPath = []string{"spec", "deploymentTemplate", "spec", "template", "spec", "containers"}

// WithArguments returns the shipped DeploymentRuntimeConfig of provider-drover with the arguments of the
// installation. Arguments of the one in the cluster, live, are kept: a user wrote them, and an upgrade must not lose
// them. The options win over both.
func (o Options) WithArguments(shipped Object, live *unstructured.Unstructured) (Object, error) {
	u := shipped.DeepCopy()
	containers, _, err := unstructured.NestedSlice(u.Object, containersPath...)
	if err != nil || len(containers) != 1 {
		return Object{}, fmt.Errorf("%s: %s: must have one container: %w", shipped.Name(), strings.Join(containersPath, "."), err)
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return Object{}, fmt.Errorf("%s: %s[0]: must be an object", shipped.Name(), strings.Join(containersPath, "."))
	}
	before, _, err := unstructured.NestedStringSlice(container, "args")
	if err != nil {
		return Object{}, err
	}
	var set []string
	if len(o.Networks) > 0 {
		set = append(set, "--deny-target-networks="+strings.Join(o.Networks, ","))
	}
	if len(o.Joining) > 0 {
		set = append(set, "--injected-identity-for="+ThisCluster)
	}
	args := arguments(before, argumentsOf(live), set)
	if slices.Equal(args, before) {
		return shipped, nil
	}
	container["args"] = list(args)
	if err := unstructured.SetNestedSlice(u.Object, containers, containersPath...); err != nil {
		return Object{}, err
	}
	return newObject(u.Object)
}

// argumentsOf the container of provider-drover in a DeploymentRuntimeConfig, none if there is no such container.
func argumentsOf(u *unstructured.Unstructured) []string {
	if u == nil {
		return nil
	}
	containers, _, _ := unstructured.NestedSlice(u.Object, containersPath...)
	for _, c := range containers {
		if c, ok := c.(map[string]any); ok && c["name"] == "package-runtime" {
			args, _, _ := unstructured.NestedStringSlice(c, "args")
			return args
		}
	}
	return nil
}

// arguments merges arguments by their flags: those of set, else of live, else the shipped ones.
func arguments(shipped, live, set []string) []string {
	out := slices.Clone(live)
	for _, a := range shipped {
		if !slices.ContainsFunc(out, sameFlag(a)) {
			out = append(out, a)
		}
	}
	for _, a := range set {
		if i := slices.IndexFunc(out, sameFlag(a)); i >= 0 {
			out[i] = a
			continue
		}
		out = append(out, a)
	}
	return out
}

func sameFlag(argument string) func(string) bool {
	name, _, _ := strings.Cut(argument, "=")
	return func(other string) bool {
		n, _, _ := strings.Cut(other, "=")
		return n == name
	}
}
