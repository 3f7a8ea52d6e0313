package inventories

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	azurev1alpha1 "github.com/drover-dev/drover/apis/upjet-azure/v1alpha1"
	upjetgcpv1alpha1 "github.com/drover-dev/drover/apis/upjet-gcp/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/test/fakes/azuretest"
	"github.com/drover-dev/drover/test/fakes/gcptest"
)

const installation = "6d8c1f70-0000-4000-8000-000000000001"

// rowOf the table with a group.
func rowOf[C config, I inventory.Inventory](t *testing.T, version schema.GroupVersion) group[C, I] {
	t.Helper()
	for _, c := range clouds {
		if g, ok := c.(group[C, I]); ok && g.version == version {
			return g
		}
	}
	t.Fatalf("the table has no %s", version)
	return group[C, I]{}
}

// A looker is an inventory that looks again and again.
type looker struct {
	t    *testing.T
	kube client.Client
	look func() error
}

func newLooker[C config, I inventory.Inventory](t *testing.T, g group[C, I], pc C, i I, secret []byte) *looker {
	t.Helper()
	pc.SetName("default")
	pc.SetUID("uid-of-config")
	pc.SetGeneration(1)
	i.SetNamespace("crossplane-system")
	i.SetName("i")
	i.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: providerconfig.ClusterKind, Name: "default"})
	l := &looker{t: t, kube: fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(pc).Build()}
	l.setSecret(secret)
	known := newListers()
	connect := g.connector(l.kube, providerconfig.Configs{GroupVersion: g.version, Cluster: pc}, known)
	l.look = func() error {
		lister, err := connect(t.Context(), i)
		if err != nil {
			return err
		}
		_, complete, err := lister.List(t.Context(), installation)
		if err == nil && !complete {
			t.Error("the list is not complete")
		}
		if err != nil {
			known.fail(placeOf(i), err)
		}
		return err
	}
	return l
}

func (l *looker) setSecret(content []byte) {
	l.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "inventory"}, Data: map[string][]byte{"credentials": content}}
	err := l.kube.Create(l.t.Context(), s)
	if err != nil {
		err = l.kube.Update(l.t.Context(), s)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// mustLook so many times.
func (l *looker) mustLook(times int) {
	l.t.Helper()
	for range times {
		if err := l.look(); err != nil {
			l.t.Fatal(err)
		}
	}
}

// calls that are for tokens.
func (l *looker) wantCalls(calls map[string]int, want map[string]int) {
	l.t.Helper()
	got := map[string]int{}
	for call := range want {
		got[call] = calls[call]
	}
	if d := cmp.Diff(want, got); d != "" {
		l.t.Errorf("(-want +got):\n%s", d)
	}
}

func TestALookAtAzureCostsNoTokenWhileOneIsValid(t *testing.T) {
	const (
		application  = "3f0d2c11-7d7b-4a57-8d2e-6f0a4f4a9c02"
		subscription = "0b1f6471-1bf0-4dda-aec3-cb9272f09590"
		discovery    = "GET /v2.0/.well-known/openid-configuration"
		token        = "POST /oauth2/v2.0/token"
	)
	cloud := azuretest.New(azuretest.Options{State: &azuretest.Memory{}, Tenant: "5b5bd2b4-1c7e-4d4d-9a43-2c4f9a1d0a01", Subscription: subscription})
	cloud.Assign(application, azuretest.Assignment{Actions: azuretest.Reader})
	server := httptest.NewTLSServer(cloud)
	defer server.Close()
	pc := &azurev1alpha1.ClusterProviderConfig{}
	pc.Spec.SubscriptionID, pc.Spec.Endpoint = subscription, server.URL
	pc.Spec.CABundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	pc.Spec.Credentials = azurev1alpha1.Credentials{Source: azurev1alpha1.CredentialsSecret, SecretRef: &azurev1alpha1.SecretKeySelector{Namespace: "system", Name: "inventory", Key: "credentials"}}
	old := cloud.NewSecret(application)
	l := newLooker(t, rowOf[azureConfig, azureInventory](t, azurev1alpha1.SchemeGroupVersion), pc, &azurev1alpha1.VirtualMachineInventory{}, cloud.Credentials(application, old, server.URL))
	calls := func() map[string]int { c, _ := cloud.Calls(); return c }

	l.mustLook(5)
	l.wantCalls(calls(), map[string]int{discovery: 1, token: 1, azuretest.Query: 5})

	l.setSecret(cloud.Credentials(application, cloud.NewSecret(application), server.URL))
	l.mustLook(5)
	l.wantCalls(calls(), map[string]int{discovery: 2, token: 2, azuretest.Query: 10})

	// Azure ends the tokens with the secret. One look finds out, and the next one has a new token.
	cloud.Revoke(application, old)
	if err := l.look(); err == nil || !strings.Contains(err.Error(), "401 InvalidAuthenticationToken") {
		t.Errorf("error %v", err)
	}
	l.mustLook(5)
	l.wantCalls(calls(), map[string]int{discovery: 3, token: 3})
}

func TestALookAtGoogleCloudCostsNoTokenWhileOneIsValid(t *testing.T) {
	const account = "inventory@my-project.iam.gserviceaccount.com"
	cloud := gcptest.New(gcptest.Options{State: &gcptest.Memory{}, Project: "my-project"})
	cloud.Grant(account, gcptest.Viewer...)
	server := httptest.NewServer(cloud)
	defer server.Close()
	newKey := func() []byte {
		key, _, err := cloud.NewKey(account, server.URL)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	pc := &upjetgcpv1alpha1.ClusterProviderConfig{}
	pc.Spec.ProjectID, pc.Spec.Endpoint = "my-project", server.URL
	pc.Spec.Credentials = upjetgcpv1alpha1.Credentials{Source: upjetgcpv1alpha1.CredentialsSecret, SecretRef: &upjetgcpv1alpha1.SecretKeySelector{Namespace: "system", Name: "inventory", Key: "credentials"}}
	l := newLooker(t, rowOf[gcpConfig, gcpInventory](t, upjetgcpv1alpha1.SchemeGroupVersion), pc, &upjetgcpv1alpha1.VirtualMachineInventory{}, newKey())
	calls := func() map[string]int { c, _ := cloud.Calls(); return c }

	l.mustLook(5)
	l.wantCalls(calls(), map[string]int{gcptest.TokenCall: 1, cloud.ListCall("instances"): 5})
	l.setSecret(newKey())
	l.mustLook(5)
	l.wantCalls(calls(), map[string]int{gcptest.TokenCall: 2, cloud.ListCall("instances"): 10})
}

// numbered is a Lister that a test identifies by its number.
type numbered struct{ n int }

func (*numbered) List(context.Context, string) ([]inventory.VM, bool, error) { return nil, true, nil }

func TestListersAreKept(t *testing.T) {
	of := func(generation int64, secret []byte) fingerprint {
		c := &upjetgcpv1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{UID: "u", Generation: generation}}
		return fingerprintOf(c, secret)
	}
	here := place{config: "default", region: "north"}
	cases := map[string]struct {
		reason string
		then   func(*listers, *time.Time)
		place  place
		f      fingerprint
		same   bool
	}{
		"WhileNothingChanges":          {"its token is valid", nil, here, of(1, []byte("a")), true},
		"UntilTheSecretChanges":        {"the new credentials count at once", nil, here, of(1, []byte("b")), false},
		"UntilThePodsIdentityIsUsed":   {"it has no Secret", nil, here, of(1, nil), false},
		"UntilTheConfigurationChanges": {"it may have another endpoint", nil, here, of(2, []byte("a")), false},
		"ForTheirRegionOnly":           {"it lists one", nil, place{config: "default", region: "south"}, of(1, []byte("a")), false},
		"ForTheirNamespaceOnly":        {"it lists one", nil, place{config: "default", region: "north", namespace: "n"}, of(1, []byte("a")), false},
		"AnHourAfterTheyWereUsed":      {"the next look may come", func(_ *listers, at *time.Time) { *at = at.Add(time.Hour) }, here, of(1, []byte("a")), true},
		"NoLongerIfNothingUsesThem":    {"no token is kept for nothing", func(_ *listers, at *time.Time) { *at = at.Add(time.Hour + time.Second) }, here, of(1, []byte("a")), false},
		"IfTheirCloudThrottles": {"they know when to call again", func(l *listers, _ *time.Time) {
			l.fail(here, fmt.Errorf("cannot read: %w", &inventory.CallError{Class: fn.ErrorThrottled, Text: "429"}))
		}, here, of(1, []byte("a")), true},
		"UntilTheirCloudRefuses": {"the token may be revoked", func(l *listers, _ *time.Time) { l.fail(here, errors.New("PermissionDenied: 401")) }, here, of(1, []byte("a")), false},
		"WhileThereAreFew": {"tokens need room", func(l *listers, at *time.Time) {
			for n := range maxListers - 1 {
				*at = at.Add(time.Second)
				add(l, place{config: fmt.Sprint(n)}, of(1, nil), n)
			}
		}, here, of(1, []byte("a")), true},
		"UnlessThereAreMany": {"the oldest one goes first", func(l *listers, at *time.Time) {
			for n := range maxListers {
				*at = at.Add(time.Second)
				add(l, place{config: fmt.Sprint(n)}, of(1, nil), n)
			}
		}, here, of(1, []byte("a")), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
			l := newListers()
			l.now = func() time.Time { return at }
			first := add(l, here, of(1, []byte("a")), 1)
			if tc.then != nil {
				tc.then(l, &at)
			}
			if same := add(l, tc.place, tc.f, 3) == first; same != tc.same {
				t.Errorf("the same Lister: %t, want %t: %s", same, tc.same, tc.reason)
			}
			if n := len(l.kept); n > maxListers {
				t.Errorf("%d are kept", n)
			}
		})
	}
}

// add a Lister with a number, unless one is kept.
func add(l *listers, p place, f fingerprint, n int) inventory.Lister {
	got, _ := l.get(p, f, func() (inventory.Lister, error) { return &numbered{n}, nil })
	return got
}

func TestAListerThatCannotBeMadeIsNotKept(t *testing.T) {
	l := newListers()
	cause := errors.New("no region")
	if got, err := l.get(place{}, fingerprint{}, func() (inventory.Lister, error) { return nil, cause }); got != nil || !errors.Is(err, cause) || len(l.kept) > 0 {
		t.Errorf("Lister %v, error %v, %d kept", got, err, len(l.kept))
	}
}
