package jointoken

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/target"
)

func TestAMachineCostsTwoWritesAndADeletion(t *testing.T) {
	f := newFixture(t)
	if s := f.observe(); s.Published || s.Details != nil || s.Revoked {
		t.Errorf("before: %+v", s)
	}
	s := f.apply()
	f.expectCalls("control get", "target get configmap", "target create secret", "control create")
	f.expectMatch(s)

	token := f.token()
	wantLabels := map[string]string{clusterv1alpha1.LabelJoinToken: "uid-1", clusterv1alpha1.LabelConfig: "config"}
	for k, want := range wantLabels {
		if got := token.Labels[k]; got != want {
			t.Errorf("label %s of the token: want %q, got %q", k, want, got)
		}
	}
	wantData := map[string]string{
		"expiration": "2026-01-01T01:00:00Z", "usage-bootstrap-authentication": "true",
		"auth-extra-groups": "system:bootstrappers:a", "description": "machine ns/m", "token-id": names.TokenID("uid-1"),
	}
	for k, want := range wantData {
		if got := string(token.Data[k]); got != want {
			t.Errorf("%s of the token: want %q, got %q", k, want, got)
		}
	}

	secret := f.secret()
	wantUserData := "join https://self as " + string(secret.Data["token"]) + " with Y2E= for uid-1 of config"
	if got := string(secret.Data["userData"]); got != wantUserData {
		t.Errorf("user data: want %q, got %q", wantUserData, got)
	}
	if string(secret.Data["server"]) != "https://self" || string(secret.Data["ca.crt"]) != "ca" || secret.Type != "connection.crossplane.io/v1alpha1" {
		t.Errorf("Secret %+v", secret)
	}
	if !metav1.IsControlledBy(secret, f.m) || secret.OwnerReferences[0].Kind != "Machine" || secret.Labels[machinev1alpha1.LabelMachine] != "m" {
		t.Errorf("metadata of the Secret: %+v", secret.ObjectMeta)
	}
	if s.Hash != request().Hash() || !s.Renew.Equal(start.Add(30*time.Minute)) {
		t.Errorf("hash %s, renewal %s", s.Hash, s.Renew)
	}

	s = f.apply(frozen, revoked)
	f.expectCalls("target delete secret")
	if f.token() != nil || !s.Revoked || !s.Published || !s.Renew.IsZero() {
		t.Errorf("revoked: %+v", s)
	}
	if got := f.secret(); got == nil || string(got.Data["userData"]) != wantUserData {
		t.Errorf("the Secret did not stay as it was: %+v", got)
	}
	f.apply(frozen, revoked)
	f.observe()
	f.expectCalls()
}

func TestNothingIsCalledOrWrittenAtRest(t *testing.T) {
	cases := map[string]struct {
		reason  string
		changes []func(*Request)
		prepare func(*fixture)
	}{
		"BeforeTheVM": {reason: "A published token with a lease that lasts needs nothing."},
		"FrozenWithAnotherTemplate": {
			reason:  "User data of a VM is never made again.",
			changes: []func(*Request){frozen, func(r *Request) { r.UserData = "" }},
		},
		"GroupsInAnotherOrder": {
			reason:  "Groups are a set.",
			changes: []func(*Request){func(r *Request) { r.Groups = []string{"system:bootstrappers:b", "system:bootstrappers:a"} }},
			prepare: func(f *fixture) {
				f.apply(func(r *Request) { r.Groups = []string{"system:bootstrappers:a", "system:bootstrappers:b"} })
			},
		},
		"FrozenAtTheEndOfItsTotalLife": {
			reason:  "A token that no VM can replace is left to expire.",
			changes: []func(*Request){frozen},
			prepare: func(f *fixture) { f.after(5 * time.Hour) },
		},
		"Revoked": {
			reason:  "A token that is known to be gone is not deleted again.",
			changes: []func(*Request){revoked},
			prepare: func(f *fixture) { f.apply(revoked) },
		},
		"RevokedForGood": {
			reason:  "A stale request mints no token that was revoked.",
			prepare: func(f *fixture) { f.apply(revoked) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.apply()
			if tc.prepare != nil {
				tc.prepare(f)
			}
			f.calls = nil
			f.connErr = errors.New("the cluster was connected to")
			for range 3 {
				f.observe()
				f.apply(tc.changes...)
			}
			if len(f.calls) > 0 {
				t.Errorf("%s\ncalls %v", tc.reason, f.calls)
			}
		})
	}
}

func TestALeaseIsRenewedWithTheSameSecretHalf(t *testing.T) {
	f := newFixture(t)
	half := f.expectMatch(f.apply())
	f.calls = nil
	f.after(30 * time.Minute)
	s := f.apply()
	f.expectCalls("target get configmap", "target get secret", "target update secret")
	if got := f.expectMatch(s); got != half {
		t.Error("the renewed token has another secret half")
	}
	if f.expires() != 90*time.Minute || !s.Renew.Equal(start.Add(time.Hour)) {
		t.Errorf("expires after %s, renewal at %s", f.expires(), s.Renew)
	}
	f.after(time.Hour)
	f.calls = nil
	s = f.apply(frozen)
	f.expectCalls("target get secret", "target update secret")
	if f.expires() != 2*time.Hour || !s.Published {
		t.Errorf("frozen: expires after %s, published %v", f.expires(), s.Published)
	}
	if len(f.events.all) != 2 || !strings.HasPrefix(f.events.all[0], "TokenRenewed: Renewed bootstrap token "+names.TokenID("uid-1")) {
		t.Errorf("events %v", f.events.all)
	}
	f.expectNoSecretIn(half, f.events.all...)
}

func (f *fixture) expectNoSecretIn(half string, texts ...string) {
	f.Helper()
	for _, text := range texts {
		if strings.Contains(text, half) {
			f.Errorf("the secret half is in %q", text)
		}
	}
}

func TestTheTokenIsBroughtInLineWithTheRequest(t *testing.T) {
	f := newFixture(t)
	half := f.expectMatch(f.apply())
	s := f.apply(func(r *Request) { r.Groups = []string{"system:bootstrappers:b"} })
	if got := string(f.token().Data["auth-extra-groups"]); got != "system:bootstrappers:b" || f.expectMatch(s) != half {
		t.Errorf("groups %q", got)
	}
	s = f.apply(func(r *Request) { r.Groups = nil })
	if _, ok := f.token().Data["auth-extra-groups"]; ok || f.expectMatch(s) != half {
		t.Error("the token has groups, none are requested")
	}
	f.restart()
	token := f.token()
	token.Data["expiration"] = []byte("tomorrow")
	f.must(f.target.Tracker().Update(secrets, token, "kube-system"))
	if f.expectMatch(f.apply()) != half || f.expires() != time.Hour {
		t.Errorf("an expiration that cannot be read: expires after %s", f.expires())
	}
}

var secrets = corev1.SchemeGroupVersion.WithResource("secrets")

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func TestTheTotalLifeOfATokenThatNoVMHasIsBounded(t *testing.T) {
	f := newFixture(t)
	halves := map[string]time.Duration{}
	// A restart each time must not prolong the life.
	for d := time.Duration(0); d < 12*time.Hour; d += 10 * time.Minute {
		f.after(d)
		f.restart()
		half := f.expectMatch(f.apply())
		if _, ok := halves[half]; !ok {
			halves[half] = d
		}
		if life := f.expires() - halves[half]; life > 4*time.Hour {
			t.Fatalf("a secret half lives for %s", life)
		}
		if left := halves[half] + 4*time.Hour - d; left < 3*time.Hour {
			t.Fatalf("a VM created after %s has %s to join, less than its creation timeout", d, left)
		}
		f.expectNoSecretIn(half, f.events.all...)
	}
	if len(halves) != 12 {
		t.Errorf("%d secret halves in 12 h", len(halves))
	}
	if got := f.events.all[len(f.events.all)-1]; !strings.Contains(strings.Join(f.events.all, "\n"), "TokenReplaced: Minted bootstrap token") {
		t.Errorf("events %v", got)
	}
}

func TestTheTotalLifeOfATokenThatAVMMayHaveIsBounded(t *testing.T) {
	for name, restart := range map[string]bool{"InOneProcess": false, "WithRestarts": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			half := f.expectMatch(f.apply())
			want := f.secret().ResourceVersion
			s := State{}
			for d := time.Duration(0); d < 12*time.Hour; d += 25 * time.Minute {
				f.after(d)
				if restart {
					f.restart()
				}
				s = f.apply(frozen)
			}
			if f.expires() != 4*time.Hour || string(f.token().Data["token-secret"]) != half {
				t.Errorf("expires after %s", f.expires())
			}
			if !s.Published || !s.Renew.IsZero() || f.secret().ResourceVersion != want {
				t.Errorf("state %+v", s)
			}
			// The token cleaner of the cluster deletes it: it is not minted again.
			f.must(f.target.Tracker().Delete(secrets, "kube-system", f.token().Name))
			f.restart()
			f.calls = nil
			f.apply(frozen)
			f.apply(frozen)
			f.expectCalls("control get", "target get secret")
		})
	}
}

// TestTheTotalLifeIsBoundedWhileCreationTimeoutStandsStill has a provider begin and refuse
// the creation of the VM for ever: the Machine never fails by its creationTimeout.
func TestTheTotalLifeIsBoundedWhileCreationTimeoutStandsStill(t *testing.T) {
	f := newFixture(t)
	since := map[string]time.Duration{}
	for d, began := time.Duration(0), false; d < 24*time.Hour; d, began = d+10*time.Minute, !began {
		f.after(d)
		f.restart()
		if began {
			f.apply(frozen)
		} else {
			f.apply()
		}
		token := f.token()
		half := string(token.Data["token-secret"])
		if _, ok := since[half]; !ok {
			since[half] = d
		}
		if life := expiration(token).Sub(start.Add(since[half])); life > 4*time.Hour {
			t.Fatalf("after %s a secret half may live for %s", d, life)
		}
	}
	if len(since) < 6 {
		t.Errorf("%d secret halves in 24 h: each lives for 4 h at most", len(since))
	}
}

func TestTheTotalLifeIsBoundedEvenIfTheSecretIsForged(t *testing.T) {
	f := newFixture(t)
	half := f.expectMatch(f.apply())
	s := f.secret()
	s.Annotations[annotationMinted] = start.Add(9 * time.Hour).Format(time.RFC3339)
	f.must(f.Client.Update(t.Context(), s))
	f.restart()
	f.apply()
	if got := mintedAt(f.secret()); !got.Equal(start) {
		t.Errorf("the Secret has the time %s", got)
	}
	f.after(3*time.Hour + 30*time.Minute)
	if f.expectMatch(f.apply()) == half {
		t.Error("the old secret half was renewed")
	}
}

func TestARestartReusesTheSecretHalf(t *testing.T) {
	f := newFixture(t)
	half := f.expectMatch(f.apply())
	f.restart()
	f.calls = nil
	if !f.observe().Published {
		t.Error("the first lease is known from the Secret")
	}
	if got := f.expectMatch(f.apply()); got != half {
		t.Error("another secret half was minted")
	}
	f.apply()
	f.expectCalls("control get", "target get configmap", "target get secret")
}

func TestARestartReportsARenewedLeaseOnceItWasRead(t *testing.T) {
	f := newFixture(t)
	f.apply()
	f.after(50 * time.Minute)
	f.apply()
	f.restart()
	f.after(70 * time.Minute)
	if f.observe().Published {
		t.Error("nothing proves that the token is valid")
	}
	if s := f.apply(); !s.Published {
		t.Error("the token is valid")
	}
}

func TestARestartBringsBackATokenThatWasDeletedAsItWas(t *testing.T) {
	for name, change := range map[string]func(*Request){"BeforeTheVM": func(*Request) {}, "OfAVM": frozen} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			half := f.expectMatch(f.apply())
			f.must(f.target.Tracker().Delete(secrets, "kube-system", f.token().Name))
			f.restart()
			f.after(50 * time.Minute)
			if got := f.expectMatch(f.apply(change)); got != half {
				t.Error("a VM that boots with the old token cannot join")
			}
			if want := 110 * time.Minute; f.expires() != want {
				t.Errorf("expires after %s, want a whole lease, %s", f.expires(), want)
			}
		})
	}
}

func TestARestartDoesNotMintForAJoinedMachine(t *testing.T) {
	f := newFixture(t)
	f.apply()
	f.apply(frozen, revoked)
	f.restart()
	f.calls = nil
	f.observe()
	for range 3 {
		if s := f.apply(frozen, revoked); !s.Revoked || !s.Published {
			t.Errorf("state %+v", s)
		}
	}
	f.expectCalls("control get", "target get secret")
}

func TestARestartFinishesARevocation(t *testing.T) {
	f := newFixture(t)
	f.apply()
	f.restart()
	f.calls = nil
	f.apply(frozen, revoked)
	f.apply(frozen, revoked)
	f.expectCalls("control get", "target get secret", "target delete secret")
	if f.token() != nil {
		t.Error("the token is there")
	}
}

func TestEveryCrashEndsWithOneTokenAndASecretThatMatches(t *testing.T) {
	cases := map[string]struct {
		reason  string
		prepare func(*fixture) // before the attempt
		lose    string
		fail    string
	}{
		"TheTokensAnswerIsLost":     {reason: "The second attempt takes the token of the first.", lose: "target create secret"},
		"CrashBetweenTheWrites":     {reason: "The second attempt takes the token of the first.", fail: "control create"},
		"TheSecretsAnswerIsLost":    {reason: "The Secret is read again.", lose: "control create"},
		"TheTokenIsNotMade":         {reason: "Nothing was done.", fail: "target create secret"},
		"TheEndpointIsNotRead":      {reason: "Without an endpoint nothing is minted.", fail: "target get configmap"},
		"CrashAmidAReplacement":     {reason: "The new secret half is published.", prepare: overAge, fail: "control update"},
		"ReplacementsAnswerIsLost":  {reason: "The new secret half is published.", prepare: overAge, lose: "target update secret"},
		"ReplacedSecretsAnswerLost": {reason: "The Secret is read again.", prepare: overAge, lose: "control update"},
		"RenewalsAnswerIsLost": {
			reason:  "The lease is read again.",
			prepare: func(f *fixture) { f.apply(); f.after(40 * time.Minute) },
			lose:    "target update secret",
		},
	}
	for name, tc := range cases {
		for again, restart := range map[string]bool{"ThenRetry": false, "ThenRestart": true} {
			t.Run(name+again, func(t *testing.T) {
				f := newFixture(t)
				if tc.prepare != nil {
					tc.prepare(f)
				}
				f.lose, f.fail = tc.lose, tc.fail
				if _, err := f.tryApply(); !errors.Is(err, errLost) {
					t.Fatalf("error %v", err)
				}
				minted := f.token()
				f.lose, f.fail = "", ""
				if restart {
					f.restart()
				}
				half := f.expectMatch(f.apply())
				if minted != nil && string(minted.Data["token-secret"]) != half {
					t.Errorf("%s\nanother secret half was minted", tc.reason)
				}
				f.calls = nil
				f.apply()
				f.expectCalls()
			})
		}
	}
}

// overAge has a token at the end of its total life.
func overAge(f *fixture) {
	f.apply()
	f.after(4 * time.Hour)
}

func TestATokenOfAnotherObjectIsNeverTaken(t *testing.T) {
	other := machine(func(m *machinev1alpha1.Machine) { m.UID = "other" })
	cases := map[string]struct {
		reason string
		change func(*corev1.Secret)
	}{
		"OfAnotherMachine": {"It carries the UID of another Machine.", func(*corev1.Secret) {}},
		"OfNoMachine":      {"A user made it.", func(s *corev1.Secret) { s.Labels = nil }},
		"OfAnotherType": {"It is no bootstrap token.", func(s *corev1.Secret) {
			s.Labels[clusterv1alpha1.LabelJoinToken], s.Type = "uid-1", corev1.SecretTypeOpaque
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			half := credential{secret: "0123456789abcdef", minted: start}
			foreign := tokenSecret(other, f.cluster, request(), half, nil, start)
			foreign.Name = "bootstrap-token-" + names.TokenID("uid-1")
			tc.change(foreign)
			f.must(f.target.Tracker().Add(foreign))
			_, err := f.tryApply()
			if !errors.Is(err, errForeign) || !strings.Contains(err.Error(), names.TokenID("uid-1")) {
				t.Errorf("%s\nerror %v does not name the token", tc.reason, err)
			}
			f.expectNoSecretIn("0123456789abcdef", err.Error())
			if f.secret() != nil {
				t.Error("it was published")
			}
			if s := f.apply(revoked); !s.Revoked || f.token() == nil {
				t.Errorf("revoked %v: nothing of this Machine is there to be deleted, and nothing else may be", s.Revoked)
			}
		})
	}
}

func TestASecretOfAnotherObjectIsNeverTaken(t *testing.T) {
	f := newFixture(t)
	s := userDataSecret(machine(func(m *machinev1alpha1.Machine) { m.UID = "other" }))
	s.Name = names.UserData("m", "uid-1")
	s.Data = map[string][]byte{clusterv1alpha1.ConnectionToken: []byte(names.TokenID("uid-1") + ".0123456789abcdef")}
	f.must(f.Client.Create(t.Context(), s))
	f.calls = nil
	if _, err := f.Observe(t.Context(), f.m); err == nil || !strings.Contains(err.Error(), "metadata.ownerReferences") {
		t.Errorf("error %v", err)
	}
	if _, err := f.tryApply(); err == nil {
		t.Error("no error")
	}
	f.expectCalls("control get", "control get")
}

func TestTheHashDecides(t *testing.T) {
	changed := func(r *Request) { r.UserData = "another " + template }
	encoded := func(r *Request) { r.Encoding = clusterv1alpha1.UserDataBase64 }
	cases := map[string]struct {
		reason    string
		restart   bool
		changes   []func(*Request)
		tamper    bool
		republish bool
	}{
		"ChangedTemplate":      {reason: "A VM must get what its class asks for.", changes: []func(*Request){changed}, republish: true},
		"ChangedAfterARestart": {reason: "The hash is on the Secret.", restart: true, changes: []func(*Request){changed}, republish: true},
		"ChangedEncoding":      {reason: "The provider of the VM reads another encoding.", changes: []func(*Request){encoded}, republish: true},
		"ChangedWhileFrozen":   {reason: "A VM may have been made from it.", changes: []func(*Request){changed, frozen}},
		"FrozenAfterARestart":  {reason: "A VM may have been made from it.", restart: true, changes: []func(*Request){changed, frozen}},
		"Unchanged":            {reason: "Nothing is filled again.", restart: true},
		"OtherUserData":        {reason: "User data is not filled again to compare it.", restart: true, tamper: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			half := f.expectMatch(f.apply())
			if tc.tamper {
				s := f.secret()
				s.Data[clusterv1alpha1.ConnectionUserData] = []byte("mine")
				f.must(f.Client.Update(t.Context(), s))
			}
			if tc.restart {
				f.restart()
			}
			was := f.secret()
			r := request(tc.changes...)
			s, err := f.Apply(t.Context(), f.m, r)
			if err != nil || !s.Published {
				t.Fatalf("published %v, error %v", s.Published, err)
			}
			now := f.secret()
			if republished := now.ResourceVersion != was.ResourceVersion; republished != tc.republish {
				t.Errorf("%s\nrepublished %v", tc.reason, republished)
			}
			if tc.republish && (s.Hash != r.Hash() || string(now.Data["userData"]) == string(was.Data["userData"])) {
				t.Errorf("%s\nhash %s, user data %s", tc.reason, s.Hash, now.Data["userData"])
			}
			if string(f.token().Data["token-secret"]) != half {
				t.Error("another secret half was minted")
			}
		})
	}
}

func TestChangedUserDataCostsOneWrite(t *testing.T) {
	f := newFixture(t)
	f.apply()
	f.calls = nil
	f.apply(func(r *Request) { r.UserData = "" })
	f.expectCalls("target get configmap", "control update")
	if _, ok := f.secret().Data[clusterv1alpha1.ConnectionUserData]; ok {
		t.Error("there is user data, and none is requested")
	}
}

func TestAnotherEndpointIsPublishedWithTheRenewal(t *testing.T) {
	f := newFixture(t)
	f.apply()
	f.cluster.APIServer = &clusterv1alpha1.APIServer{Endpoint: "https://new"}
	f.cluster.ConfigUID = "restored"
	f.after(40 * time.Minute)
	f.expectMatch(f.apply())
	s := f.secret()
	if string(s.Data["server"]) != "https://new" || !strings.Contains(string(s.Data["userData"]), "https://new") || !strings.HasSuffix(string(s.Data["userData"]), "of restored") {
		t.Errorf("data %s", s.Data)
	}
	if got := f.token().Labels[clusterv1alpha1.LabelConfig]; got != "restored" {
		t.Errorf("the token has the configuration %s: no sweep finds it", got)
	}
}

func TestFrozenWithoutASecretMintsNothing(t *testing.T) {
	f := newFixture(t)
	if s := f.apply(frozen); s.Published || s.Details != nil {
		t.Errorf("state %+v", s)
	}
	f.expectCalls("control get")
}

func TestErrorsLeaveWhatIsKnown(t *testing.T) {
	unreachable := &target.Error{Kind: target.Unreachable, Detail: "refused"}
	cases := map[string]struct {
		reason  string
		connect error
		fail    string
		changes []func(*Request)
		want    string
	}{
		"NoConnection":           {reason: "The caller decides how long a deletion waits.", connect: unreachable, changes: []func(*Request){revoked}, want: "refused"},
		"NoConnectionForRenewal": {reason: "A renewal is tried again.", connect: unreachable, want: "refused"},
		"NoDeletion":             {reason: "The token may be there.", fail: "target delete secret", changes: []func(*Request){revoked}, want: "lost"},
		"TooShortATTL":           {reason: "The field is named.", changes: []func(*Request){func(r *Request) { r.TTL.Duration = time.Second }}, want: "ttl: invalid value 1s: must be 1m0s or more"},
		"TooShortALife":          {reason: "The field is named.", changes: []func(*Request){func(r *Request) { r.MaxLife.Duration = 0 }}, want: "maxLife: invalid value 0s: must be the ttl (1h0m0s) or more"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			half := f.expectMatch(f.apply())
			f.after(40 * time.Minute)
			f.connErr, f.fail = tc.connect, tc.fail
			s, err := f.tryApply(tc.changes...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%s\nerror %v", tc.reason, err)
			}
			if !s.Published || s.Revoked || f.token() == nil {
				t.Errorf("%s\nstate %+v", tc.reason, s)
			}
			f.expectNoSecretIn(half, err.Error())
			f.calls = nil
			f.observe()
			f.observe()
			f.expectCalls("control get")
		})
	}
}

func TestARevocationNeedsNoValidRequest(t *testing.T) {
	f := newFixture(t)
	f.apply()
	f.cluster.APIServer = &clusterv1alpha1.APIServer{Endpoint: "nowhere"}
	if s, err := f.Apply(t.Context(), f.m, Request{Revoked: true}); err != nil || !s.Revoked || f.token() != nil {
		t.Errorf("revoked %v, error %v", s.Revoked, err)
	}
}

func TestOnlyTheTokenThatWasSeenIsDeleted(t *testing.T) {
	f := newFixture(t)
	f.apply()
	token := f.token()
	token.UID = "recreated"
	f.must(f.target.Tracker().Update(secrets, token, "kube-system"))
	if _, err := f.tryApply(revoked); err == nil || f.token() == nil {
		t.Errorf("error %v: a token with another UID was deleted unseen", err)
	}
	if s := f.apply(revoked); !s.Revoked || f.token() != nil {
		t.Errorf("revoked %v", s.Revoked)
	}
}

func TestMemoryHasOneEntryPerMachine(t *testing.T) {
	f := newFixture(t)
	f.apply()
	f.apply(revoked)
	f.m = machine(func(m *machinev1alpha1.Machine) { m.Name, m.UID = "n", "uid-2" })
	f.apply()
	if len(f.entries) != 2 {
		t.Errorf("%d entries of two Machines", len(f.entries))
	}
	f.Forget("uid-1")
	f.Forget("uid-2")
	if len(f.entries) != 0 {
		t.Errorf("%d entries of no Machine", len(f.entries))
	}
}

// TestNoTokenIsMintedForANodeThatIsNotAllowed is about labels and taints that the configuration
// of the cluster does not allow.
func TestNoTokenIsMintedForANodeThatIsNotAllowed(t *testing.T) {
	f := newFixture(t)
	refused := errors.New("spec.metadata.labels: invalid value")
	f.cluster.CheckNode = func(*machinev1alpha1.Machine) error { return refused }
	if _, err := f.tryApply(); !errors.Is(err, refused) {
		t.Fatalf("error %v, want %v", err, refused)
	}
	if f.token() != nil || f.secret() != nil {
		t.Errorf("token %v, Secret %v", f.token(), f.secret())
	}
	f.cluster.CheckNode = func(*machinev1alpha1.Machine) error { return nil }
	f.expectMatch(f.apply())
	// A VM may exist: its token is kept, and its user data cannot change.
	f.cluster.CheckNode = func(*machinev1alpha1.Machine) error { return refused }
	f.after(50 * time.Minute)
	f.expectMatch(f.apply(frozen))
	if s := f.apply(revoked); !s.Revoked || f.token() != nil {
		t.Error("the token is not revoked")
	}
}

// TestTheSecretIsReadFromTheAPIServer: a cache that lacks the Secret would cause a second secret half, which the VM
// does not have.
func TestTheSecretIsReadFromTheAPIServer(t *testing.T) {
	f := newFixture(t)
	before := f.apply()
	f.Client = interceptor.NewClient(f.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return kerrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
		},
	})
	f.restart()
	if after := f.observe(); !after.Published || string(after.Details[clusterv1alpha1.ConnectionToken]) != string(before.Details[clusterv1alpha1.ConnectionToken]) {
		t.Errorf("after a restart with an empty cache: %+v", after)
	}
}
