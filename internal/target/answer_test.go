package target

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// inner is the text of a server that the provider can reach, and a tenant must not read.
const inner = "inner-secret-of-another-server"

// server starts the server of a test, and stops it at the end of the test.
func server(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func connTo(t *testing.T, url string) *Conn {
	t.Helper()
	p, _ := newPool(t, nil, config("c", "s"), secret("s", map[string][]byte{"kubeconfig": kubeconfigFor(url)}))
	conn, err := p.Get(t.Context(), ClusterRef("c"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Forget(ClusterRef("c")) })
	return conn
}

func TestNoWordOfAServerIsRepeated(t *testing.T) {
	status := func(code int, reason metav1.StatusReason) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: reason, Message: inner, Code: 418,
				Details: &metav1.StatusDetails{Name: inner, Causes: []metav1.StatusCause{{Type: inner, Message: inner}}},
			})
		}
	}
	text := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(code)
			_, _ = fmt.Fprintln(w, inner)
		}
	}
	for name, tc := range map[string]struct {
		h    http.HandlerFunc
		want string
	}{
		"AFailureAsText":           {text(http.StatusInternalServerError), "cannot be reached: it answers HTTP 500"},
		"AFailureAsStatus":         {status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable), "cannot be reached: it answers HTTP 503"},
		"AReasonOfItsOwn":          {status(http.StatusBadGateway, inner), "cannot be reached: it answers HTTP 502"},
		"ARefusalAsText":           {text(http.StatusForbidden), "lack a right"},
		"ARefusalOfTheCredentials": {text(http.StatusUnauthorized), "does not accept the credentials"},
		"NotFoundAsText":           {text(http.StatusNotFound), "does not answer as an API server does"},
		"NoKubernetesAtAll":        {text(http.StatusOK), "does not answer as an API server does"},
		"ATimeThatIsNone": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"kind":"NodeList","apiVersion":"v1","gitVersion":1,"items":[{"metadata":{"creationTimestamp":%q}}]}`, inner)
		}, "does not answer as an API server does"},
		"ARedirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.1:1/"+inner, http.StatusFound)
		}, "it answers with a redirect, which is not followed"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := connTo(t, server(t, tc.h).URL)
			_, probed := conn.Probe(t.Context())
			_, listed := conn.Nodes(t.Context(), "a", "b", "c")
			for what, err := range map[string]error{"probe": probed, "list": listed} {
				if what == "list" && name == "ATimeThatIsNone" {
					// The Node is decoded without the time.
					if err != nil {
						t.Errorf("list: error %v", err)
					}
					continue
				}
				if !Is(err) || strings.Contains(err.Error(), inner) {
					t.Errorf("%s: error %v repeats the server, or is not its fault", what, err)
				}
			}
			if probed != nil && !strings.Contains(probed.Error(), tc.want) {
				t.Errorf("error %v, want %q", probed, tc.want)
			}
			_, err := conn.Kube.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
			if err = conn.Classify(err); err == nil && tc.want != "does not answer as an API server does" || err != nil && name != "ATimeThatIsNone" && strings.Contains(err.Error(), inner) {
				t.Errorf("get: %v", err)
			}
		})
	}
}

// TestARefusedEvictionKeepsItsCause has the text that a user needs: which budget it is.
func TestARefusedEvictionKeepsItsCause(t *testing.T) {
	conn := connTo(t, server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusTooManyRequests)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonTooManyRequests, Message: inner,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "The budget\nweb " + strings.Repeat("x", 1000)}}},
		})
	}).URL)
	began := time.Now()
	err := conn.Kube.PolicyV1().Evictions("ns").Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}})
	cause, ok := kerrors.StatusCause(err, policyv1.DisruptionBudgetCause)
	if !kerrors.IsTooManyRequests(err) || !ok || !strings.HasPrefix(cause.Message, "The budget web x") || len(cause.Message) > maxCauseText {
		t.Errorf("error %v, cause %+v", err, cause)
	}
	if took := time.Since(began); took >= 600*time.Second {
		t.Errorf("it waited %s, as the cluster asked", took)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	other := server(t, func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") })
	conn := connTo(t, server(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}).URL)
	if _, err := conn.Probe(t.Context()); !Is(err, Unreachable) {
		t.Errorf("error %v", err)
	}
}

// TestAProviderConfigDoesNotReachTheProvidersHost dials a name, which a DNS server may resolve to another
// address after a check.
func TestAProviderConfigDoesNotReachTheProvidersHost(t *testing.T) {
	api := apiServer(t, http.StatusOK)
	byName := strings.Replace(api.URL, "127.0.0.1", "localhost", 1)
	for name, tc := range map[string]struct {
		url     string
		allowed []string
		ok      bool
	}{
		"ByItsAddress":   {url: api.URL},
		"ByAName":        {url: byName},
		"UnlessAllowed":  {url: api.URL, allowed: []string{"127.0.0.0/8"}, ok: true},
		"ByAnotherBlock": {url: api.URL, allowed: []string{"127.0.1.0/24"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := secret("s", map[string][]byte{"kubeconfig": kubeconfigFor(tc.url)})
			pc := &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}, Spec: config("c", "s").Spec.ProviderConfigSpec}
			// The platform operator's configuration with the same Secret has its own connection.
			p, _ := newPool(t, nil, []client.Object{pc, config("c", "s"), s}...)
			allowed, err := ParseNetworks("--allow-target-networks", tc.allowed)
			if err != nil {
				t.Fatal(err)
			}
			p.readers.Networks.Allowed = allowed
			if tc.url == api.URL {
				if _, err := probe(t, p, ClusterRef("c")); err != nil {
					t.Fatalf("the platform operator's configuration: %v", err)
				}
			}
			_, err = probe(t, p, NamespacedRef("ns", "c"))
			var terr *Error
			switch {
			case tc.ok && err != nil:
				t.Error(err)
			case !tc.ok && (!errors.As(err, &terr) || terr.Kind != KubeconfigInvalid || terr.Reason() != v1alpha1.ReasonCredentialsInvalid || !strings.Contains(err.Error(), "a loopback address")):
				t.Errorf("error %v, want one about a loopback address", err)
			}
			if _, err := probe(t, p, NamespacedRef("ns", "c")); (err == nil) != tc.ok {
				t.Errorf("the second time: %v", err)
			}
		})
	}
}

func probe(t *testing.T, p *Pool, ref Ref) (string, error) {
	t.Helper()
	conn, err := p.Get(t.Context(), ref)
	if err != nil {
		return "", err
	}
	return conn.Probe(t.Context())
}

func TestARefusalNamesTheWebhookOrPolicy(t *testing.T) {
	for name, tc := range map[string]struct{ said, want string }{
		"AWebhookThatCannotBeCalled": {`Internal error occurred: failed calling webhook "evictions.example.org": Post "https://` + inner + `/": refused`, `: the admission webhook "evictions.example.org" cannot be called`},
		"AWebhookThatDenies":         {`admission webhook "evictions.example.org" denied the request: ` + inner, `: the admission webhook "evictions.example.org" refuses it`},
		"APolicyThatDenies":          {`pods "p" is forbidden: ValidatingAdmissionPolicy 'evictions' with binding 'all' denied request: ` + inner, `: the ValidatingAdmissionPolicy "evictions" refuses it`},
		"AnyOtherText":               {inner, ""},
		"ANameThatIsNone":            {`failed calling webhook "` + inner + ` <b>": refused`, ""},
		"ANameThatIsTooLong":         {`failed calling webhook "` + strings.Repeat("a", 254) + `": refused`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := statusOf(http.StatusInternalServerError, "POST /x", metav1.Status{Message: tc.said}).Message
			if want := "HTTP 500 (InternalError) to POST /x" + tc.want; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
