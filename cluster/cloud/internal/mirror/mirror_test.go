package mirror

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, file, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// pull pulls an image as containerd does, and returns the program in it.
func pull(t *testing.T, h http.Handler, repository, tag, ns string) (imageConfig, string) {
	t.Helper()
	fetch := func(what, reference string, into any) []byte {
		w := get(t, h, "/v2/"+repository+"/"+what+"/"+reference+ns)
		if w.Code != http.StatusOK {
			t.Fatalf("%s %s: %d", what, reference, w.Code)
		}
		if d := digestOf(w.Body.Bytes()); w.Header().Get("Docker-Content-Digest") != d {
			t.Errorf("%s %s: digest %q, want %q", what, reference, w.Header().Get("Docker-Content-Digest"), d)
		}
		if into != nil {
			if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
				t.Fatal(err)
			}
		}
		return w.Body.Bytes()
	}
	var m manifest
	b := fetch("manifests", tag, &m)
	fetch("manifests", digestOf(b), nil)
	var c imageConfig
	fetch("blobs", m.Config.Digest, &c)
	packed := fetch("blobs", m.Layers[0].Digest, nil)
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if c.RootFS.DiffIDs[0] != digestOf(plain) {
		t.Errorf("diff ID is %s, want %s", c.RootFS.DiffIDs[0], digestOf(plain))
	}
	r := tar.NewReader(bytes.NewReader(plain))
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	program, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return c, string(program)
}

func TestPull(t *testing.T) {
	dir := t.TempDir()
	program := write(t, filepath.Join(t.TempDir(), "pause"), "ELF")
	for _, image := range []string{"registry.k8s.io/pause:3.6", "registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10", "ghcr.io/a/b:v1"} {
		if err := AddImage(dir, image, program); err != nil {
			t.Fatal(err)
		}
	}
	h := Handler(dir)
	if w := get(t, h, "/v2/"); w.Code != http.StatusOK {
		t.Errorf("/v2/: %d", w.Code)
	}
	c, got := pull(t, h, "pause", "3.10", "?ns=registry.k8s.io")
	if got != "ELF" || c.Config.Entrypoint[0] != "/pause" {
		t.Errorf("got program %q, entry point %q", got, c.Config.Entrypoint)
	}
	pull(t, h, "pause", "3.10", "")
	pull(t, h, "pause", "3.6", "")
	if i, err := readIndex(filepath.Join(dir, "images", "registry.k8s.io", "pause")); err != nil || len(i.Manifests) != 2 {
		t.Errorf("the repository has %d images, want 2: %v", len(i.Manifests), err)
	}
	pull(t, h, "a/b", "v1", "?ns=ghcr.io")
}

func TestHandlerServesOnlyWhatItHas(t *testing.T) {
	dir := t.TempDir()
	if err := AddRelease(dir, "v1.35.4", write(t, filepath.Join(t.TempDir(), "kubelet"), "kubelet")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "secret"), "no")
	if err := AddImage(dir, "registry.k8s.io/pause:3.10", write(t, filepath.Join(t.TempDir(), "pause"), "ELF")); err != nil {
		t.Fatal(err)
	}
	h := Handler(dir)
	for path, status := range map[string]int{
		"/release/v1.35.4/bin/linux/amd64/kubelet":             200,
		"/release/v1.35.4/bin/linux/amd64/kubelet.sha256":      200,
		"/release/v1.35.4/bin/linux/amd64/kubectl":             404,
		"/release/v1.35.4/":                                    404,
		"/v2/pause/manifests/3.10":                             200,
		"/v2/pause/manifests/3.11":                             404,
		"/v2/pause/manifests/3.10?ns=docker.io":                404,
		"/v2/pause/manifests/3.10?ns=..":                       404,
		"/v2/pause/blobs/sha256:00":                            404,
		"/v2/pause/blobs/..%2f..%2f..%2f..%2f..%2f..%2fsecret": 404,
		"/v2/..%2f..%2f/manifests/3.10?ns=registry.k8s.io":     404,
		"/v2/pause/tags/list":                                  404,
	} {
		if w := get(t, h, path); w.Code != status {
			t.Errorf("%s: got %d, want %d", path, w.Code, status)
		}
	}
}

func TestAReleaseHasItsChecksum(t *testing.T) {
	dir := t.TempDir()
	for _, content := range []string{"old", "new"} {
		if err := AddRelease(dir, "v1.35.4", write(t, filepath.Join(t.TempDir(), "kubelet"), content)); err != nil {
			t.Fatal(err)
		}
	}
	const path = "/release/v1.35.4/bin/linux/amd64/kubelet"
	h := Handler(dir)
	program, sum := get(t, h, path).Body, get(t, h, path+".sha256").Body
	if program.String() != "new" || "sha256:"+strings.TrimSpace(sum.String()) != digestOf(program.Bytes()) {
		t.Errorf("got %q with checksum %q", program, sum)
	}
}

// TestPluginsAreServedAsTheirReleasesHaveThem downloads them with the commands of the profile of
// Flatcar.
func TestPluginsAreServedAsTheirReleasesHaveThem(t *testing.T) {
	dir, programs := t.TempDir(), t.TempDir()
	if err := AddPlugins(dir, "v1.9.1", []string{write(t, filepath.Join(programs, "bridge"), "b"), write(t, filepath.Join(programs, "loopback"), "l")}); err != nil {
		t.Fatal(err)
	}
	h, to := Handler(dir), t.TempDir()
	const name = "cni-plugins-linux-amd64-v1.9.1.tgz"
	for _, file := range []string{name, name + ".sha256"} {
		write(t, filepath.Join(to, file), get(t, h, "/plugins/v1.9.1/"+file).Body.String())
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", `sha256sum --check --status "$1.sha256"; tar --extract --gzip --file "$1"; [ -x loopback ]; cat bridge loopback`, "sh", name)
	cmd.Dir = to
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "bl" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestAddImageNeedsAFullReference(t *testing.T) {
	for _, r := range []string{"pause", "registry.k8s.io/pause", "pause:3.10", "/pause:3.10", "registry.k8s.io/:1"} {
		if err := AddImage(t.TempDir(), r, os.Args[0]); err == nil {
			t.Errorf("%q: no error", r)
		}
	}
}
