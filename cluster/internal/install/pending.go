package install

import (
	"fmt"
	"strings"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	pkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"
)

// A view is the observed state of the packages of a cluster.
type view struct {
	// dependencies of each source, from Crossplane's Lock.
	dependencies map[string][]string
	packages     []installed
}

// installed is one package object.
type installed struct {
	source             string
	healthy, installed xpv2.Condition
	// stale means that Crossplane has not processed the desired version yet.
	stale bool
	// unresolved is the number of dependencies that Crossplane has found and not installed.
	unresolved int64
	// notEstablished are types of the current revision that are not served yet.
	notEstablished []string
}

// closure returns source and all its dependencies, also indirect ones.
func (v view) closure(source string) []string {
	sources := []string{source}
	seen := map[string]bool{source: true}
	for i := 0; i < len(sources); i++ {
		for _, d := range v.dependencies[sources[i]] {
			if !seen[d] {
				seen[d] = true
				sources = append(sources, d)
			}
		}
	}
	return sources
}

// pending returns, for source and each of its dependencies, why it is not ready. Packages that are
// ready are omitted.
func (v view) pending(source string) map[string]string {
	waits := map[string]string{}
	for _, s := range v.closure(source) {
		p, ok := v.find(s)
		switch {
		case !ok:
			waits[s] = "not created yet"
		case p.stale:
			waits[s] = "not unpacked yet: " + explain(p.installed)
		case !isTrue(p.installed):
			waits[s] = "not installed: " + explain(p.installed)
		case p.unresolved > 0:
			waits[s] = fmt.Sprintf("%d dependencies are not installed", p.unresolved)
		case !isTrue(p.healthy):
			waits[s] = "not healthy: " + explain(p.healthy)
		case len(p.notEstablished) > 0:
			waits[s] = "not established: " + strings.Join(p.notEstablished, ", ")
		case v.dependencies[s] == nil:
			waits[s] = "not in the lock yet"
		}
	}
	return waits
}

func (v view) find(source string) (installed, bool) {
	for _, p := range v.packages {
		if p.source == source {
			return p, true
		}
	}
	return installed{}, false
}

func isTrue(c xpv2.Condition) bool { return c.Status == "True" }

func explain(c xpv2.Condition) string {
	switch {
	case c.Message != "":
		return c.Message
	case c.Reason != "":
		return string(c.Reason)
	}
	return "no condition " + string(pkgv1.TypeHealthy) + " or " + string(pkgv1.TypeInstalled) + " yet"
}
