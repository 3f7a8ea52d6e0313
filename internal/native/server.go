package native

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/drover-dev/drover/internal/cloud/trust"
	"github.com/drover-dev/drover/internal/ratelimit"
)

// ServerURL returns the scheme and the host of spec.server of a configuration, with the default port if it has
// none.
func ServerURL(server, port string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("spec.server: %w", err)
	}
	if u.Port() == "" {
		u.Host += ":" + port
	}
	return u.Scheme + "://" + u.Host, nil
}

// ServerTransport is [trust.Transport]. If insecure is true, it verifies no certificate: only a user may choose
// that.
func ServerTransport(bundle []byte, insecure bool, answer time.Duration) (*http.Transport, error) {
	t, err := trust.Transport(bundle, answer)
	if err != nil {
		return nil, err
	}
	t.TLSClientConfig.InsecureSkipVerify = insecure
	return t, nil
}

// NewHTTPClient returns a client of the server of a configuration, which verifies the certificate with the bundle. It makes
// its calls through next, or through the network if next is nil. A call takes at most answer.
func NewHTTPClient(next http.RoundTripper, bundle []byte, insecure *bool, answer time.Duration, now func() time.Time) (*http.Client, error) {
	if next == nil {
		t, err := ServerTransport(bundle, insecure != nil && *insecure, answer)
		if err != nil {
			return nil, err
		}
		next = t
	}
	return HTTPClient(next, answer, now), nil
}

// HTTPClient returns a client whose calls wait for the rate limit of the cloud, also if a status 429 has no header
// Retry-After. It follows no redirect, which would send the credentials to another server. A call takes at most answer.
func HTTPClient(next http.RoundTripper, answer time.Duration, now func() time.Time) *http.Client {
	return &http.Client{
		Timeout: answer, Transport: ratelimit.New(newPauses(next, now)),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
