package real

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/test/fakes"
)

// A service listens on a socket in place of one of the OpenStack. It gives each login the project "ours".
type service struct{ calls []string }

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.calls = append(s.calls, fmt.Sprintf("%s %s for %s%s %s", r.Method, r.URL, r.Header.Get("X-Forwarded-Host"), r.Header.Get("X-Forwarded-Prefix"), body))
	if strings.HasSuffix(r.URL.Path, "/auth/tokens") {
		w.Header().Set("X-Subject-Token", "token")
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(w, `{"token": {"project": {"name": "ours"}}}`)
		return
	}
	_, _ = fmt.Fprint(w, "done")
}

// newTestGateway returns the URL of a gateway in front of a service with the name "compute".
func newTestGateway(t *testing.T) (*gateway, *service, string) {
	t.Helper()
	dir, s := t.TempDir(), &service{}
	l, err := net.Listen("unix", filepath.Join(dir, "compute"))
	if err != nil {
		t.Fatal(err)
	}
	behind := &httptest.Server{Listener: l, Config: &http.Server{Handler: s}}
	behind.Start()
	t.Cleanup(behind.Close)
	g := newGateway(dir)
	front := httptest.NewServer(g)
	t.Cleanup(front.Close)
	return g, s, front.URL
}

func send(t *testing.T, url string) (status int, header http.Header, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", "token")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	return resp.StatusCode, resp.Header, resp.Body.Close()
}

func TestTheGatewayFindsTheServiceByTheFirstPartOfThePath(t *testing.T) {
	g, s, url := newTestGateway(t)
	if status, _, err := send(t, url+"/compute/v2.1/servers?a=b"); status != http.StatusOK || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	if want := "POST /v2.1/servers?a=b for " + strings.TrimPrefix(url, "http://") + "/compute body"; len(s.calls) != 1 || s.calls[0] != want {
		t.Errorf("the service got %q, want %q", s.calls, want)
	}
	if calls, _ := g.Calls(); calls["POST /compute/v2.1/servers"] != 1 {
		t.Errorf("counted: %v", calls)
	}
	if status, _, err := send(t, url+"/image/v2/images"); status != http.StatusBadGateway || err != nil {
		t.Errorf("a service that is not there: %d, %v", status, err)
	}
}

func TestTheGatewayLosesTheResponseOfACallThatWasCarriedOut(t *testing.T) {
	g, s, url := newTestGateway(t)
	then := 0
	g.Break(fakes.Fault{Call: "POST /compute/v2.1/servers", Lost: true, Times: 1, Then: func() { then = len(s.calls) }})
	if status, _, err := send(t, url+"/compute/v2.1/servers"); err == nil {
		t.Errorf("the response is there: %d", status)
	}
	if then != 1 {
		t.Errorf("the service had got %d calls when the response was lost, want 1", then)
	}
}

func TestTheGatewayRefusesTheCallsOfAProject(t *testing.T) {
	g, s, url := newTestGateway(t)
	g.Break(fakes.Fault{Status: http.StatusTooManyRequests, Code: "overLimit", RetryAfter: "35", Match: func(project string, _ []byte) bool { return project == "ours" }})
	// The gateway knows the project of a token from the response that has the token.
	for _, call := range []struct {
		path   string
		status int
	}{{"/compute/v2.1/servers", http.StatusOK}, {"/compute/auth/tokens", http.StatusCreated}, {"/compute/v2.1/servers", http.StatusTooManyRequests}} {
		status, header, err := send(t, url+call.path)
		if status != call.status || err != nil || status == http.StatusTooManyRequests && header.Get("Retry-After") != "35" {
			t.Errorf("%s: %d, want %d: %v, %v", call.path, status, call.status, header, err)
		}
	}
	if len(s.calls) != 2 {
		t.Errorf("the service got %q, want two calls", s.calls)
	}
}
