package command

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// completionTimeout bounds how long a completion may take.
const completionTimeout = 3 * time.Second

// shortNames of kinds.
var shortNames = map[string]string{"NodePool": "np", "MachineDeployment": "md", "MachineSet": "ms", "Machine": "ma"}

// completeRefs completes KIND NAME and KIND/NAME for the kinds.
func (a *app) completeRefs(allowed ...string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		if short, _, ok := strings.Cut(typed, "/"); ok {
			return prefixed(short+"/", a.namesOf(ctx, short, allowed)), cobra.ShellCompDirectiveNoFileComp
		}
		if len(args) > 0 && !strings.Contains(args[0], "/") {
			return a.namesOf(ctx, args[0], allowed), cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for _, k := range allowed {
			out = append(out, shortNames[k]+"/")
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

func prefixed(prefix string, names []string) []string {
	for i := range names {
		names[i] = prefix + names[i]
	}
	return names
}

// namesOf returns the names of a kind in the namespace, none if it cannot be read.
func (a *app) namesOf(ctx context.Context, kind string, allowed []string) []string {
	k, ok := kinds[kind]
	c, err := a.connect()
	if !ok || err != nil || !slices.Contains(allowed, k) {
		return nil
	}
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(machinev1alpha1.SchemeGroupVersion.WithKind(k + "List"))
	ns, err := a.namespace()
	if err != nil || c.List(ctx, l, client.InNamespace(ns)) != nil {
		return nil
	}
	var out []string
	for _, o := range l.Items {
		out = append(out, o.Name)
	}
	return out
}

func (a *app) completeNamespaces(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	c, err := a.connect()
	l := &corev1.NamespaceList{}
	if err != nil || c.List(ctx, l) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, n := range l.Items {
		out = append(out, n.Name)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	raw, err := a.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for name := range raw.Contexts {
		out = append(out, name)
	}
	slices.Sort(out)
	return out, cobra.ShellCompDirectiveNoFileComp
}
