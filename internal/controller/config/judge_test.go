package config

import (
	"testing"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/drover-dev/drover/internal/target"
)

func TestJudge(t *testing.T) {
	up := condition(corev1.ConditionTrue, "Reachable", "")
	down := condition(corev1.ConditionFalse, "Unreachable", "x")
	errOf := func(k target.Kind) error { return &target.Error{Kind: k, Ref: target.ClusterRef("c"), Detail: "d"} }
	cases := map[string]struct {
		was      xpv1.Condition
		failures int
		probe    probe
		status   corev1.ConditionStatus
		reason   xpv1.ConditionReason
		version  string
		soon     bool
	}{
		"AClusterThatAnswersIsReachable":       {probe: probe{version: "v2"}, status: corev1.ConditionTrue, reason: "Reachable", version: "v2"},
		"AlsoAtOnceAfterAnOutage":              {was: down, failures: 9, probe: probe{version: "v2"}, status: corev1.ConditionTrue, reason: "Reachable", version: "v2"},
		"OneFailureIsNotBelievedYet":           {was: up, probe: probe{err: errOf(target.Unreachable)}, status: corev1.ConditionTrue, reason: "Reachable", version: "v1", soon: true},
		"NorTheSecond":                         {was: up, failures: 1, probe: probe{err: errOf(target.Unreachable)}, status: corev1.ConditionTrue, reason: "Reachable", version: "v1", soon: true},
		"TheThirdIs":                           {was: up, failures: 2, probe: probe{err: errOf(target.Unreachable)}, status: corev1.ConditionFalse, reason: "Unreachable", version: "v1"},
		"AClusterThatNeverAnsweredIsNot":       {probe: probe{err: errOf(target.Unreachable)}, status: corev1.ConditionFalse, reason: "Unreachable", version: "v1"},
		"MissingCredentialsCountAtOnce":        {was: up, probe: probe{err: errOf(target.SecretNotFound)}, status: corev1.ConditionFalse, reason: "CredentialsMissing", version: "v1"},
		"InvalidCredentialsCountAtOnce":        {was: up, probe: probe{err: errOf(target.KubeconfigInvalid)}, status: corev1.ConditionFalse, reason: "CredentialsInvalid", version: "v1"},
		"CredentialsThatAreRefusedCountAtOnce": {was: up, probe: probe{err: errOf(target.Unauthorized)}, status: corev1.ConditionFalse, reason: "Unauthorized", version: "v1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			j := judge(tc.was, "v1", tc.failures, tc.probe)
			if j.condition.Status != tc.status || j.condition.Reason != tc.reason || j.version != tc.version || (j.next == confirmAfter) != tc.soon {
				t.Errorf("%+v", j)
			}
			if tc.status == corev1.ConditionFalse && j.condition.Message != "ClusterProviderConfig c: d" {
				t.Errorf("message %q", j.condition.Message)
			}
		})
	}
}

func TestInUse(t *testing.T) {
	for want, n := range map[string][2]int{
		"": {0, 0}, "still used by 2 WorkerNodes": {2, 0}, "still used by 1 JoinTokens": {0, 1}, "still used by 2 WorkerNodes and 1 JoinTokens": {2, 1},
	} {
		if got := inUse(n[0], n[1]); got != want {
			t.Errorf("%v: %q, want %q", n, got, want)
		}
	}
}
