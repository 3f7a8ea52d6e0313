package xpkg

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg"
)

const functionMeta = `apiVersion: meta.pkg.crossplane.io/v1
kind: Function
metadata:
  name: function-test
`

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: inputs.fn.example.org
spec:
  group: fn.example.org
  names: {kind: Input, listKind: InputList, plural: inputs, singular: input}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
`

var devel = Release{Registry: DefaultRegistry, Version: "v0.1.0"}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// compile builds the smallest Go program.
func compile(t *testing.T, path string, cgo string) {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "go.mod"), "module example.org/tiny\ngo 1.26\n")
	writeFile(t, filepath.Join(dir, "main.go"), "package main\nfunc main() {}\n")
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func repository(t *testing.T) (root, bin string) {
	root, bin = t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(root, "package", "function-test", "crossplane.yaml"), functionMeta)
	writeFile(t, filepath.Join(root, "package", "function-test", "input", "crd.yaml"), crd)
	compile(t, filepath.Join(bin, "function-test"), "0")
	return root, bin
}

func functionSource(t *testing.T, root, bin string) Source {
	t.Helper()
	sources, err := Sources(root, bin)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sources {
		if s.Name == "function-test" {
			return s
		}
	}
	t.Fatalf("no function-test in %v", sources)
	return Source{}
}

func build(t *testing.T, s Source) v1.Image {
	t.Helper()
	image, err := Build(context.Background(), s, devel)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestBuildIsReproducible(t *testing.T) {
	root, bin := repository(t)
	s := functionSource(t, root, bin)
	a, b := t.TempDir(), t.TempDir()
	var files [][]byte
	for _, folder := range []string{a, b} {
		path, err := BuildFile(context.Background(), s, devel, folder)
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, content)
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("the same sources gave different files")
	}
}

func TestAPackageHoldsItsObjectsAndItsRuntime(t *testing.T) {
	root, bin := repository(t)
	image := build(t, functionSource(t, root, bin))
	stream, err := xpkg.ExtractPackageYAML(image)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	content, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"name: function-test", "name: inputs.fn.example.org"} {
		if !strings.Contains(string(content), want) {
			t.Errorf("package.yaml lacks %q:\n%s", want, content)
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture == "" || config.Config.User != nonRoot {
		t.Errorf("config: got %+v", config)
	}
	if want := "/usr/local/bin/function-test"; len(config.Config.Entrypoint) != 1 || config.Config.Entrypoint[0] != want {
		t.Errorf("entrypoint: got %v, want %s", config.Config.Entrypoint, want)
	}
	binary, err := ReadFile(image, config.Config.Entrypoint[0])
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(bin, "function-test"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(binary, want) {
		t.Error("the image holds another binary")
	}
}

func TestABinaryWithCgoIsRefused(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no C compiler: a binary with cgo cannot be made")
	}
	path := filepath.Join(t.TempDir(), "tiny")
	compile(t, path, "1")
	if _, err := RuntimeImage(path); err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("got %v, want an error that says how to build it", err)
	}
}

func TestAnObjectThatAPackageMustNotHoldIsRefused(t *testing.T) {
	root, bin := repository(t)
	writeFile(t, filepath.Join(root, "package", "function-test", "crds", "cm.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
	if _, err := Build(context.Background(), functionSource(t, root, bin), devel); err == nil {
		t.Error("no error")
	}
}

func TestPushedPackagesAreFoundUnderTheirNameAndVersion(t *testing.T) {
	root, bin := repository(t)
	folder := t.TempDir()
	if _, err := BuildFile(context.Background(), functionSource(t, root, bin), devel, folder); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer s.Close()
	host := strings.TrimPrefix(s.URL, "http://")
	pushed, err := PushFolder(context.Background(), folder, host)
	if err != nil {
		t.Fatal(err)
	}
	if want := host + "/drover/function-test:v0.1.0"; len(pushed) != 1 || pushed[0] != (Pushed{Reference: want}) {
		t.Fatalf("got %+v, want %s", pushed, want)
	}
	if again, err := PushFolder(context.Background(), folder, host); err != nil || !again[0].Unchanged {
		t.Errorf("pushed again: got %+v, %v, want it unchanged", again, err)
	}
	ref, err := name.ParseReference(pushed[0].Reference)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(root, "package", "function-test", "input", "crd.yaml"), strings.ReplaceAll(crd, "Input", "Other"))
	if _, err := BuildFile(context.Background(), functionSource(t, root, bin), devel, folder); err != nil {
		t.Fatal(err)
	}
	if other, err := PushFolder(context.Background(), folder, host); err != nil || !other[0].Replaced {
		t.Errorf("another package of the same version: got %+v, %v, want it replaced", other, err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	annotated := false
	for _, l := range manifest.Layers {
		annotated = annotated || l.Annotations[xpkg.AnnotationKey] == xpkg.PackageAnnotation
	}
	if !annotated {
		t.Error("no layer is annotated as the package: Crossplane would have to read them all")
	}
}

func TestParseFile(t *testing.T) {
	for _, tc := range []struct{ name, file, pkg, version string }{
		{"ANameWithDashes", "a/function-drover-v0.1.0.xpkg", "function-drover", "v0.1.0"},
		{"APrerelease", "drover-v1.2.3-rc.1.xpkg", "drover", "v1.2.3-rc.1"},
		{"NoVersion", "drover.xpkg", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pkg, version, err := ParseFile(tc.file)
			if pkg != tc.pkg || version != tc.version || (err != nil) != (tc.pkg == "") {
				t.Errorf("got %q, %q, %v", pkg, version, err)
			}
		})
	}
}

func TestReadFileNamesAFileThatIsMissing(t *testing.T) {
	root, bin := repository(t)
	image := build(t, functionSource(t, root, bin))
	if _, err := ReadFile(image, "/does/not/exist"); err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
		t.Errorf("got %v, want an error with the path", err)
	}
}
