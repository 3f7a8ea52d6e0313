package target

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/allow"
)

// allowances of a ClusterProviderConfig, as patterns.
type allowances struct{ Namespaces, NodeLabels, NodeTaints []string }

func allowancesOf(spec v1alpha1.ClusterProviderConfigSpec) *allowances {
	return &allowances{
		Namespaces: texts(spec.AllowedNamespaces), NodeLabels: texts(spec.AllowedNodeLabels), NodeTaints: texts(spec.AllowedNodeTaints),
	}
}

// texts returns patterns as texts. An empty list is not the same as nil.
func texts[T ~string](patterns []T) []string {
	if patterns == nil {
		return nil
	}
	out := make([]string, 0, len(patterns))
	for _, p := range patterns {
		out = append(out, string(p))
	}
	return out
}

// For returns the connection to the cluster that a Machine joins. Every action for a Machine in a target
// cluster uses it: for the join token, the Node and the certificates.
func (p *Pool) For(ctx context.Context, m *machinev1alpha1.Machine) (*Conn, error) {
	conn, err := p.Get(ctx, RefOf(m))
	if err != nil {
		return nil, err
	}
	if err := conn.Admit(m); err != nil {
		return nil, err
	}
	return conn, nil
}

// Admit returns an error unless the configuration serves the namespace of a Machine.
func (c *Conn) Admit(m *machinev1alpha1.Machine) error {
	namespace := m.GetNamespace()
	if c.allows == nil || allow.Namespace(c.allows.Namespaces, namespace) {
		return nil
	}
	return &Error{Kind: NotAllowed, Ref: c.Ref, Detail: fmt.Sprintf(
		"Machines of namespace %q may not use it: add %q, or a pattern that matches it, to its spec.allowedNamespaces", namespace, namespace)}
}

// CheckNode returns an error if a Machine desires a label or a taint on its Node that the configuration does
// not allow.
func (c *Conn) CheckNode(m *machinev1alpha1.Machine) error {
	for _, key := range slices.Sorted(maps.Keys(m.Spec.Metadata.Labels)) {
		if !c.AllowsLabel(key) {
			return c.refuseKey(field.NewPath("spec", "metadata", "labels"), key, "allowedNodeLabels")
		}
	}
	for name, taints := range map[string][]machinev1alpha1.Taint{"taints": m.Spec.Taints, "startupTaints": m.Spec.StartupTaints} {
		for i, t := range taints {
			if !c.AllowsTaint(t.Key) {
				return c.refuseKey(field.NewPath("spec", name).Index(i).Child("key"), t.Key, "allowedNodeTaints")
			}
		}
	}
	return nil
}

func (c *Conn) refuseKey(path *field.Path, key, list string) error {
	return &Error{Kind: NotAllowed, Ref: c.Ref, Detail: fmt.Sprintf(
		"%s of the Machine: invalid value %q: spec.%s of the configuration does not match it", path, key, list)}
}

// AllowsLabel reports whether Machines may put a label with the key on their Nodes.
func (c *Conn) AllowsLabel(key string) bool {
	return c.allows == nil || allow.NodeLabel(c.allows.NodeLabels, key)
}

// AllowsTaint reports whether Machines may put a taint with the key on their Nodes.
func (c *Conn) AllowsTaint(key string) bool {
	return c.allows == nil || allow.NodeTaint(c.allows.NodeTaints, key)
}
