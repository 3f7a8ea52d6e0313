// Package rightstest renders RBAC rules as text, for tests and their readers.
package rightstest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// A List has the rights of each subject, one per line.
type List map[string]map[string]bool

// Add adds a rule of a subject, in a namespace or, if that is empty, in all.
func (l List) Add(who, namespace string, rules ...rbacv1.PolicyRule) {
	if l[who] == nil {
		l[who] = map[string]bool{}
	}
	for _, rule := range rules {
		for _, line := range lines(rule, namespace) {
			l[who][line] = true
		}
	}
}

func (l List) String() string {
	out := &strings.Builder{}
	for _, who := range slices.Sorted(maps.Keys(l)) {
		fmt.Fprintf(out, "%s\n", who)
		for _, line := range slices.Sorted(maps.Keys(l[who])) {
			fmt.Fprintf(out, "  %s\n", line)
		}
	}
	return out.String()
}

func lines(rule rbacv1.PolicyRule, namespace string) []string {
	where := "everywhere"
	if namespace != "" {
		where = "in " + namespace
	}
	verbs := strings.Join(slices.Sorted(slices.Values(rule.Verbs)), ", ")
	var out []string
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			if group != "" {
				resource += "." + group
			}
			if len(rule.ResourceNames) > 0 {
				resource += fmt.Sprintf(" %v", rule.ResourceNames)
			}
			out = append(out, fmt.Sprintf("%s: %s %s", resource, verbs, where))
		}
	}
	for _, url := range rule.NonResourceURLs {
		out = append(out, fmt.Sprintf("%s: %s", url, verbs))
	}
	return out
}
