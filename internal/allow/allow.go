// Package allow decides which namespaces may use a ClusterProviderConfig, and which labels and taints their
// Machines may set on Nodes of its target cluster.
//
// A pattern is a text in which each * stands for any number of characters, also none. No other
// character is special, so that every text is a pattern.
package allow

import (
	"slices"
	"strings"

	kubeletapis "k8s.io/kubelet/pkg/apis"
)

// Default in a list of patterns of keys stands for the keys that are allowed without a list.
const Default = "default"

const (
	roleDomain        = "node-role.kubernetes.io"
	restrictionDomain = "node-restriction.kubernetes.io"
)

// reservedDomains of keys, and those below them, belong to Kubernetes.
var reservedDomains = []string{"kubernetes.io", "k8s.io"}

// controlPlaneRoles are those by which workloads of the control plane select Nodes.
var controlPlaneRoles = []string{"control-plane", "master", "etcd"}

// topologyKeys may be labels and taints: a kubelet may set them on its own Node.
var topologyKeys = []string{
	"topology.kubernetes.io/region", "topology.kubernetes.io/zone",
	"failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
	"node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type",
}

// Namespace reports whether Machines of a namespace may use a configuration that allows the
// namespaces of the patterns. Without a pattern, none may.
func Namespace(patterns []string, namespace string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return Matches(p, namespace) })
}

// NodeLabel reports whether a Machine may put a label with the key on its Node. If patterns is
// nil, the default counts: each key outside of kubernetes.io and k8s.io, each role but those of
// the control plane, and each that a kubelet may set on its own Node.
func NodeLabel(patterns []string, key string) bool {
	return keyIn(patterns, key, func(key string) bool { return isDefault(key) || kubeletapis.IsKubeletLabel(key) })
}

// NodeTaint reports whether a Machine may put a taint with the key on its Node. The default is that of
// NodeLabel, except that of the keys of kubelets only those for the topology and the instance type are allowed.
func NodeTaint(patterns []string, key string) bool { return keyIn(patterns, key, isDefault) }

func keyIn(patterns []string, key string, byDefault func(string) bool) bool {
	if patterns == nil {
		return byDefault(key)
	}
	return slices.ContainsFunc(patterns, func(p string) bool {
		if p == Default {
			return byDefault(key)
		}
		// Workloads are kept apart by these keys: a pattern must name their domain.
		if domainOf(key) == restrictionDomain && domainOf(p) != restrictionDomain {
			return false
		}
		return Matches(p, key)
	})
}

func isDefault(key string) bool {
	domain := domainOf(key)
	switch {
	case domain == roleDomain:
		return !slices.Contains(controlPlaneRoles, strings.TrimPrefix(key, roleDomain+"/"))
	case slices.Contains(topologyKeys, key):
		return true
	}
	return !IsReserved(key)
}

// IsReserved reports whether the domain of a key is kubernetes.io or k8s.io, or below them.
func IsReserved(key string) bool {
	return slices.ContainsFunc(reservedDomains, func(domain string) bool { return IsInDomain(key, domain) })
}

// IsInDomain reports whether the domain of a key is the given one, or below it.
func IsInDomain(key, domain string) bool {
	of := domainOf(key)
	return of == domain || strings.HasSuffix(of, "."+domain)
}

// domainOf returns the domain of a key, empty if it has none.
func domainOf(key string) string {
	domain, _, ok := strings.Cut(key, "/")
	if !ok {
		return ""
	}
	return domain
}

// Matches reports whether a text matches a pattern.
func Matches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return pattern == text
	}
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return true
}
