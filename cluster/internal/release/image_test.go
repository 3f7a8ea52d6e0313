package release

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/drover-dev/drover/cluster/internal/xpkg"
)

// withImages has the function's program as the program of an image, for two architectures.
func withImages(t *testing.T, o Options) Options {
	t.Helper()
	for arch, bin := range o.Bin {
		content, err := os.ReadFile(filepath.Join(bin, functionName))
		if err != nil {
			t.Fatal(err)
		}
		program := filepath.Join(t.TempDir(), arch, "drover-karpenter")
		writeFile(t, program, content)
		o.Images = append(o.Images, program)
	}
	return o
}

func TestAReleaseHasImagesThatAreNoPackages(t *testing.T) {
	f := newRegistry(t, true)
	mustPublish(t, f, build(t, withImages(t, options(t, f.prefix, newSigner(t)))))
	index, err := remote.Index(f.reference(t, "drover-karpenter"))
	if err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var architectures []string
	for _, m := range manifest.Manifests {
		architectures = append(architectures, m.Platform.Architecture)
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil || !slices.Equal(config.Config.Entrypoint, []string{"/usr/local/bin/drover-karpenter"}) {
			t.Errorf("%s: entrypoint %v, %v", m.Platform, config.Config.Entrypoint, err)
		}
		if license, err := xpkg.ReadFile(image, "/licenses/LICENSE"); err != nil || len(license) == 0 {
			t.Errorf("%s: license %q, %v", m.Platform, license, err)
		}
	}
	if !slices.Equal(architectures, []string{"amd64", "arm64"}) {
		t.Errorf("architectures %v", architectures)
	}
	if _, err := remote.Head(f.reference(t, "drover-karpenter").Context().Tag(signatureTag(digest))); err != nil {
		t.Errorf("the image has no signature: %v", err)
	}
}

func TestAProgramOfAnImageIsNamedOnceForEachArchitecture(t *testing.T) {
	o := withImages(t, options(t, "registry.example.org/drover", nil))
	o.Images = append(o.Images, o.Images[0])
	if err := Build(context.Background(), o); err == nil || !strings.Contains(err.Error(), "are the same program for") {
		t.Errorf("error %v", err)
	}
}

func TestManifestsNameTheReleaseThatTheyAreOf(t *testing.T) {
	o := options(t, "registry.example.org/drover", nil)
	writeFile(t, filepath.Join(o.Root, "examples/karpenter/target-cluster.yaml"), []byte("kind: Pod\nimage: xpkg.drover.dev/drover/drover-karpenter:v0.1.0\n"))
	all := untar(t, filepath.Join(build(t, o), manifestsFile(o.Release)))
	const want = "kind: Pod\nimage: registry.example.org/drover/drover-karpenter:" + testVersion + "\n"
	if text := all["drover-"+testVersion+"-manifests/examples/karpenter/target-cluster.yaml"]; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}
