package jointoken

import (
	"errors"
	"strings"
	"testing"
	"time"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/target"
)

// texts keeps what was told to users.
type texts struct{ all []string }

func (e *texts) Event(_ runtime.Object, ev event.Event) {
	e.all = append(e.all, string(ev.Reason)+": "+ev.Message)
}
func (e *texts) WithAnnotations(...string) event.Recorder { return e }

func named(jt *v1alpha1.JoinToken) {
	meta.SetExternalName(jt, names.TokenID(jt.GetUID()))
	jt.SetFinalizers([]string{managed.FinalizerName})
}

func newExternal(kube *fake.Clientset, published ...*corev1.Secret) (*external, *texts) {
	e := &texts{}
	b := crfake.NewClientBuilder()
	for _, s := range published {
		b = b.WithObjects(s)
	}
	return &external{
		cluster: cluster{kube: kube, ourselves: endpoint{"https://self", []byte("ca")}, classify: func(err error) error { return err }},
		shared:  &shared{control: b.Build(), record: e, now: func() time.Time { return start }},
	}, e
}

func TestLifeOfAToken(t *testing.T) {
	kube := fake.NewClientset()
	x, e := newExternal(kube)
	jt := joinToken(named)

	o, err := x.Observe(t.Context(), jt)
	if err != nil || !o.ResourceExists || o.ResourceUpToDate {
		t.Fatalf("before: %+v, error %v; it must ask for Update, not for Create", o, err)
	}
	u, err := x.Update(t.Context(), jt)
	if err != nil {
		t.Fatal(err)
	}
	token := string(u.ConnectionDetails[v1alpha1.ConnectionToken])
	if !bootstraputil.IsValidBootstrapToken(token) || string(u.ConnectionDetails[v1alpha1.ConnectionServer]) != "https://self" || string(u.ConnectionDetails[v1alpha1.ConnectionCA]) != "ca" {
		t.Errorf("details %s", u.ConnectionDetails)
	}
	s, err := kube.CoreV1().Secrets("kube-system").Get(t.Context(), "bootstrap-token-"+names.TokenID("uid-1"), metav1.GetOptions{})
	if err != nil || string(s.Data["expiration"]) != "2026-01-01T01:00:00Z" || string(s.Data["usage-bootstrap-authentication"]) != "true" {
		t.Errorf("token %v, error %v", s, err)
	}
	if jt.GetCondition(xpv1.TypeReady).Reason != xpv1.ReasonAvailable || jt.Status.AtProvider.TokenID != names.TokenID("uid-1") {
		t.Errorf("status %+v", jt.Status)
	}

	// The answer to Create was lost: the same token is found.
	again := joinToken(named)
	if o, err := x.Observe(t.Context(), again); err != nil || !o.ResourceUpToDate || string(o.ConnectionDetails[v1alpha1.ConnectionToken]) != token {
		t.Errorf("after: %+v, error %v", o.ResourceUpToDate, err)
	}

	x.now = func() time.Time { return start.Add(40 * time.Minute) }
	if o, err := x.Observe(t.Context(), jt); err != nil || o.ResourceUpToDate {
		t.Errorf("at half its life it is up to date, error %v", err)
	}
	u, err = x.Update(t.Context(), jt)
	if err != nil || string(u.ConnectionDetails[v1alpha1.ConnectionToken]) != token || jt.Status.AtProvider.ExpirationTime.Sub(start) != 100*time.Minute {
		t.Errorf("renewed until %v, error %v", jt.Status.AtProvider.ExpirationTime, err)
	}

	at := metav1.NewTime(start)
	jt.SetDeletionTimestamp(&at)
	if o, err := x.Observe(t.Context(), jt); err != nil || !o.ResourceExists {
		t.Errorf("deleting: %+v, error %v", o, err)
	}
	if _, err := x.Delete(t.Context(), jt); err != nil {
		t.Fatal(err)
	}
	if o, err := x.Observe(t.Context(), jt); err != nil || o.ResourceExists {
		t.Errorf("deleted: %+v, error %v", o, err)
	}
	_, secret, _ := strings.Cut(token, ".")
	for _, text := range e.all {
		if strings.Contains(text, secret) {
			t.Errorf("the event %q tells the secret half", text)
		}
	}
}

func TestUserDataIsPublishedWithAllFilledIn(t *testing.T) {
	x, _ := newExternal(fake.NewClientset())
	jt := joinToken(named, func(jt *v1alpha1.JoinToken) {
		jt.Spec.ForProvider.UserData = "join $(server) as $(token) with $(ca.crt|base64), $(this) stays"
	})
	u, err := x.Update(t.Context(), jt)
	if err != nil {
		t.Fatal(err)
	}
	want := "join https://self as " + string(u.ConnectionDetails[v1alpha1.ConnectionToken]) + " with Y2E=, $(this) stays"
	if got := string(u.ConnectionDetails[v1alpha1.ConnectionUserData]); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if o, err := x.Observe(t.Context(), jt); err != nil || string(o.ConnectionDetails[v1alpha1.ConnectionUserData]) != want {
		t.Errorf("when looked at again: %q, %v", o.ConnectionDetails[v1alpha1.ConnectionUserData], err)
	}
	jt.Spec.ForProvider.UserData = ""
	if o, err := x.Observe(t.Context(), jt); err != nil || len(o.ConnectionDetails) != 3 {
		t.Errorf("without any: %d details, %v", len(o.ConnectionDetails), err)
	}
}

func TestUserDataIsPublishedAsItIsAskedFor(t *testing.T) {
	x, _ := newExternal(fake.NewClientset())
	jt := joinToken(named, func(jt *v1alpha1.JoinToken) {
		jt.Spec.ForProvider.UserData, jt.Spec.ForProvider.UserDataEncoding = "join $(server)", v1alpha1.UserDataBase64
	})
	u, err := x.Update(t.Context(), jt)
	if got := string(u.ConnectionDetails[v1alpha1.ConnectionUserData]); err != nil || got != "am9pbiBodHRwczovL3NlbGY=" {
		t.Errorf("%q, error %v", got, err)
	}
}

func TestAnEndpointThatIsNoURLIsNamed(t *testing.T) {
	for server, ok := range map[string]bool{
		"https://10.0.0.1:6443": true, "https://[fd00::1]:6443": true, "https://api.example.org/k8s/a": true,
		"": false, "10.0.0.1:6443": false, "https://": false, `https://a" b`: false, `https://a\b`: false,
	} {
		if err := (endpoint{server: server}).check(); (err == nil) != ok {
			t.Errorf("%q: %v", server, err)
		}
	}
}

func TestARevokedTokenIsGoneForGoodAndWhatWasPublishedStays(t *testing.T) {
	kube := fake.NewClientset()
	jt := joinToken(named, func(jt *v1alpha1.JoinToken) {
		jt.Namespace, jt.Spec.WriteConnectionSecretToReference = "ns", &xpv1.LocalSecretReference{Name: "user-data"}
	})
	published := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "user-data"}, Data: map[string][]byte{"userData": []byte("x")}}
	x, _ := newExternal(kube, published)
	if _, err := x.Update(t.Context(), jt); err != nil {
		t.Fatal(err)
	}
	jt.Spec.ForProvider.Revoked = true
	if o, err := x.Observe(t.Context(), jt); err != nil || !o.ResourceExists || o.ResourceUpToDate || string(o.ConnectionDetails["userData"]) != "x" {
		t.Fatalf("%+v, error %v: it must ask for Update", o, err)
	}
	u, err := x.Update(t.Context(), jt)
	if err != nil || string(u.ConnectionDetails["userData"]) != "x" {
		t.Errorf("published %v, error %v", u.ConnectionDetails, err)
	}
	if l, err := kube.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{}); err != nil || len(l.Items) != 0 {
		t.Errorf("%d tokens, error %v", len(l.Items), err)
	}
	// Whoever looks again makes none.
	o, err := x.Observe(t.Context(), jt)
	if err != nil || !o.ResourceExists || !o.ResourceUpToDate || string(o.ConnectionDetails["userData"]) != "x" {
		t.Errorf("%+v, error %v", o, err)
	}
	if c := jt.GetCondition(xpv1.TypeReady); c.Status != corev1.ConditionTrue || c.Reason != v1alpha1.ReasonRevoked || jt.Status.AtProvider.ExpirationTime != nil {
		t.Errorf("status %+v", jt.Status)
	}
	// Nothing is left to delete.
	now := metav1.Now()
	jt.DeletionTimestamp = &now
	if o, err := x.Observe(t.Context(), jt); err != nil || o.ResourceExists {
		t.Errorf("%+v, error %v", o, err)
	}
}

func TestATokenThatWasLostComesBackAsItWas(t *testing.T) {
	token := names.TokenID("uid-1") + ".0123456789abcdef"
	x, _ := newExternal(fake.NewClientset(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "conn"}, Data: map[string][]byte{v1alpha1.ConnectionToken: []byte(token)},
	})
	jt := joinToken(named, func(jt *v1alpha1.JoinToken) {
		jt.SetWriteConnectionSecretToReference(&xpv1.LocalSecretReference{Name: "conn"})
	})
	if u, err := x.Update(t.Context(), jt); err != nil || string(u.ConnectionDetails[v1alpha1.ConnectionToken]) != token {
		t.Errorf("error %v, or another token: a VM that boots with the old one cannot join", err)
	}
}

func TestATokenOfAnotherIsNotTouched(t *testing.T) {
	other := secretFor(joinToken(func(jt *v1alpha1.JoinToken) { jt.UID = "other" }), "config", names.TokenID("uid-1"), "0123456789abcdef", start)
	kube := fake.NewClientset(other)
	x, _ := newExternal(kube)
	jt := joinToken(named)
	if _, err := x.Observe(t.Context(), jt); err == nil || !strings.Contains(err.Error(), names.TokenID("uid-1")) {
		t.Errorf("error %v does not name the token", err)
	}
	at := metav1.NewTime(start)
	jt.SetDeletionTimestamp(&at)
	if o, err := x.Observe(t.Context(), jt); err != nil || o.ResourceExists {
		t.Errorf("deleting: %+v, error %v", o, err)
	}
}

func TestAnUnreachableClusterKeepsAJoinTokenForAMoment(t *testing.T) {
	unreachable := &target.Error{Kind: target.Unreachable, Detail: "refused"}
	deleting := func(since, expires time.Duration) *v1alpha1.JoinToken {
		jt := joinToken(named)
		at := metav1.NewTime(start.Add(-since))
		jt.SetDeletionTimestamp(&at)
		if expires != 0 {
			e := metav1.NewTime(start.Add(expires))
			jt.Status.AtProvider.ExpirationTime = &e
		}
		return jt
	}
	for name, tc := range map[string]struct {
		jt    *v1alpha1.JoinToken
		waits bool
	}{
		"ATokenThatLivesIsWaitedFor": {deleting(time.Second, time.Hour), true},
		"ButNotForLong":              {deleting(abandonAfter+time.Second, time.Hour), false},
		"AnExpiredOneIsNot":          {deleting(time.Second, -time.Minute), false},
		"NorOneThatWasNeverSeen":     {deleting(time.Second, 0), false},
	} {
		t.Run(name, func(t *testing.T) {
			x, _ := newExternal(fake.NewClientset())
			x.err = unreachable
			o, err := x.Observe(t.Context(), tc.jt)
			if tc.waits != errors.Is(err, unreachable) || o.ResourceExists {
				t.Errorf("observation %+v, error %v", o, err)
			}
		})
	}
}
