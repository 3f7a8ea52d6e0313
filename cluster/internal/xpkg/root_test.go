package xpkg

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// probeVariable makes the test binary a program that checks the root that it runs in.
const probeVariable = "DROVER_TEST_PROBE"

func TestMain(m *testing.M) {
	if url := os.Getenv(probeVariable); url != "" {
		if err := probe(url); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// probe fails if the root has no public certificate authorities, if its /tmp is not writable, or if
// it does not trust the server at url.
func probe(url string) error {
	pool, err := x509.SystemCertPool()
	if err != nil {
		return err
	}
	known := func(subject []byte) bool { return bytes.Contains(subject, []byte("ISRG Root X1")) }
	if subjects := pool.Subjects(); !slices.ContainsFunc(subjects, known) {
		return fmt.Errorf("the root has %d certificate authorities, and not ISRG Root X1", len(subjects))
	}
	f, err := os.CreateTemp("", "probe")
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return err
	}
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// authority is a certificate authority with a server whose certificate it signed through an
// intermediate, as public authorities do.
type authority struct {
	root   []byte
	server *httptest.Server
	// requests is the number of requests of clients that trust the server.
	requests atomic.Int32
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	now := time.Now()
	sign := func(name string, isCA bool, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
			NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
			BasicConstraintsValid: true, IsCA: isCA, KeyUsage: x509.KeyUsageDigitalSignature,
		}
		if isCA {
			template.KeyUsage |= x509.KeyUsageCertSign
		} else {
			template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
			template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}
		if parent == nil {
			parent, signer = template, key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return cert, key
	}
	root, rootKey := sign("Test Root", true, nil, nil)
	intermediate, intermediateKey := sign("Test Intermediate", true, root, rootKey)
	leaf, leafKey := sign("127.0.0.1", false, intermediate, intermediateKey)

	a := &authority{root: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw})}
	a.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a.requests.Add(1)
		w.WriteHeader(http.StatusOK)
	}))
	a.server.TLS = serverConfig([][]byte{leaf.Raw, intermediate.Raw}, leafKey)
	a.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	a.server.StartTLS()
	t.Cleanup(a.server.Close)
	return a
}

// unpack writes an image's layers to a folder, with their owners and permissions.
func unpack(t *testing.T, image v1.Image) string {
	t.Helper()
	// The folders above must be accessible to the image's user. Those of t.TempDir are not.
	root, err := os.MkdirTemp("", "drover-root")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	stream := mutate.Extract(image)
	defer stream.Close()
	for r := tar.NewReader(stream); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return root
		}
		if err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(root, filepath.Clean("/"+h.Name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			t.Fatal(err)
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(target, 0o755)
		case tar.TypeReg:
			var content []byte
			if content, err = io.ReadAll(r); err == nil {
				err = writeProgram(target, content, 0o600)
			}
		default:
			t.Fatalf("%s: a file of type %c", h.Name, h.Typeflag)
		}
		// The sticky bit is at another position in an os mode than in a tar.
		mode := fs.FileMode(h.Mode & 0o777)
		if h.Mode&0o1000 != 0 {
			mode |= fs.ModeSticky
		}
		if err := errors.Join(err, os.Chmod(target, mode), os.Chown(target, h.Uid, h.Gid)); err != nil {
			t.Fatal(err)
		}
	}
}

// writeProgram writes a file that is executed later. No process is started meanwhile: until it executes
// its own program, it would have the file open for writing, and the file could not be executed.
func writeProgram(path string, content []byte, mode fs.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, mode)
}

// inRoot returns a command that runs as the image's user, and sees only the image.
func inRoot(ctx context.Context, root string, environment []string, path string, args ...string) *exec.Cmd {
	user, _ := strconv.ParseUint(nonRoot, 10, 32)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Path, cmd.Dir, cmd.Env = path, "/", environment
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot:     root,
		Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)},
		Pdeathsig:  syscall.SIGKILL,
	}
	return cmd
}

// packagesWithImages are the packages of the repository that run a program.
func packagesWithImages(t *testing.T) []Source {
	t.Helper()
	bin := os.Getenv("DROVER_BIN")
	switch {
	case bin == "":
		t.Skip("NO IMAGE IS STARTED: DROVER_BIN must name the folder of the binaries; make unit sets it")
	case os.Getuid() != 0:
		t.Skip("NO IMAGE IS STARTED: only root can give a process a root of its own")
	}
	sources, err := Sources(filepath.Join("..", "..", ".."), bin)
	if err != nil {
		t.Fatal(err)
	}
	sources = slices.DeleteFunc(sources, func(s Source) bool { return s.Binary == "" })
	if len(sources) < 6 {
		t.Fatalf("found %d packages with an image, want the function and five providers", len(sources))
	}
	return sources
}

// The image of every package is started in a root of its own, without files of the host.
func TestEveryPackageInItsOwnRoot(t *testing.T) {
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range packagesWithImages(t) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			image, err := RuntimeImage(s.Binary)
			if err != nil {
				t.Fatal(err)
			}
			root := unpack(t, image)
			ours, foreign := newAuthority(t), newAuthority(t)
			for file, content := range map[string][]byte{
				"probe": self, "mounted.crt": ours.root,
				"kubeconfig": []byte(strings.ReplaceAll(kubeconfig, "SERVER", ours.server.URL)),
			} {
				if err := writeProgram(filepath.Join(root, file), content, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			const unknown = "x509: certificate signed by unknown authority"
			for _, tc := range []struct{ name, server, certFile, want string }{
				{"TrustsAServerOfTheMountedAuthority", ours.server.URL, "/mounted.crt", ""},
				{"DoesNotTrustAServerOfAnotherAuthority", foreign.server.URL, "/mounted.crt", unknown},
				{"DoesNotTrustItIfNothingIsMounted", ours.server.URL, "", unknown},
			} {
				t.Run(tc.name, func(t *testing.T) {
					environment := []string{probeVariable + "=" + tc.server}
					if tc.certFile != "" {
						environment = append(environment, "SSL_CERT_FILE="+tc.certFile)
					}
					out, err := inRoot(t.Context(), root, environment, "/probe").CombinedOutput()
					switch {
					case tc.want == "" && err != nil:
						t.Errorf("%v: %s", err, out)
					case tc.want != "" && (err == nil || !strings.Contains(string(out), tc.want)):
						t.Errorf("got %v: %s, want %q", err, out, tc.want)
					}
				})
			}
			t.Run("Starts", func(t *testing.T) { starts(t, image, root, ours) })
		})
	}
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "SERVER"}}]
users: [{name: test, user: {token: none}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
current-context: test
`

// starts fails if a function does not serve, or if a provider sends no request to the API server of
// its kubeconfig. The kubeconfig has no authorities, so the authorities of the root are used.
func starts(t *testing.T, image v1.Image, root string, a *authority) {
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	command := config.Config.Entrypoint[0]
	arguments := []string{"--metrics-bind-address=", "--health-probe-bind-address="}
	before := a.requests.Load()
	isUp := func() bool { return a.requests.Load() > before }
	if strings.Contains(command, "function-") {
		address := freeAddress(t)
		arguments = []string{"--insecure", "--address", address, "--metrics-address", ""}
		isUp = func() bool {
			connection, err := net.Dial("tcp", address)
			if err == nil {
				connection.Close()
			}
			return err == nil
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	environment := append(slices.Clone(config.Config.Env), "KUBECONFIG=/kubeconfig", "SSL_CERT_FILE=/mounted.crt", "POD_NAMESPACE=crossplane-system")
	var out bytes.Buffer
	cmd := inRoot(ctx, root, environment, command, arguments...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // It was killed, or the output has the reason.
	}()
	for !isUp() {
		select {
		case <-ended:
			// The server has no API, so a provider ends soon after its request.
			if isUp() {
				return
			}
			t.Fatalf("it ended:\n%s", out.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
	stop()
	<-ended
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func serverConfig(chain [][]byte, key *ecdsa.PrivateKey) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: chain, PrivateKey: key}}}
}
