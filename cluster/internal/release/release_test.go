package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/sigstore/cosign/v3/pkg/cosign"

	"github.com/drover-dev/drover/cluster/internal/xpkg"
)

const (
	testVersion  = "v0.2.0"
	functionName = "function-tiny"
)

// files are a repository with a Configuration, and a function that it depends on.
var files = map[string]string{
	"LICENSE": "Apache License",
	"NOTICE":  "Drover",
	"crossplane.yaml": `apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: drover}
spec:
  dependsOn:
    - {apiVersion: pkg.crossplane.io/v1, kind: Function, package: "${REGISTRY}/function-tiny", version: "${COMPATIBLE}"}
`,
	"package/function-tiny/crossplane.yaml": `apiVersion: meta.pkg.crossplane.io/v1
kind: Function
metadata: {name: function-tiny}
`,
	"package/function-tiny/input/crd.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: inputs.fn.example.org}
spec:
  group: fn.example.org
  names: {kind: Input, listKind: InputList, plural: inputs, singular: input}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`,
	"package/policies/control-cluster.yaml":   "kind: ValidatingAdmissionPolicy\n",
	"package/provider-drover/runtime.yaml":    "kind: ImageConfig\nspec: {matchImages: [{prefix: xpkg.drover.dev/drover/provider-drover}]}\n",
	"package/provider-inventory/runtime.yaml": "kind: ImageConfig\nspec: {matchImages: [{prefix: xpkg.drover.dev/drover/provider-inventory}]}\n",
	"examples/local/machineclass.yaml":        "kind: MachineClass\n",
}

func newRepository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for path, content := range files {
		writeFile(t, filepath.Join(root, path), []byte(content))
	}
	for _, path := range []string{"package/krew/drover.yaml", completionScript} {
		content, err := os.ReadFile(filepath.Join("../../..", path))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(root, path), content)
	}
	return root
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// binaries returns the folders with the function's program, by architecture.
var binaries = sync.OnceValues(func() (map[string]string, error) {
	folder, err := os.MkdirTemp("", "drover-release")
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, arch := range []string{"amd64", "arm64"} {
		all[arch] = filepath.Join(folder, arch)
		cmd := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(all[arch], functionName), ".")
		cmd.Dir = filepath.Join("testdata", "tiny")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+arch)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
	}
	return all, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if bin, err := binaries(); err == nil {
		os.RemoveAll(filepath.Dir(bin["amd64"]))
	}
	os.Exit(code)
}

// newSigner creates a key as "cosign generate-key-pair" does.
func newSigner(t *testing.T) *Signer {
	t.Helper()
	t.Setenv(passwordVariable, "secret")
	pair, err := cosign.GenerateKeyPair(func(bool) ([]byte, error) { return []byte("secret"), nil })
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cosign.key")
	writeFile(t, file, pair.PrivateBytes)
	s, err := LoadSigner(file)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// withTools has the function's program in place of the tools, for two platforms.
func withTools(t *testing.T, o Options) Options {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(o.Bin["amd64"], functionName))
	if err != nil {
		t.Fatal(err)
	}
	o.Downloads, o.Tools = "https://example.org/"+testVersion+"/", map[string]string{}
	for platform, suffix := range map[string]string{"linux/amd64": "", "windows/amd64": ".exe"} {
		o.Tools[platform] = t.TempDir()
		for _, name := range []string{pluginName, terraformName} {
			writeFile(t, filepath.Join(o.Tools[platform], name+suffix), content)
		}
	}
	return o
}

func options(t *testing.T, prefix string, signer *Signer) Options {
	t.Helper()
	bin, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Release: xpkg.Release{Registry: prefix, Version: testVersion},
		Root:    newRepository(t), Bin: bin, Authorities: authorities(t), Out: filepath.Join(t.TempDir(), testVersion),
		Signer: signer, AllowModified: true, Log: t.Logf,
	}
}

// authorities returns the version that this module requires, because the test's program has no
// build information.
func authorities(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", xpkg.RootsModule).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// build creates a release and returns its folder.
func build(t *testing.T, o Options) string {
	t.Helper()
	if err := Build(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	return o.Out
}

// readAll reads all files of a folder.
func readAll(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		all[relative] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAReleaseIsReproducible(t *testing.T) {
	signer := newSigner(t)
	first := readAll(t, build(t, withTools(t, options(t, "registry.example.org/drover", signer))))
	second := readAll(t, build(t, withTools(t, options(t, "registry.example.org/drover", signer))))
	for path, content := range first {
		if second[path] != content {
			t.Errorf("%s differs", path)
		}
	}
	if len(first) != len(second) {
		t.Errorf("got %d files, then %d", len(first), len(second))
	}
}

// A fakeRegistry is a registry that counts and refuses requests.
type fakeRegistry struct {
	prefix string
	mu     sync.Mutex
	// uploads is the number of uploaded blobs, and writes the number of all requests that write.
	uploads, writes int
	// allowed is the number of writes after which the next one fails. 0 means that none fails.
	allowed int
	// broken means that the registry answers no request.
	broken bool
}

func newRegistry(t *testing.T, referrers bool) *fakeRegistry {
	t.Helper()
	f := &fakeRegistry{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(referrers))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.refuses(r) {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	f.prefix = strings.TrimPrefix(s.URL, "http://") + "/drover"
	return f
}

func (f *fakeRegistry) refuses(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return f.broken && r.URL.Path != "/v2/"
	}
	f.writes++
	if f.allowed > 0 && f.writes > f.allowed {
		return true
	}
	if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/blobs/uploads/") {
		f.uploads++
	}
	return false
}

func (f *fakeRegistry) reference(t *testing.T, pkg string) name.Tag {
	t.Helper()
	tag, err := name.NewTag(f.prefix+"/"+pkg+":"+testVersion, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return tag
}

func (f *fakeRegistry) digest(t *testing.T, pkg string) name.Digest {
	t.Helper()
	tag := f.reference(t, pkg)
	desc, err := remote.Head(tag)
	if err != nil {
		t.Fatal(err)
	}
	return tag.Context().Digest(desc.Digest.String())
}

func (f *fakeRegistry) publish(t *testing.T, folder string) error {
	t.Helper()
	return Publish(context.Background(), PublishOptions{Folder: folder, Registry: f.prefix, PlainHTTP: true, Log: t.Logf})
}

func mustPublish(t *testing.T, f *fakeRegistry, folder string) {
	t.Helper()
	if err := f.publish(t, folder); err != nil {
		t.Fatal(err)
	}
}

func TestAVersionIsNeverChanged(t *testing.T) {
	f := newRegistry(t, true)
	o := options(t, f.prefix, nil)
	mustPublish(t, f, build(t, o))
	before := f.digest(t, functionName)
	writes := f.writes

	crd := filepath.Join(o.Root, "package", functionName, "input", "crd.yaml")
	writeFile(t, crd, bytes.ReplaceAll([]byte(files["package/function-tiny/input/crd.yaml"]), []byte("Input"), []byte("Other")))
	err := f.publish(t, build(t, o))
	if err == nil {
		t.Fatal("another function was pushed as the same version")
	}
	for _, want := range []string{f.reference(t, functionName).String(), before.DigestStr(), "a version is never changed"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %s", err, want)
		}
	}
	if f.digest(t, functionName) != before {
		t.Error("the tag was changed")
	}
	if f.writes != writes {
		t.Errorf("%d requests wrote something", f.writes-writes)
	}
}

func TestAReleaseThatIsPushedAgainIsUnchanged(t *testing.T) {
	f := newRegistry(t, true)
	o := options(t, f.prefix, newSigner(t))
	mustPublish(t, f, build(t, o))
	uploads := f.uploads
	mustPublish(t, f, build(t, o))
	if f.uploads != uploads {
		t.Errorf("%d blobs were sent again", f.uploads-uploads)
	}
}

// The registry refuses a request, at each position of the push in turn.
func TestAnInterruptedPushIsContinued(t *testing.T) {
	whole := newRegistry(t, true)
	o := options(t, whole.prefix, newSigner(t))
	mustPublish(t, whole, build(t, o))
	for _, allowed := range []int{1, whole.writes / 4, whole.writes / 2, whole.writes - 1} {
		t.Run(fmt.Sprintf("After%dRequestsOf%d", allowed, whole.writes), func(t *testing.T) {
			f := newRegistry(t, true)
			o.Registry, f.allowed = f.prefix, allowed
			folder := build(t, o)
			if err := f.publish(t, folder); err == nil || !strings.Contains(err.Error(), "run it again to continue") {
				t.Fatalf("got %v, want an error with the way to continue", err)
			}
			// The Configuration is pushed last: if a user can install it, all its dependencies
			// exist.
			if _, err := remote.Head(f.reference(t, xpkg.Organization)); err == nil {
				t.Error("the Configuration has its tag")
			}
			f.allowed = 0
			mustPublish(t, f, folder)
			if _, err := remote.Head(f.reference(t, xpkg.Organization)); err != nil {
				t.Errorf("the Configuration has no tag: %v", err)
			}
			if f.uploads != whole.uploads {
				t.Errorf("%d blobs were uploaded, a whole push has %d: some were sent twice", f.uploads, whole.uploads)
			}
		})
	}
}

func TestAReleaseIsPushedOnlyWhereItBelongs(t *testing.T) {
	f := newRegistry(t, true)
	folder := build(t, options(t, f.prefix, nil))
	f.broken = true
	for _, tc := range []struct {
		name string
		o    PublishOptions
		want string
	}{
		{"AnotherRegistry", PublishOptions{Folder: folder, Registry: "registry.example.org/other", PlainHTTP: true}, "the release was built with " + f.prefix},
		{"WithoutTLS", PublishOptions{Folder: folder, Registry: f.prefix}, "allow it with --plain-http"},
		{"ARegistryThatDoesNotAnswer", PublishOptions{Folder: folder, Registry: f.prefix, PlainHTTP: true}, "look for " + f.prefix},
		{"NoRelease", PublishOptions{Folder: t.TempDir(), Registry: f.prefix, PlainHTTP: true}, "there is no release"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.o.Log = t.Logf
			if err := Publish(context.Background(), tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if f.writes > 0 {
				t.Error("something was pushed")
			}
		})
	}
}

func TestABuildThatCannotBeTrustedIsRefused(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*testing.T, *Options)
		want   string
	}{
		{"NoCommit", func(_ *testing.T, o *Options) { o.AllowModified = false }, "does not name the commit"},
		{"ABinaryOfAnotherArchitecture", func(_ *testing.T, o *Options) {
			o.Bin = map[string]string{"amd64": o.Bin["amd64"], "arm64": o.Bin["amd64"]}
		}, "is built for amd64, and lies in the folder of arm64"},
		{"NoNotice", func(t *testing.T, o *Options) {
			if err := os.Remove(filepath.Join(o.Root, "NOTICE")); err != nil {
				t.Fatal(err)
			}
		}, "NOTICE"},
		{"AVersionThatIsNone", func(_ *testing.T, o *Options) { o.Version = "0.2" }, `version "0.2"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := options(t, "registry.example.org/drover", nil)
			writeFile(t, filepath.Join(o.Out, "before"), nil)
			tc.change(t, &o)
			if err := Build(context.Background(), o); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if _, err := os.Stat(filepath.Join(o.Out, "before")); err != nil {
				t.Errorf("the folder of before is gone: %v", err)
			}
			if _, err := os.Stat(o.Out + ".new"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("half a release is left: %v", err)
			}
		})
	}
}

func TestTheManifestsAreForTheRegistryOfTheRelease(t *testing.T) {
	folder := build(t, options(t, "registry.example.org/mirror/drover", nil))
	all := untar(t, filepath.Join(folder, "drover-v0.2.0-manifests.tar.gz"))
	for _, provider := range []string{"provider-drover", "provider-inventory"} {
		runtime := all["drover-v0.2.0-manifests/package/"+provider+"/runtime.yaml"]
		if want := "prefix: registry.example.org/mirror/drover/" + provider; !strings.Contains(runtime, want) {
			t.Errorf("got %s, want %q", runtime, want)
		}
	}
	for _, path := range []string{"package/policies/control-cluster.yaml", "examples/local/machineclass.yaml"} {
		if _, ok := all["drover-v0.2.0-manifests/"+path]; !ok {
			t.Errorf("%s is missing", path)
		}
	}
}

var platforms = []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}
