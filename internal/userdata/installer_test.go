package userdata

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A kubelet as far as the installer looks at it.
const kubelet = "#!/bin/sh\necho Kubernetes v1.35.4\n"

// install runs the installer against a mirror, and returns the installed file.
func install(t *testing.T, sum, installed string) (got, output string, downloads int) {
	t.Helper()
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		downloads++
		switch {
		case !strings.HasPrefix(r.URL.Path, "/mirror/v1.35.4/bin/linux/"):
			http.NotFound(w, r)
		case strings.HasSuffix(r.URL.Path, ".sha256"):
			_, _ = w.Write([]byte(sum))
		default:
			_, _ = w.Write([]byte(kubelet))
		}
	}))
	defer mirror.Close()

	dir := t.TempDir()
	path := filepath.Join(dir, "bin", "kubelet")
	if installed != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(installed), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "-c", installKubelet)
	cmd.Env = append(os.Environ(), "KUBELET_PATH="+path, "KUBELET_VERSION=v1.35.4", "KUBELET_URL="+mirror.URL+"/mirror")
	out, err := cmd.CombinedOutput()
	if err != nil {
		out = fmt.Appendf(out, "%v", err)
	}
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b), string(out), downloads
}

func TestInstaller(t *testing.T) {
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(kubelet)))
	cases := map[string]struct {
		sum, installed string
		want           string
		output         string
		downloads      int
	}{
		"InstallsWhatHasTheChecksumBesideIt": {sum: sum, want: kubelet, downloads: 2},
		"ReadsAChecksumFileWithANameInIt":    {sum: sum + "  kubelet\n", want: kubelet, downloads: 2},
		"ReplacesAnotherVersion":             {sum: sum, installed: strings.ReplaceAll(kubelet, "1.35.4", "1.35.3"), want: kubelet, downloads: 2},
		"DownloadsNothingThatIsThere":        {installed: kubelet, want: kubelet},
		"RefusesWhatHasAnotherChecksum":      {sum: strings.Repeat("0", 64), output: "does not have the checksum", downloads: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, output, downloads := install(t, tc.sum, tc.installed)
			if got != tc.want {
				t.Errorf("installed: want %q, got %q", tc.want, got)
			}
			if (tc.output == "") != (output == "") || !strings.Contains(output, tc.output) {
				t.Errorf("output: want %q, got %q", tc.output, output)
			}
			if downloads != tc.downloads {
				t.Errorf("downloads: want %d, got %d", tc.downloads, downloads)
			}
		})
	}
}
