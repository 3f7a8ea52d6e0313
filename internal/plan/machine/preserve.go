package machine

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

// preserve returns the value that is in force: the Node's, or else the Machine's. Invalid values
// are ignored.
func preserve(f facts) string {
	if v := f.node.Annotations[machinev1alpha1.AnnotationPreserve]; preservesNode(v) {
		return v
	}
	if v := f.Machine.Annotations[machinev1alpha1.AnnotationPreserve]; preservesMachine(v) {
		return v
	}
	return ""
}

func preservesNode(value string) bool {
	switch value {
	case machinev1alpha1.PreserveNow, machinev1alpha1.PreserveWhenFailed, machinev1alpha1.PreserveFalse:
		return true
	default:
		return false
	}
}

// preservesMachine accepts one additional value, which the Machine's set writes.
func preservesMachine(value string) bool {
	return preservesNode(value) || value == machinev1alpha1.PreserveAuto
}

// preservation that the value requests. It keeps its times if another value requests it in the
// meantime. An expired preservation restarts only with another value, or if the annotation was
// removed in between.
func preservation(f facts, d decision) *machinev1alpha1.Preservation {
	switch f.preserve {
	case machinev1alpha1.PreserveNow:
	case machinev1alpha1.PreserveWhenFailed, machinev1alpha1.PreserveAuto:
		// Without a VM there is nothing to analyze.
		if d.phase != machinev1alpha1.MachineFailed || d.failure.reason == machinev1alpha1.FailureCapacityTimeout {
			return nil
		}
	default:
		return nil
	}
	since := *whole(f.now)
	p := machinev1alpha1.Preservation{Since: since, Until: metav1.NewTime(since.Add(plan.Timeout(f.Machine.Spec.Preserve.Timeout, machinev1alpha1.DefaultPreserveTimeout)))}
	if before := f.before.Preservation; before != nil && (before.Value == f.preserve || lasts(f.now, before)) {
		p = *before
	}
	p.Value, p.FailureMessage = f.preserve, ""
	if d.failure != nil && lasts(f.now, &p) {
		p.FailureMessage = d.failure.message
	}
	return &p
}

// lasts reports whether the Machine is preserved now.
func lasts(now time.Time, p *machinev1alpha1.Preservation) bool {
	return p != nil && now.Before(p.Until.Time)
}

// protect the Node of a preserved Machine from the cluster-autoscaler and, if the Machine is
// Failed, from pods. A Node that was drained for that stays drained: a Failed Machine that is no
// longer preserved is about to be deleted.
func protect(p *workernode.Parameters, f facts, d decision) {
	failed, preserved := d.phase == machinev1alpha1.MachineFailed, lasts(f.now, d.preservation)
	if preserved {
		p.Annotations[machinev1alpha1.AnnotationScaleDownDisabled] = "true"
	}
	if preserved && failed {
		p.Taints = append(p.Taints, workernode.Taint{Key: machinev1alpha1.TaintPreserved, Effect: string(corev1.TaintEffectNoSchedule)})
		p.Drained = true
	}
	if failed && (f.before.Drained || f.before.Drain != nil) {
		p.Drained = true
	}
}

// preservedCondition is nil for a Machine that never was preserved.
func preservedCondition(f facts, p *machinev1alpha1.Preservation) *plan.Condition {
	c := &plan.Condition{Type: machinev1alpha1.ConditionPreserved, Status: isFalse, Reason: machinev1alpha1.ReasonNotPreserved}
	switch {
	case lasts(f.now, p):
		c.Status, c.Reason = isTrue, machinev1alpha1.ReasonPreserved
		c.Message = fmt.Sprintf("Kept until %s, as %s: %s asks for", p.Until.UTC().Format(time.RFC3339), machinev1alpha1.AnnotationPreserve, p.Value)
		if p.FailureMessage != "" {
			c.Message += "; it failed: " + p.FailureMessage
		}
	case p != nil:
		c.Reason = machinev1alpha1.ReasonPreservationExpired
		c.Message = fmt.Sprintf("It was kept until %s", p.Until.UTC().Format(time.RFC3339))
	case meta.FindStatusCondition(f.before.Conditions, machinev1alpha1.ConditionPreserved) == nil:
		return nil
	}
	return c
}
