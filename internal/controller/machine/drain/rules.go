package drain

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A rule is a compiled PodRule.
type rule struct {
	pods, namespaces labels.Selector
	behavior         machinev1alpha1.PodBehavior
	order            int32
}

// rulesOf compiles rules. A rule with an invalid selector selects no pod, and is reported as a problem.
func rulesOf(specs []machinev1alpha1.PodRule) (rules []rule, problems []string) {
	for i, s := range specs {
		r := rule{behavior: s.Behavior}
		if s.Order != nil {
			r.order = *s.Order
		}
		var err error
		if r.pods, err = selector(s.Selector); err != nil {
			problems = append(problems, fmt.Sprintf("podRules[%d].selector: %v", i, err))
			continue
		}
		if r.namespaces, err = selector(s.NamespaceSelector); err != nil {
			problems = append(problems, fmt.Sprintf("podRules[%d].namespaceSelector: %v", i, err))
			continue
		}
		rules = append(rules, r)
	}
	return rules, problems
}

func selector(s *machinev1alpha1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s.Kubernetes())
}

// needNamespaces reports whether a rule depends on labels of namespaces.
func needNamespaces(rules []rule) bool {
	for _, r := range rules {
		if !r.namespaces.Empty() {
			return true
		}
	}
	return false
}

// treat returns the behavior and the order of a pod, from the first rule that selects it.
func treat(rules []rule, p *corev1.Pod, namespace labels.Set) (machinev1alpha1.PodBehavior, int32) {
	for _, r := range rules {
		if r.pods.Matches(labels.Set(p.GetLabels())) && r.namespaces.Matches(namespace) {
			return r.behavior, r.order
		}
	}
	return machinev1alpha1.PodDrain, 0
}
