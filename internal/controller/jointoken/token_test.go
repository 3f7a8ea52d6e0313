package jointoken

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func joinToken(changes ...func(*v1alpha1.JoinToken)) *v1alpha1.JoinToken {
	jt := &v1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j", UID: "uid-1"}}
	jt.Spec.ForProvider.TTL.Duration = time.Hour
	for _, c := range changes {
		c(jt)
	}
	return jt
}

func TestTokenIDIsValidAndComesFromTheUID(t *testing.T) {
	ids := map[string]bool{}
	for _, uid := range []types.UID{"a", "b", "c"} {
		id := names.TokenID(uid)
		if !bootstraputil.IsValidBootstrapTokenID(id) {
			t.Errorf("%q is not valid", id)
		}
		if names.TokenID(uid) != id {
			t.Errorf("UID %s has two IDs", uid)
		}
		ids[id] = true
	}
	if len(ids) != 3 {
		t.Errorf("three UIDs have %d IDs", len(ids))
	}
}

func TestATokenIsRenewedBeforeItLapses(t *testing.T) {
	cases := map[string]struct {
		after time.Duration
		edit  func(*v1alpha1.JoinToken)
		want  bool // up to date
	}{
		"AYoungTokenIsLeftAlone":    {after: 29 * time.Minute, want: true},
		"AtHalfItsLifeItIsRenewed":  {after: 30 * time.Minute},
		"AnExpiredOneIsRenewed":     {after: 2 * time.Hour},
		"AnotherDescriptionIsPutIn": {edit: func(jt *v1alpha1.JoinToken) { jt.Spec.ForProvider.Description = "new" }},
		"OtherGroupsArePutIn":       {edit: func(jt *v1alpha1.JoinToken) { jt.Spec.ForProvider.Groups = []string{"system:bootstrappers:a"} }},
		"TheSameGroupsAreNoChange":  {edit: func(jt *v1alpha1.JoinToken) { jt.Spec.ForProvider.Groups = nil }, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			jt := joinToken()
			s := secretFor(jt, "config", "abcdef", "0123456789abcdef", start)
			if tc.edit != nil {
				tc.edit(jt)
			}
			if got := upToDate(s, jt.Spec.ForProvider, start.Add(tc.after)); got != tc.want {
				t.Errorf("up to date: %v, want %v", got, tc.want)
			}
		})
	}
	t.Run("OneWithoutAnExpirationThatCanBeRead", func(t *testing.T) {
		s := secretFor(joinToken(), "config", "abcdef", "0123456789abcdef", start)
		s.Data["expiration"] = []byte("tomorrow")
		if upToDate(s, joinToken().Spec.ForProvider, start) {
			t.Error("is up to date, but the API server takes it for expired")
		}
	})
}

func TestPollComesInTimeForTheRenewal(t *testing.T) {
	hook := pollUntilRenewal(func() time.Time { return start })
	expires := func(in time.Duration) func(*v1alpha1.JoinToken) {
		return func(jt *v1alpha1.JoinToken) {
			at := metav1.NewTime(start.Add(in))
			jt.Status.AtProvider.ExpirationTime = &at
		}
	}
	revoked := func(jt *v1alpha1.JoinToken) { jt.Spec.ForProvider.Revoked = true }
	for name, tc := range map[string]struct {
		jt   *v1alpha1.JoinToken
		want time.Duration
	}{
		"NothingIsKnown":     {joinToken(), 10 * time.Minute},
		"TheRenewalIsLater":  {joinToken(expires(time.Hour)), 10 * time.Minute},
		"TheRenewalIsSooner": {joinToken(expires(32 * time.Minute)), 2 * time.Minute},
		"TheRenewalIsDue":    {joinToken(expires(0)), time.Second},
		"ItIsToBeRevoked":    {joinToken(revoked, expires(0)), time.Second},
		"ItIsRevoked":        {joinToken(revoked, func(jt *v1alpha1.JoinToken) { (&external{shared: &shared{}}).reportRevoked(jt) }), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hook(tc.jt, 10*time.Minute); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestSecretHalfOfWhatWasPublished(t *testing.T) {
	for name, tc := range map[string]struct{ published, want string }{
		"OfThisToken":    {"abcdef.0123456789abcdef", "0123456789abcdef"},
		"OfAnotherToken": {"abcdeg.0123456789abcdef", ""},
		"OfNoToken":      {"abcdef.short", ""},
		"OfNothing":      {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := secretHalf("abcdef", []byte(tc.published)); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestBadInputIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want []string
	}{
		"AnExternalNameThatIsNoTokenID": {checkID("UPPER!"), []string{"crossplane.io/external-name", "UPPER!", "6 characters"}},
		"ABundleThatIsNoPEM":            {checkCA(&v1alpha1.APIServer{CABundle: []byte("x")}), []string{"spec.apiServer.caBundle", "PEM"}},
		"ATTLThatIsTooShort":            {checkTTL(0), []string{"spec.forProvider.ttl", "0s", "1m"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, w := range tc.want {
				if tc.err == nil || !strings.Contains(tc.err.Error(), w) {
					t.Errorf("error %v does not say %q", tc.err, w)
				}
			}
		})
	}
}

func TestEndpoint(t *testing.T) {
	says, ourselves := endpoint{"https://says", []byte("says")}, endpoint{"https://self", []byte("self")}
	for name, tc := range map[string]struct {
		override *v1alpha1.APIServer
		says     endpoint
		server   string
		ca       string
	}{
		"TheConfigurationComesFirst":       {&v1alpha1.APIServer{Endpoint: "https://conf", CABundle: []byte("conf")}, says, "https://conf", "conf"},
		"WhatItLeavesOutTheClusterSays":    {&v1alpha1.APIServer{Endpoint: "https://conf"}, says, "https://conf", "says"},
		"ThenTheCluster":                   {nil, says, "https://says", "says"},
		"ThenTheWayWeUseOurselves":         {nil, endpoint{}, "https://self", "self"},
		"AClusterThatSaysNoCALeavesUsOurs": {nil, endpoint{server: "https://says"}, "https://says", "self"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := endpointOf(tc.override, tc.says, ourselves); got.server != tc.server || string(got.ca) != tc.ca {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestClusterInfoAsKubeadmWritesIt(t *testing.T) {
	got, err := parseClusterInfo(`
apiVersion: v1
kind: Config
clusters: [{name: "", cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: Y2E=}}]
`)
	if err != nil || got.server != "https://10.0.0.1:6443" || string(got.ca) != "ca" {
		t.Errorf("%+v, error %v", got, err)
	}
	if got, err := parseClusterInfo(""); err != nil || got.server != "" {
		t.Errorf("an empty one: %+v, error %v", got, err)
	}
}
