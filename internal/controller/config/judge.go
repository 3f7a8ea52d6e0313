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
	// probeEvery is the interval between probes of a cluster whose state is known.
	probeEvery = 30 * time.Second
	// confirmAfter is the delay of the next probe after a result that contradicts the condition.
	confirmAfter = 5 * time.Second
	// believeDown and believeUp are how many results in a row change the condition: from reachable to
	// unreachable, and back.
	believeDown, believeUp = 3, 2
)

// A probe of a target cluster.
type probe struct {
	version string
	err     error
	// rights lists the missing rights: empty if there are none, nil if that is unknown.
	rights *string
	// client is the state of client certificates, nil if that is unknown.
	client *v1alpha1.ClientCertificatesStatus
}

// A judgement is the evaluation of a probe.
type judgement struct {
	condition xpv2.Condition
	version   string
	// against is how many probes in a row contradict the condition.
	against int
	next    time.Duration
}

// judge evaluates a probe. A failure to connect does not count at once, as API servers restart. Nor
// does a success after such failures, as API servers crash in loops. A result that depends on the
// user's input, such as credentials, takes effect at once.
func judge(was xpv2.Condition, version string, against int, p probe) judgement {
	reason := reasonOf(p.err)
	against++
	switch {
	case isDown(reason) && was.Status == corev1.ConditionTrue && against < believeDown,
		reason == v1alpha1.ReasonReachable && was.Status == corev1.ConditionFalse && isDown(string(was.Reason)) && against < believeUp:
		return judgement{condition: was, version: version, against: against, next: confirmAfter}
	}
	j := judgement{condition: condition(was, v1alpha1.ConditionReachable, corev1.ConditionTrue, reason, ""), version: p.version, next: probeEvery}
	if p.err != nil {
		j.condition, j.version = condition(was, v1alpha1.ConditionReachable, corev1.ConditionFalse, reason, p.err.Error()), version
	}
	return j
}

// isDown reports whether a reason is one that may pass by itself, such as that of an API server that restarts, or whose
// certificate is renewed.
func isDown(reason string) bool {
	return reason == v1alpha1.ReasonUnreachable || reason == v1alpha1.ReasonCertificateNotTrusted
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

// authorized returns the condition for the missing rights.
func authorized(was xpv2.Condition, lacking string) xpv2.Condition {
	if lacking == "" {
		return condition(was, v1alpha1.ConditionAuthorized, corev1.ConditionTrue, v1alpha1.ReasonAuthorized, "")
	}
	return condition(was, v1alpha1.ConditionAuthorized, corev1.ConditionFalse, v1alpha1.ReasonRightsMissing, lacking)
}

// outage returns the outage to report after the condition changed from one to another.
func outage(reported *v1alpha1.Outage, from, to xpv2.Condition) *v1alpha1.Outage {
	switch {
	case from.Status == corev1.ConditionTrue && to.Status == corev1.ConditionFalse:
		return &v1alpha1.Outage{Since: to.LastTransitionTime}
	case reported != nil && reported.Until == nil && to.Status == corev1.ConditionTrue:
		return &v1alpha1.Outage{Since: reported.Since, Until: &to.LastTransitionTime}
	}
	return reported
}

// condition keeps the transition time as long as the status stays, even if the reason changes.
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

// inUse returns the reason that keeps a configuration from being deleted, empty if there is none.
func inUse(machines int) string {
	if machines == 0 {
		return ""
	}
	return fmt.Sprintf("still used by %d Machines", machines)
}
