package config

import (
	"errors"
	"fmt"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

const (
	// probeEvery is how often a cluster is asked of which is known how it is.
	probeEvery = 30 * time.Second
	// confirmAfter is when an answer that contradicts what is known is looked at again.
	confirmAfter = 5 * time.Second
	// So many answers in a row are believed: a cluster that was reachable is not, and
	// one that was not is.
	believeDown, believeUp = 3, 2
)

// A probe of a target cluster.
type probe struct {
	version string
	err     error
	// rights says which rights lack, empty if none does, nil if that is not known.
	rights *string
	// client is what is done with client certificates, nil if that is not known.
	client *v1alpha1.ClientCertificatesStatus
}

// A judgement says what to make of a probe.
type judgement struct {
	condition xpv2.Condition
	version   string
	// against is how many probes in a row contradict the condition.
	against int
	next    time.Duration
}

// judge a probe. One that fails to connect does not count at once, as API servers
// restart, nor does one that succeeds after those, as they crash in loops. What the
// user gave counts at once, good or bad.
func judge(was xpv2.Condition, version string, against int, p probe) judgement {
	reason := reasonOf(p.err)
	against++
	switch {
	case reason == v1alpha1.ReasonUnreachable && was.Status == corev1.ConditionTrue && against < believeDown,
		reason == v1alpha1.ReasonReachable && was.Status == corev1.ConditionFalse && was.Reason == v1alpha1.ReasonUnreachable && against < believeUp:
		return judgement{condition: was, version: version, against: against, next: confirmAfter}
	}
	j := judgement{condition: condition(was, v1alpha1.ConditionReachable, corev1.ConditionTrue, reason, ""), version: p.version, next: probeEvery}
	if p.err != nil {
		j.condition, j.version = condition(was, v1alpha1.ConditionReachable, corev1.ConditionFalse, reason, p.err.Error()), version
	}
	return j
}

func reasonOf(err error) string {
	var terr *target.Error
	switch {
	case err == nil:
		return v1alpha1.ReasonReachable
	case errors.As(err, &terr):
		return terr.Reason()
	}
	return v1alpha1.ReasonUnreachable
}

// authorized says what to make of the rights that lack.
func authorized(was xpv2.Condition, lacking string) xpv2.Condition {
	if lacking == "" {
		return condition(was, v1alpha1.ConditionAuthorized, corev1.ConditionTrue, v1alpha1.ReasonAuthorized, "")
	}
	return condition(was, v1alpha1.ConditionAuthorized, corev1.ConditionFalse, v1alpha1.ReasonRightsMissing, lacking)
}

// outage that is told of, after the condition changed from one to another.
func outage(told *v1alpha1.Outage, from, to xpv2.Condition) *v1alpha1.Outage {
	switch {
	case from.Status == corev1.ConditionTrue && to.Status == corev1.ConditionFalse:
		return &v1alpha1.Outage{Since: to.LastTransitionTime}
	case told != nil && told.Until == nil && to.Status == corev1.ConditionTrue:
		return &v1alpha1.Outage{Since: told.Since, Until: &to.LastTransitionTime}
	}
	return told
}

// condition keeps the time as long as the status stays, whatever the reason.
func condition(was xpv2.Condition, typ xpv2.ConditionType, status corev1.ConditionStatus, reason, message string) xpv2.Condition {
	since := metav1.Now()
	if was.Status == status && !was.LastTransitionTime.IsZero() {
		since = was.LastTransitionTime
	}
	return xpv2.Condition{
		Type: typ, Status: status, Reason: xpv2.ConditionReason(reason),
		Message: message, LastTransitionTime: since,
	}
}

// inUse returns what keeps a configuration from being deleted, empty if nothing does.
func inUse(machines int) string {
	if machines == 0 {
		return ""
	}
	return fmt.Sprintf("still used by %d Machines", machines)
}
