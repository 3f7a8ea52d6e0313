package config

import (
	"crypto/x509"
	"net/url"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

func TestJudge(t *testing.T) {
	since := metav1.Unix(1, 0)
	said := func(status corev1.ConditionStatus, reason string) xpv2.Condition {
		c := condition(xpv2.Condition{}, v1alpha1.ConditionReachable, status, reason, "")
		c.LastTransitionTime = since
		return c
	}
	up, down, refused := said(corev1.ConditionTrue, "Reachable"), said(corev1.ConditionFalse, "Unreachable"), said(corev1.ConditionFalse, "Unauthorized")
	fails := func(k target.Kind) probe {
		return probe{err: &target.Error{Kind: k, Ref: target.ClusterRef("c"), Detail: "d"}}
	}
	answers := probe{version: "v2"}
	cases := map[string]struct {
		was     xpv2.Condition
		against int
		probe   probe
		status  corev1.ConditionStatus
		reason  xpv2.ConditionReason
		version string
		soon    bool
	}{
		"AClusterThatAnswersIsReachable":            {probe: answers, status: corev1.ConditionTrue, reason: "Reachable", version: "v2"},
		"AnOutageIsNotOverWithOneAnswer":            {was: down, probe: answers, status: corev1.ConditionFalse, reason: "Unreachable", version: "v1", soon: true},
		"ButWithTwo":                                {was: down, against: 1, probe: answers, status: corev1.ConditionTrue, reason: "Reachable", version: "v2"},
		"CredentialsThatWereMendedCountAtOnce":      {was: refused, probe: answers, status: corev1.ConditionTrue, reason: "Reachable", version: "v2"},
		"ACertificateOfAnotherCAHasAReasonOfItsOwn": {probe: notTrusted(), status: corev1.ConditionFalse, reason: "CertificateNotTrusted", version: "v1"},
		"ACertificateThatChangesIsNotBelievedYet":   {was: up, probe: notTrusted(), status: corev1.ConditionTrue, reason: "Reachable", version: "v1", soon: true},
		"OneFailureIsNotBelievedYet":                {was: up, probe: fails(target.Unreachable), status: corev1.ConditionTrue, reason: "Reachable", version: "v1", soon: true},
		"NorTheSecond":                              {was: up, against: 1, probe: fails(target.Unreachable), status: corev1.ConditionTrue, reason: "Reachable", version: "v1", soon: true},
		"TheThirdIs":                                {was: up, against: 2, probe: fails(target.Unreachable), status: corev1.ConditionFalse, reason: "Unreachable", version: "v1"},
		"AClusterThatNeverAnsweredIsNot":            {probe: fails(target.Unreachable), status: corev1.ConditionFalse, reason: "Unreachable", version: "v1"},
		"MissingCredentialsCountAtOnce":             {was: up, probe: fails(target.SecretNotFound), status: corev1.ConditionFalse, reason: "CredentialsMissing", version: "v1"},
		"InvalidCredentialsCountAtOnce":             {was: up, probe: fails(target.KubeconfigInvalid), status: corev1.ConditionFalse, reason: "CredentialsInvalid", version: "v1"},
		"CredentialsThatAreRefusedCountAtOnce":      {was: up, probe: fails(target.Unauthorized), status: corev1.ConditionFalse, reason: "Unauthorized", version: "v1"},
		"AnotherReasonIsNoTransition":               {was: refused, probe: fails(target.Unreachable), status: corev1.ConditionFalse, reason: "Unreachable", version: "v1"},
		"CredentialsThatWereRefusedAfterAnEnd":      {was: down, against: 1, probe: fails(target.Unauthorized), status: corev1.ConditionFalse, reason: "Unauthorized", version: "v1"},
		"AClusterThatStaysAwayIsAskedRarely":        {was: down, against: 1, probe: fails(target.Unreachable), status: corev1.ConditionFalse, reason: "Unreachable", version: "v1"},
		"AClusterThatGoesOnAnsweringIsAskedToo":     {was: up, against: 2, probe: answers, status: corev1.ConditionTrue, reason: "Reachable", version: "v2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			j := judge(tc.was, "v1", tc.against, tc.probe)
			if j.condition.Status != tc.status || j.condition.Reason != tc.reason || j.version != tc.version || (j.next == confirmAfter) != tc.soon {
				t.Errorf("%+v", j)
			}
			if tc.soon != (j.against == tc.against+1) || !tc.soon && j.against != 0 {
				t.Errorf("%d probes against it", j.against)
			}
			if tc.probe.err != nil && tc.status == corev1.ConditionFalse && j.condition.Message != "ClusterProviderConfig c: d" {
				t.Errorf("message %q", j.condition.Message)
			}
			if same := tc.was.Status == tc.status; same != j.condition.LastTransitionTime.Equal(&since) {
				t.Errorf("since %v, and was since %v", j.condition.LastTransitionTime, since)
			}
		})
	}
}

func TestInUse(t *testing.T) {
	for want, n := range map[string]int{
		"": 0, "still used by 1 Machines": 1, "still used by 2 Machines": 2,
	} {
		if got := inUse(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestOutage(t *testing.T) {
	at := func(s int64, status corev1.ConditionStatus) xpv2.Condition {
		return xpv2.Condition{Status: status, LastTransitionTime: metav1.Unix(s, 0)}
	}
	unknown, up, down, upAgain, downAgain := xpv2.Condition{}, at(1, corev1.ConditionTrue), at(2, corev1.ConditionFalse), at(3, corev1.ConditionTrue), at(4, corev1.ConditionFalse)
	for name, tc := range map[string]struct {
		seen []xpv2.Condition
		want *v1alpha1.Outage
	}{
		"AClusterThatIsNewHadNone":             {[]xpv2.Condition{unknown, up, up}, nil},
		"NorHadOneWhoseCredentialsCameAfterIt": {[]xpv2.Condition{unknown, down, upAgain}, nil},
		"ItBeginsWhenItCannotBeReachedAnyMore": {[]xpv2.Condition{unknown, up, down, down}, &v1alpha1.Outage{Since: metav1.Unix(2, 0)}},
		"ItEndsWhenItIsReachable":              {[]xpv2.Condition{unknown, up, down, upAgain, upAgain}, &v1alpha1.Outage{Since: metav1.Unix(2, 0), Until: ptr.To(metav1.Unix(3, 0))}},
		"TheLastOneIsReported":                 {[]xpv2.Condition{unknown, up, down, upAgain, downAgain}, &v1alpha1.Outage{Since: metav1.Unix(4, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			var got *v1alpha1.Outage
			for i := range tc.seen[1:] {
				got = outage(got, tc.seen[i], tc.seen[i+1])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// notTrusted is a probe whose TLS handshake failed.
func notTrusted() probe {
	return probe{err: &target.Error{Kind: target.Unreachable, Ref: target.ClusterRef("c"), Detail: "d", Err: &url.Error{Op: "Get", URL: "https://c", Err: x509.UnknownAuthorityError{}}}}
}
