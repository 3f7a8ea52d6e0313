package xpkg

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// RootsModule is the Go module with the certificate authorities of an image: those of Mozilla, as
// the Go project publishes them.
const RootsModule = "golang.org/x/crypto/x509roots/fallback"

// rootsFile is the first file where Go looks for the system's certificate authorities, unless
// SSL_CERT_FILE names another one. Go also reads its folder, so that a file that is mounted beside
// it, or named by SSL_CERT_FILE, adds to these.
const rootsFile = "etc/ssl/certs/ca-certificates.crt"

// roots returns the public certificate authorities in PEM. An authority that is trusted only for
// certificates up to a date is omitted, because a file cannot express this limit.
func roots() ([]byte, error) {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		cert, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", RootsModule, err)
		}
		fmt.Fprintf(&b, "# %s\n", cert.Subject)
		if err := pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
