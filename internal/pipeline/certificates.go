package pipeline

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/credentials"
)

// EnvCertsDir is the environment variable by which Crossplane passes the directory of the
// client certificate to a provider.
const EnvCertsDir = "TLS_CLIENT_CERTS_DIR"

const (
	fileCert = "tls.crt"
	fileKey  = "tls.key"
	fileCA   = "ca.crt"
)

// reloadingTLS reads the certificates at each handshake, so that a rotated certificate needs
// no restart. Handshakes are rare: one per connection to a Pod of a Function.
type reloadingTLS struct {
	dir string
}

// ClientHandshake does a handshake as a client.
func (r *reloadingTLS) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	config, err := loadClientTLS(r.dir)
	if err != nil {
		return nil, nil, err
	}
	return credentials.NewTLS(config).ClientHandshake(ctx, authority, conn)
}

// ServerHandshake always fails: these are credentials of a client.
func (*reloadingTLS) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these are credentials of a client")
}

// Info describes the protocol.
func (*reloadingTLS) Info() credentials.ProtocolInfo {
	return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12}).Info()
}

// Clone returns a copy.
func (r *reloadingTLS) Clone() credentials.TransportCredentials {
	return &reloadingTLS{dir: r.dir}
}

// OverrideServerName always fails: the server's name is that of the endpoint.
func (*reloadingTLS) OverrideServerName(string) error {
	return errors.New("the name of the server is that of the endpoint")
}

// loadClientTLS returns the TLS config of the certificates in a directory.
func loadClientTLS(dir string) (*tls.Config, error) {
	if err := checkCertsDir(dir); err != nil {
		return nil, err
	}
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, fileCert), filepath.Join(dir, fileKey))
	if err != nil {
		return nil, fmt.Errorf("cannot load the client certificate from %s: %w", dir, err)
	}
	ca, err := os.ReadFile(filepath.Join(dir, fileCA)) //nolint:gosec // The operator names the directory.
	if err != nil {
		return nil, fmt.Errorf("cannot read the CA certificate: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s has no valid CA certificate", filepath.Join(dir, fileCA))
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, RootCAs: roots}, nil
}

// checkCertsDir checks that a directory is complete. Its error explains how to set it up.
func checkCertsDir(dir string) error {
	if dir == "" {
		return fmt.Errorf("there is no client certificate: set %s to a directory with %s, %s and %s (Crossplane does so for the Deployment of a provider)",
			EnvCertsDir, fileCert, fileKey, fileCA)
	}
	var missing []string
	for _, file := range []string{fileCert, fileKey, fileCA} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			missing = append(missing, file)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("there is no client certificate: directory %s (%s) lacks %s; mount the Secret that Crossplane made for the provider (spec.tlsClientSecretName of its ProviderRevision)",
		dir, EnvCertsDir, strings.Join(missing, ", "))
}
