package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestTheManifestHasEachPlatformWithItsArchive(t *testing.T) {
	var archives []archive
	for _, p := range platforms {
		goos, arch, _ := strings.Cut(p, "/")
		archives = append(archives, archive{goos, arch, "kubectl-drover-v1-" + goos + "-" + arch + ".tar.gz", strings.Repeat("0", 64), "kubectl-drover"})
	}
	b, err := render("../../package/krew/drover.yaml", "v1.2.3", "https://example.org/v1.2.3/", archives)
	if err != nil {
		t.Fatal(err)
	}
	// The fields that krew requires: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
	m := struct {
		APIVersion string
		Metadata   struct{ Name string }
		Spec       struct {
			Version, ShortDescription string
			Platforms                 []struct {
				URI, SHA256, Bin string
				Files            []struct{ From, To string }
				Selector         struct{ MatchLabels map[string]string }
			}
		}
	}{}
	if err := yaml.Unmarshal(b, &m); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Metadata.Name != "drover" || m.Spec.Version != "v1.2.3" || len(m.Spec.Platforms) != len(platforms) {
		t.Fatalf("%+v", m)
	}
	if len(m.Spec.ShortDescription) > 50 {
		t.Errorf("krew index takes 50 characters: %q", m.Spec.ShortDescription)
	}
	for i, p := range m.Spec.Platforms {
		if p.URI != "https://example.org/v1.2.3/"+archives[i].File || len(p.SHA256) != 64 || p.Bin == "" || len(p.Files) != 2 || p.Selector.MatchLabels["os"]+"/"+p.Selector.MatchLabels["arch"] != platforms[i] {
			t.Errorf("%+v", p)
		}
	}
}

func TestAnArchiveIsTheSameForTheSameFiles(t *testing.T) {
	completion, err := pluginCompletion()
	if err != nil {
		t.Fatal(err)
	}
	files := []file{{"kubectl-drover", 0o755, []byte("binary")}, {"kubectl_complete-drover", 0o755, completion}}
	a, err := pack(files)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := pack(files); err != nil || !bytes.Equal(a, b) {
		t.Errorf("two archives differ, %v", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(a))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Mode != 0o755 {
			t.Errorf("%s has mode %o", h.Name, h.Mode)
		}
		names[h.Name] = string(b)
	}
	if names["kubectl-drover"] != "binary" || !strings.Contains(names["kubectl_complete-drover"], "kubectl-drover __complete") {
		t.Errorf("%v", names)
	}
}
