// Package trust configures which certificates the calls of a Lister trust.
package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"time"
)

// Config returns a configuration that trusts the authorities of a bundle in PEM format, and no
// other. An empty bundle stands for the authorities that the system trusts. A bundle without a
// certificate is an error.
func Config(bundle []byte) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(bundle) == 0 {
		return c, nil
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(bundle) {
		return nil, errors.New("caBundle: must be certificates in PEM format")
	}
	return c, nil
}

// Transport returns a copy of http.DefaultTransport that trusts the authorities of a bundle, as
// [Config] does, and that ends a call which is not answered within a time.
func Transport(bundle []byte, answer time.Duration) (*http.Transport, error) {
	c, err := Config(bundle)
	if err != nil {
		return nil, err
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig, t.ResponseHeaderTimeout = c, answer
	return t, nil
}
