// Package prometheus runs the real Prometheus of the system for tests.
package prometheus

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/drover-dev/drover/test/kit/tools"
)

// A Server is a Prometheus that may not run yet.
type Server struct {
	// Address that it listens at, or will.
	Address string
	program string
}

// New returns a Prometheus that was not started. The test is skipped if the program is missing.
func New(t *testing.T) *Server {
	t.Helper()
	s := &Server{program: tools.Path(t, "prometheus", "prometheus", "queries of analyses")}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	s.Address = l.Addr().String()
	return s
}

// URL of the server.
func (s *Server) URL() string { return "http://" + s.Address }

// Scrape starts the server, which requests the metrics each second until the test ends.
func (s *Server) Scrape(t *testing.T, metrics http.HandlerFunc) {
	t.Helper()
	target := httptest.NewServer(metrics)
	t.Cleanup(target.Close)
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yaml")
	config := fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: app\n  static_configs: [{targets: [%q]}]\n", target.Listener.Addr())
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(s.program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+s.Address)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}
