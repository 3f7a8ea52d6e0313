package drain

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestWrongBudgets(t *testing.T) {
	budget := func(name string, change func(*policyv1.PodDisruptionBudget)) policyv1.PodDisruptionBudget {
		b := policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2}}
		b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: 2, CurrentHealthy: 2, DesiredHealthy: 2}
		one := intstr.FromInt32(1)
		b.Spec.MinAvailable = &one
		if change != nil {
			change(&b)
		}
		return b
	}
	none, little, all := intstr.FromInt32(0), intstr.FromString("30%"), intstr.FromString("100%")
	for name, tc := range map[string]struct {
		of   []policyv1.PodDisruptionBudget
		want string
	}{
		"NoneIsNotWrong": {},
		"OneThatWaitsForAPodIsNot": {of: []policyv1.PodDisruptionBudget{budget("web", func(b *policyv1.PodDisruptionBudget) {
			b.Status.DesiredHealthy, b.Status.CurrentHealthy = 1, 1
		})}},
		"OneThatIsNotCountedYetIsNot": {of: []policyv1.PodDisruptionBudget{budget("web", func(b *policyv1.PodDisruptionBudget) { b.Status.ObservedGeneration = 1 })}},
		"NoUnavailable": {
			of: []policyv1.PodDisruptionBudget{budget("web", func(b *policyv1.PodDisruptionBudget) {
				b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, &none
			})},
			want: "misconfigured: the PodDisruptionBudget web never allows its eviction, as maxUnavailable is 0",
		},
		"NoUnavailableOfPodsThatNobodyCounts": {
			of: []policyv1.PodDisruptionBudget{budget("web", func(b *policyv1.PodDisruptionBudget) {
				b.Spec.MinAvailable, b.Spec.MaxUnavailable, b.Status.ExpectedPods, b.Status.DesiredHealthy = nil, &none, 0, 0
			})},
			want: "misconfigured: the PodDisruptionBudget web never allows its eviction, as maxUnavailable is 0",
		},
		"SomeUnavailableOfPodsThatNobodyCounts": {
			of: []policyv1.PodDisruptionBudget{budget("web", func(b *policyv1.PodDisruptionBudget) {
				b.Spec.MinAvailable, b.Spec.MaxUnavailable, b.Status.ExpectedPods, b.Status.DesiredHealthy = nil, &little, 0, 0
			})},
			want: "misconfigured: the PodDisruptionBudget web never allows its eviction, as maxUnavailable counts only pods whose controller can be scaled",
		},
		"AllAvailable": {
			of:   []policyv1.PodDisruptionBudget{budget("web", func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = &all })},
			want: "misconfigured: the PodDisruptionBudget web never allows its eviction, as minAvailable is 100% of 2 pods",
		},
		"TwoOfThem": {
			of:   []policyv1.PodDisruptionBudget{budget("web", nil), budget("all", nil)},
			want: "misconfigured: the PodDisruptionBudgets all and web select it, and the API server evicts no pod of more than one",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := wrongBudgets(tc.of); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
