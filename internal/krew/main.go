// Command krew builds the archives of kubectl drover for all platforms, and the manifest by which krew
// installs them. Each archive has the binary, kubectl_complete-drover for kubectl's completion, and the
// license, and is the same for the same source.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/drover-dev/drover/internal/kubectl/command"
)

// platforms that kubectl is released for, and that operators use.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}

// An archive of a platform.
type archive struct{ OS, Arch, File, SHA256, Bin string }

// A file of an archive.
type file struct {
	name    string
	mode    int64
	content []byte
}

func main() {
	out := flag.String("out", "", "the folder for the archives and the manifest")
	version := flag.String("version", "", "the version, such as v0.1.0")
	url := flag.String("url", "", "the URL of the folder that the archives will be downloaded from")
	root := flag.String("root", ".", "the folder of the repository")
	flag.Parse()
	if *out == "" || *version == "" || *url == "" {
		fmt.Fprintln(os.Stderr, "krew: -out, -version and -url are required")
		os.Exit(1)
	}
	if err := run(*root, *out, *version, *url); err != nil {
		fmt.Fprintln(os.Stderr, "krew:", err)
		os.Exit(1)
	}
}

func run(root, out, version, url string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	completion, err := pluginCompletion()
	if err != nil {
		return err
	}
	licence, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return err
	}
	var archives []archive
	for _, p := range platforms {
		a, binary, err := build(root, out, version, p)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		b, err := pack([]file{{a.Bin, 0o755, binary}, {"kubectl_complete-drover", 0o755, completion}, {"LICENSE", 0o644, licence}})
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		a.SHA256 = hex.EncodeToString(sum[:])
		if err := os.WriteFile(filepath.Join(out, a.File), b, 0o644); err != nil {
			return err
		}
		archives = append(archives, a)
	}
	manifest, err := render(filepath.Join(root, "package", "krew", "drover.yaml"), version, url, archives)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "drover.yaml"), manifest, 0o644)
}

// pluginCompletion is what kubectl drover completion kubectl writes.
func pluginCompletion() ([]byte, error) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	cmd := command.New(streams)
	cmd.SetArgs([]string{"completion", "kubectl"})
	err := cmd.Execute()
	return out.Bytes(), err
}

// build the binary for a platform.
func build(root, out, version, platform string) (archive, []byte, error) {
	goos, arch, _ := strings.Cut(platform, "/")
	a := archive{OS: goos, Arch: arch, Bin: "kubectl-drover", File: fmt.Sprintf("kubectl-drover-%s-%s-%s.tar.gz", version, goos, arch)}
	if goos == "windows" {
		a.Bin += ".exe"
	}
	to := filepath.Join(out, ".build-"+goos+"-"+arch)
	defer func() { _ = os.Remove(to) }()
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", to, "./cmd/kubectl-drover") //nolint:noctx // It ends by itself.
	cmd.Dir, cmd.Stderr = root, os.Stderr
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+arch, "CGO_ENABLED=0")
	if err := cmd.Run(); err != nil {
		return a, nil, err
	}
	b, err := os.ReadFile(to)
	return a, b, err
}

// pack files into a tar.gz that is the same for the same files.
func pack(files []file) ([]byte, error) {
	b := &bytes.Buffer{}
	z := gzip.NewWriter(b)
	t := tar.NewWriter(z)
	for _, f := range files {
		if err := t.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// render the manifest from its template.
func render(file, version, url string, archives []archive) ([]byte, error) {
	t, err := template.ParseFiles(file)
	if err != nil {
		return nil, err
	}
	b := &bytes.Buffer{}
	err = t.Execute(b, struct {
		Version, URL string
		Archives     []archive
	}{version, strings.TrimSuffix(url, "/"), archives})
	return b.Bytes(), err
}
