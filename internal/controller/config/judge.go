package config

import (
	"errors"
	"fmt"
	"time"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

const (
	// probeEvery is how often a reachable cluster is asked, and one that is known
	// to be unreachable.
	probeEvery = 30 * time.Second
	// confirmAfter is when a failure is looked at again before it is believed.
	confirmAfter = 5 * time.Second
	// believeAfter so many failures in a row a cluster that was reachable is not.
	believeAfter = 3
)

// A probe of a target cluster.
type probe struct {
	version string
	err     error
}

// A judgement says what to make of a probe.
type judgement struct {
	condition xpv1.Condition
	version   string
	// failures in a row, this one included.
	failures int
	next     time.Duration
}

// judge a probe. One that fails to connect does not count at once, as API servers
// restart; what the user gave counts at once.
func judge(was xpv1.Condition, version string, failures int, p probe) judgement {
	if p.err == nil {
		return judgement{
			condition: condition(corev1.ConditionTrue, v1alpha1.ReasonReachable, ""),
			version:   p.version, next: probeEvery,
		}
	}
	failures++
	reason := v1alpha1.ReasonUnreachable
	var terr *target.Error
	if errors.As(p.err, &terr) {
		reason = terr.Reason()
	}
	if reason == v1alpha1.ReasonUnreachable && was.Status == corev1.ConditionTrue && failures < believeAfter {
		return judgement{condition: was, version: version, failures: failures, next: confirmAfter}
	}
	return judgement{
		condition: condition(corev1.ConditionFalse, reason, p.err.Error()),
		version:   version, failures: failures, next: probeEvery,
	}
}

func condition(status corev1.ConditionStatus, reason, message string) xpv1.Condition {
	return xpv1.Condition{
		Type: v1alpha1.TypeReachable, Status: status, Reason: xpv1.ConditionReason(reason),
		Message: message, LastTransitionTime: metav1.Now(),
	}
}

// inUse says who keeps a configuration, empty if nobody does.
func inUse(workerNodes, joinTokens int) string {
	switch {
	case workerNodes == 0 && joinTokens == 0:
		return ""
	case joinTokens == 0:
		return fmt.Sprintf("still used by %d WorkerNodes", workerNodes)
	case workerNodes == 0:
		return fmt.Sprintf("still used by %d JoinTokens", joinTokens)
	}
	return fmt.Sprintf("still used by %d WorkerNodes and %d JoinTokens", workerNodes, joinTokens)
}
