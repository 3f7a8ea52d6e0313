package drain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
)

// explainer names the PodDisruptionBudgets that block the eviction of pods of a Node.
type explainer struct {
	kube kubernetes.Interface
	// labels of the pods, by namespace and name.
	labels map[string]labels.Set
}

// explain returns why a budget does not allow the eviction of a pod. It lists the budgets only after a refusal.
// If they cannot be read, it returns the reason of the API server.
func (e explainer) explain(ctx context.Context, p pod, err error) string {
	list, lerr := e.kube.PolicyV1().PodDisruptionBudgets(p.name.Namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if lerr != nil {
		return blockedBy(err)
	}
	var of []policyv1.PodDisruptionBudget
	for _, b := range list.Items {
		s, serr := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if serr == nil && s.Matches(e.labels[p.name.String()]) {
			of = append(of, b)
		}
	}
	if text := wrongBudgets(of); text != "" {
		return text
	}
	return blockedBy(err)
}

// wrongBudgets returns the misconfiguration of a pod's budgets if they never allow its eviction, however
// healthy its application is. Only a user can fix that.
func wrongBudgets(of []policyv1.PodDisruptionBudget) string {
	if len(of) > 1 {
		var names []string
		for _, b := range of {
			names = append(names, b.GetName())
		}
		slices.Sort(names)
		return fmt.Sprintf("misconfigured: the PodDisruptionBudgets %s select it, and the API server evicts no pod of more than one", strings.Join(names, " and "))
	}
	if len(of) == 0 {
		return ""
	}
	b := of[0]
	s := b.Status
	counted, most := s.ObservedGeneration == b.GetGeneration(), b.Spec.MaxUnavailable
	never := "misconfigured: the PodDisruptionBudget " + b.GetName() + " never allows its eviction, as "
	switch {
	case most != nil && (most.String() == "0" || most.String() == "0%"):
		return never + "maxUnavailable is " + most.String()
	case !counted:
		return ""
	case most != nil && s.ExpectedPods == 0:
		return never + "maxUnavailable counts only pods whose controller can be scaled"
	case s.ExpectedPods == 0 || s.DesiredHealthy < s.ExpectedPods:
		return ""
	case most != nil:
		return fmt.Sprintf("%smaxUnavailable is %s of %d pods", never, most.String(), s.ExpectedPods)
	case b.Spec.MinAvailable != nil:
		return fmt.Sprintf("%sminAvailable is %s of %d pods", never, b.Spec.MinAvailable.String(), s.ExpectedPods)
	}
	return ""
}
