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
	var set []string
	if len(o.Networks) > 0 {
		set = append(set, "--deny-target-networks="+strings.Join(o.Networks, ","))
	}
	if len(o.Joining) > 0 {
		set = append(set, "--injected-identity-for="+ThisCluster)
	}
	u, isChanged := shipped.DeepCopy(), false
	err := ChangeArguments(u, func(before []string) []string {
		args := arguments(before, argumentsOf(live), set)
		isChanged = !slices.Equal(args, before)
		return args
	})
	switch {
	case err != nil:
		return Object{}, fmt.Errorf("%s: %w", shipped.Name(), err)
	case !isChanged:
		return shipped, nil
	}
	return newObject(u.Object)
}

// ChangeArguments changes the arguments of the only container in a shipped DeploymentRuntimeConfig.
func ChangeArguments(config *unstructured.Unstructured, change func(shipped []string) []string) error {
	at := strings.Join(containersPath, ".")
	containers, _, err := unstructured.NestedSlice(config.Object, containersPath...)
	if err != nil {
		return err
	}
	if len(containers) != 1 {
		return fmt.Errorf("%s: there are %d, must be 1", at, len(containers))
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return fmt.Errorf("%s[0]: must be an object", at)
	}
	shipped, _, err := unstructured.NestedStringSlice(container, "args")
	if err != nil {
		return err
	}
	container["args"] = list(change(shipped))
	return unstructured.SetNestedSlice(config.Object, containers, containersPath...)
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
