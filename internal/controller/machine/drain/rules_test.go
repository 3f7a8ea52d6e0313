package drain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestTheFirstRuleThatSelectsAPodCounts(t *testing.T) {
	ten := int32(10)
	match := func(k, v string) *machinev1alpha1.LabelSelector {
		return &machinev1alpha1.LabelSelector{MatchLabels: map[string]machinev1alpha1.LabelValue{k: machinev1alpha1.LabelValue(v)}}
	}
	rules, problems := rulesOf([]machinev1alpha1.PodRule{
		{Selector: match("app", "job"), Behavior: machinev1alpha1.PodWaitCompleted},
		{Selector: match("app", "job"), Behavior: machinev1alpha1.PodSkip},
		{Selector: match("bad key!", "x"), Behavior: machinev1alpha1.PodSkip},
		{NamespaceSelector: match("team", "storage"), Behavior: machinev1alpha1.PodDrain, Order: &ten},
		{Selector: &machinev1alpha1.LabelSelector{MatchExpressions: []machinev1alpha1.LabelRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []machinev1alpha1.LabelValue{"a", "b"}},
		}}, Behavior: machinev1alpha1.PodSkip},
	})
	if len(problems) != 1 || !strings.Contains(problems[0], "podRules[2].selector") {
		t.Errorf("problems %q", problems)
	}
	if !needNamespaces(rules) || needNamespaces(rules[:2]) {
		t.Error("it is wrong which rules need namespaces")
	}
	for name, tc := range map[string]struct {
		pod, namespace labels.Set
		behavior       machinev1alpha1.PodBehavior
		order          int32
	}{
		"ByLabel":        {pod: labels.Set{"app": "job"}, behavior: "WaitCompleted"},
		"ByExpression":   {pod: labels.Set{"tier": "b"}, behavior: "Skip"},
		"ByNamespace":    {namespace: labels.Set{"team": "storage"}, behavior: "Drain", order: 10},
		"ByNone":         {pod: labels.Set{"tier": "c"}, behavior: "Drain"},
		"TheFirstCounts": {pod: labels.Set{"app": "job", "tier": "a"}, namespace: labels.Set{"team": "storage"}, behavior: "WaitCompleted"},
	} {
		t.Run(name, func(t *testing.T) {
			behavior, order := treat(rules, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: tc.pod}}, tc.namespace)
			if behavior != tc.behavior || order != tc.order {
				t.Errorf("%s with order %d", behavior, order)
			}
		})
	}
}
