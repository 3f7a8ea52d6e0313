package target

import (
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// newTransport creates the one transport to a target cluster, and sets up cfg for the clients on top of it. All
// clients of target clusters are created by newLink, and so by this function. limits are nil for a
// configuration of the platform operator.
func newTransport(cfg *rest.Config, limits *Networks, s *shared, server *serverNames, now func() time.Time, opened func(error)) (http.RoundTripper, error) {
	if err := checkServer(cfg.Host); err != nil {
		return nil, err
	}
	cfg.QPS, cfg.Burst, cfg.UserAgent, cfg.RateLimiter = qps, burst, userAgent, nil
	cfg.DisableCompression = true
	// The typed clients prefer protobuf, whose size in memory the limits cannot determine.
	cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	cfg.WarningHandler = rest.NoWarnings{} // The default one logs texts of the cluster.
	cfg.Dial = dialer(limits)
	if err := rest.LoadTLSFiles(cfg); err != nil {
		return nil, err
	}
	// client-go keeps transports for ever, except those with a proxy function: a cluster whose credentials are
	// rotated daily would leave one per day.
	switch {
	case limits != nil:
		cfg.Proxy = noProxy // It would dial in place of the dialer that has the limits.
	case cfg.Proxy == nil:
		cfg.Proxy = http.ProxyFromEnvironment
	}
	b := &breaker{now: now, opened: opened}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		next = &limited{next: next, large: s.large, failed: func(err error) { b.leave(false, err) }, pages: map[string]bounds{}}
		return server.wrap(b.wrap(newLanes(answers{next: next}, s)))
	})
	return rest.TransportFor(cfg)
}

// shared is the state that the transports to all clusters share.
type shared struct {
	large chan struct{}
	slow  chan struct{}
	// connected is how many clusters there are.
	connected atomic.Int32
}

func newShared() *shared {
	return &shared{large: make(chan struct{}, largeAnswers), slow: make(chan struct{}, slowCallsOfAll)}
}

func noProxy(*http.Request) (*url.URL, error) { return nil, nil }

// noRedirects is a second line of defense: the transport refuses a redirect already.
func noRedirects(*http.Request, []*http.Request) error {
	return errRedirect
}
