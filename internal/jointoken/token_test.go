package jointoken

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"

	"github.com/drover-dev/drover/internal/names"
)

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

func TestSecretHalfOfAPublishedToken(t *testing.T) {
	for name, tc := range map[string]struct{ published, want string }{
		"OfThisToken":    {"abcdef.0123456789abcdef", "0123456789abcdef"},
		"OfAnotherToken": {"abcdeg.0123456789abcdef", ""},
		"OfNoToken":      {"abcdef.short", ""},
		"OfNothing":      {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := secretHalf("abcdef", tc.published); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestRenewal(t *testing.T) {
	at := func(d time.Duration) time.Time { return start.Add(d) }
	fresh := lease{groups: "system:bootstrappers:a", minted: start, expires: at(time.Hour)}
	last := lease{groups: "system:bootstrappers:a", minted: start, expires: at(4 * time.Hour)}
	cases := map[string]struct {
		reason  string
		lease   lease
		frozen  bool
		now     time.Duration
		renewal time.Time
		current bool
	}{
		"YoungLease":       {"A young lease is left alone.", fresh, false, 29 * time.Minute, at(30 * time.Minute), true},
		"HalfOver":         {"A lease is renewed when half of it is over.", fresh, false, 30 * time.Minute, at(30 * time.Minute), false},
		"Expired":          {"An expired lease is renewed.", fresh, true, 2 * time.Hour, at(30 * time.Minute), false},
		"NoExpiration":     {"The API server takes a token without expiration for expired.", lease{groups: "system:bootstrappers:a", minted: start}, false, 0, time.Time{}.Add(-30 * time.Minute), false},
		"OtherGroups":      {"The token authenticates as requested.", lease{minted: start, expires: at(time.Hour)}, false, 0, at(30 * time.Minute), false},
		"LastLease":        {"The secret half is replaced when half of its last lease is over.", last, false, 210 * time.Minute, at(210 * time.Minute), false},
		"LastLeaseOfAVM":   {"The secret half of a VM cannot be replaced.", last, true, 210 * time.Minute, time.Time{}, true},
		"AfterTheLifeOfIt": {"Nor can it get another lease after the end of its life.", fresh, true, 5 * time.Hour, time.Time{}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := request()
			r.Frozen = tc.frozen
			if got := r.renewal(tc.lease, at(tc.now)); !got.Equal(tc.renewal) {
				t.Errorf("%s\nrenewal: want %s, got %s", tc.reason, tc.renewal, got)
			}
			if got := tc.lease.isCurrent(r, at(tc.now)); got != tc.current {
				t.Errorf("%s\ncurrent: want %v, got %v", tc.reason, tc.current, got)
			}
		})
	}
}

func TestChoiceOfTheSecretHalf(t *testing.T) {
	half := func(secret string, age time.Duration) credential {
		return credential{secret: secret, minted: start.Add(-age)}
	}
	const young, old = 30 * time.Minute, 4 * time.Hour
	cases := map[string]struct {
		reason              string
		published, inTarget credential
		frozen              bool
		want                credential
	}{
		"Published":              {"A VM may have it.", half("a", young), half("b", young), false, half("a", young)},
		"OnlyInTheTarget":        {"The Secret was not written before a crash.", credential{}, half("b", young), false, half("b", young)},
		"ReplacedInTheTarget":    {"The Secret was not written before a crash.", half("a", old), half("b", young), false, half("b", young)},
		"SpentEverywhere":        {"Another one is minted.", half("a", old), half("b", old), false, credential{}},
		"Nowhere":                {"One is minted.", credential{}, credential{}, false, credential{}},
		"PublishedAndFrozen":     {"The VM has no other one.", half("a", old), half("b", young), true, half("a", old)},
		"TheEarlierTimeCounts":   {"No edit prolongs a life.", half("a", young), half("a", old), false, credential{}},
		"TheEarlierTimeCounts2":  {"No edit prolongs a life.", half("a", old), half("a", young), false, credential{}},
		"ATimeThatIsKnownCounts": {"The other Secret has lost its annotation.", credential{secret: "a"}, half("a", young), false, half("a", young)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := request()
			r.Frozen = tc.frozen
			if got := r.choose(tc.published, tc.inTarget, start); got != tc.want {
				t.Errorf("%s\nwant %+v, got %+v", tc.reason, tc.want, got)
			}
		})
	}
}
