package native

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/drover-dev/drover/internal/cloud/trust"
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
