package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/licenseclassifier/v2/assets"
	"github.com/sigstore/cosign/v3/pkg/cosign"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	spdxjson "github.com/spdx/tools-golang/json"

	pkgmetav1 "github.com/crossplane/crossplane/apis/v2/pkg/meta/v1"

	crossplane "github.com/crossplane/crossplane-runtime/v2/pkg/xpkg"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg/parser/yaml"
)

func verifier(t *testing.T, publicKey []byte) signature.Verifier {
	t.Helper()
	key, err := cryptoutils.UnmarshalPEMToPublicKey(publicKey)
	if err != nil {
		t.Fatal(err)
	}
	v, err := signature.LoadVerifier(key, crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// verify verifies an image as "cosign verify --key --insecure-ignore-tlog" does.
func verify(ref name.Reference, v signature.Verifier) error {
	_, _, err := cosign.VerifyImageSignatures(context.Background(), ref, &cosign.CheckOpts{
		SigVerifier: v, IgnoreTlog: true, ClaimVerifier: cosign.SimpleClaimVerifier,
	})
	return err
}

// imageOf returns the image of a package for a platform, and its digest.
func imageOf(t *testing.T, f *fakeRegistry, pkg string, p v1.Platform) (v1.Image, name.Digest) {
	t.Helper()
	ref := f.reference(t, pkg)
	image, err := remote.Image(ref, remote.WithPlatform(p))
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return image, ref.Context().Digest(digest.String())
}

func TestCosignVerifiesAllThatIsPublished(t *testing.T) {
	f := newRegistry(t, true)
	folder := build(t, options(t, f.prefix, newSigner(t)))
	mustPublish(t, f, folder)
	publicKey, err := os.ReadFile(filepath.Join(folder, "cosign.pub"))
	if err != nil {
		t.Fatal(err)
	}
	ours := verifier(t, publicKey)
	other, err := newSigner(t).PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	signed := map[string]name.Reference{"Release": f.reference(t, artifactName)}
	for _, pkg := range []string{functionName, "drover"} {
		signed[pkg] = f.reference(t, pkg)
		signed[pkg+"SBOM"] = billOf(t, f, pkg)
		for _, p := range platforms {
			_, signed[pkg+p.Architecture] = imageOf(t, f, pkg, p)
		}
	}
	for what, ref := range signed {
		if err := verify(ref, ours); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if err := verify(ref, verifier(t, other)); err == nil {
			t.Errorf("%s: the key of another release verifies it", what)
		}
	}
}

// A mirror has the same content as the registry of the release, including signatures and the SBOM.
func TestAMirrorServesTheReleaseAsItIs(t *testing.T) {
	origin, mirror := newRegistry(t, true), newRegistry(t, true)
	folder := build(t, options(t, origin.prefix, newSigner(t)))
	mustPublish(t, origin, folder)
	err := Publish(context.Background(), PublishOptions{Folder: folder, Registry: mirror.prefix, Mirror: true, PlainHTTP: true, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	publicKey, err := os.ReadFile(filepath.Join(folder, "cosign.pub"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := mirror.digest(t, functionName).DigestStr(), origin.digest(t, functionName).DigestStr(); got != want {
		t.Errorf("got the digest %s, want %s", got, want)
	}
	for _, ref := range []name.Reference{mirror.reference(t, functionName), billOf(t, mirror, functionName)} {
		if err := verify(ref, verifier(t, publicKey)); err != nil {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

func TestAnUnsignedReleaseIsNotVerified(t *testing.T) {
	f := newRegistry(t, true)
	mustPublish(t, f, build(t, options(t, f.prefix, nil)))
	key, err := newSigner(t).PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(f.reference(t, functionName), verifier(t, key)); err == nil || !strings.Contains(err.Error(), "no signatures found") {
		t.Errorf("got %v, want an error", err)
	}
}

func TestChecksumsCoverEveryFileAndAreSigned(t *testing.T) {
	all := readAll(t, build(t, options(t, "registry.example.org/drover", newSigner(t))))
	sums := map[string]string{}
	for line := range strings.Lines(all[checksumsFile]) {
		sum, path, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[path] = sum
	}
	for path, content := range all {
		switch path {
		case checksumsFile, checksumsFile + ".sig", "cosign.pub":
			continue
		}
		if sum := sha256.Sum256([]byte(content)); sums[path] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: got %q", path, sums[path])
		}
		delete(sums, path)
	}
	if len(sums) > 0 {
		t.Errorf("files that do not exist: %v", sums)
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(all[checksumsFile+".sig"]))
	if err != nil {
		t.Fatal(err)
	}
	v := verifier(t, []byte(all["cosign.pub"]))
	if err := v.VerifySignature(bytes.NewReader(raw), strings.NewReader(all[checksumsFile])); err != nil {
		t.Error(err)
	}
	if err := v.VerifySignature(bytes.NewReader(raw), strings.NewReader(all[checksumsFile]+"x")); err == nil {
		t.Error("a list that was changed is verified")
	}
}

// billOf returns the SBOM of a package as "oras discover" finds it.
func billOf(t *testing.T, f *fakeRegistry, pkg string) name.Digest {
	t.Helper()
	subject := f.digest(t, pkg)
	index, err := remote.Referrers(subject)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 {
		t.Fatalf("%s: got the referrers %+v, want one", pkg, manifest.Manifests)
	}
	// The test's registry reports another type than the manifest has.
	ref := subject.Context().Digest(manifest.Manifests[0].Digest.String())
	bill, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := bill.Manifest(); err != nil || m.ArtifactType != spdxMediaType {
		t.Fatalf("%s: got %+v, %v, want an artifact of type %s", pkg, m, err, spdxMediaType)
	}
	return ref
}

func TestTheSBOMIsAttachedAndComplete(t *testing.T) {
	for _, tc := range []struct {
		name      string
		referrers bool
	}{{"ARegistryWithReferrers", true}, {"AnOlderRegistry", false}} {
		t.Run(tc.name, func(t *testing.T) {
			f := newRegistry(t, tc.referrers)
			folder := build(t, options(t, f.prefix, nil))
			mustPublish(t, f, folder)
			image, err := remote.Image(billOf(t, f, functionName))
			if err != nil {
				t.Fatal(err)
			}
			layers, err := image.Layers()
			if err != nil || len(layers) != 1 {
				t.Fatalf("got %d layers, %v", len(layers), err)
			}
			stream, err := layers[0].Compressed()
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			content, err := io.ReadAll(stream)
			if err != nil {
				t.Fatal(err)
			}
			if file := readAll(t, folder)[functionName+"-v0.2.0.spdx.json"]; file != string(content) {
				t.Error("the file differs from what is attached")
			}
			checkBill(t, f, content)
		})
	}
}

func checkBill(t *testing.T, f *fakeRegistry, content []byte) {
	t.Helper()
	doc, err := spdxjson.Read(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	license, sums := map[string]string{}, map[string]string{}
	for _, p := range doc.Packages {
		license[p.PackageName+"@"+p.PackageVersion] = p.PackageLicenseConcluded
		for _, c := range p.PackageChecksums {
			sums[p.PackageName] = "sha256:" + c.Value
		}
	}
	for pkg, want := range map[string]string{
		"github.com/hashicorp/errwrap@v1.1.0":    "MPL-2.0",
		"github.com/agext/levenshtein@v1.2.3":    "Apache-2.0",
		"stdlib@" + goVersion(t):                 "BSD-3-Clause",
		functionName + "@" + testVersion:         "Apache-2.0",
		functionName + "-linux-arm64@v0.2.0":     "Apache-2.0",
		"golang.org/x/crypto/x509roots/fallback": "",
	} {
		if want != "" && license[pkg] != want {
			t.Errorf("%s has the license %q, want %q", pkg, license[pkg], want)
		}
	}
	if want := f.digest(t, functionName).DigestStr(); sums[functionName] != want {
		t.Errorf("the SBOM is of %s, want %s", sums[functionName], want)
	}
	contained := map[string]int{}
	for _, r := range doc.Relationships {
		contained[r.Relationship]++
	}
	// Two images, each with the two modules, Go's own, and that of the authorities.
	if contained["VARIANT_OF"] != 2 || contained["CONTAINS"] != 8 || contained["DESCRIBES"] != 1 {
		t.Errorf("got the relationships %v", contained)
	}
}

func goVersion(t *testing.T) string {
	t.Helper()
	bin, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	b, err := readBinary(filepath.Join(bin["amd64"], functionName))
	if err != nil {
		t.Fatal(err)
	}
	return b.Go
}

func TestCrossplaneAcceptsThePackagesOfBothArchitectures(t *testing.T) {
	f := newRegistry(t, true)
	mustPublish(t, f, build(t, options(t, f.prefix, nil)))
	parse, err := yaml.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range []string{functionName, "drover"} {
		for _, p := range platforms {
			t.Run(pkg+"On"+p.Architecture, func(t *testing.T) {
				image, _ := imageOf(t, f, pkg, p)
				config, err := image.ConfigFile()
				if err != nil {
					t.Fatal(err)
				}
				if config.Architecture != p.Architecture {
					t.Errorf("got an image for %s", config.Architecture)
				}
				manifest, err := image.Manifest()
				if err != nil {
					t.Fatal(err)
				}
				bases := 0
				for _, l := range manifest.Layers {
					if l.Annotations[crossplane.AnnotationKey] == crossplane.PackageAnnotation {
						bases++
					}
				}
				if bases != 1 {
					t.Errorf("%d layers are annotated as the package, must be 1", bases)
				}
				stream, err := crossplane.ExtractPackageYAML(image)
				if err != nil {
					t.Fatal(err)
				}
				defer stream.Close()
				parsed, err := parse.Parse(context.Background(), stream)
				if err != nil {
					t.Fatal(err)
				}
				linter := crossplane.NewFunctionLinter()
				if pkg == "drover" {
					linter = crossplane.NewConfigurationLinter()
				}
				if err := linter.Lint(parsed); err != nil {
					t.Error(err)
				}
				meta, ok := parsed.GetMeta()[0].(pkgmetav1.Pkg)
				if pkg != "drover" || !ok {
					return
				}
				d := meta.GetDependencies()[0]
				if *d.Package != f.prefix+"/"+functionName || d.Version != ">=v0.2.0 <v0.3.0" {
					t.Errorf("got the dependency %s %s", *d.Package, d.Version)
				}
			})
		}
	}
}

func TestAnImageHasTheLicensesOfWhatItContains(t *testing.T) {
	f := newRegistry(t, true)
	folder := build(t, options(t, f.prefix, nil))
	mustPublish(t, f, folder)
	for _, p := range platforms {
		image, _ := imageOf(t, f, functionName, p)
		stream := mutate.Extract(image)
		defer stream.Close()
		all := readTar(t, stream)
		for path, want := range map[string]string{
			"licenses/LICENSE": "Apache License",
			"licenses/NOTICE":  "Drover",
			"licenses/third-party/github.com/hashicorp/errwrap@v1.1.0/LICENSE": "Mozilla Public License",
			"licenses/third-party/github.com/agext/levenshtein@v1.2.3/NOTICE":  "ALRUX Inc.",
			"licenses/third-party/std@" + goVersion(t) + "/LICENSE":            "The Go Authors",
			"licenses/THIRD_PARTY.md":                                          "https://proxy.golang.org/github.com/hashicorp/errwrap/@v/v1.1.0.zip",
			"etc/ssl/certs/ca-certificates.crt":                                "ISRG Root X1",
		} {
			if !strings.Contains(all[path], want) {
				t.Errorf("%s: %s: got %.200q, want %q", p.Architecture, path, all[path], want)
			}
		}
		if want := "oras pull " + f.prefix + "/release:v0.2.0"; !strings.Contains(all["licenses/THIRD_PARTY.md"], want) {
			t.Errorf("%s: the offer of the sources lacks %q", p.Architecture, want)
		}
	}
	sources := untar(t, filepath.Join(folder, "drover-v0.2.0-sources.tar.gz"))
	if len(sources) != 1 || len(sources["sources/github.com/hashicorp/errwrap@v1.1.0.zip"]) == 0 {
		t.Errorf("got %d sources, want the one module whose license requires it", len(sources))
	}
}

func TestALicenseThatIsNotAcceptedStopsTheRelease(t *testing.T) {
	agpl, err := assets.ReadLicenseFile("License/AGPL-3.0/license.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		files map[string][]byte
		want  string
	}{
		{"OneThatWasNotRead", map[string][]byte{"LICENSE": agpl}, "the license AGPL-3.0 in LICENSE"},
		{"OneInAFolder", map[string][]byte{"LICENSE": mit, "third_party/x/COPYING": agpl}, "the license AGPL-3.0 in third_party/x/COPYING"},
		{"None", map[string][]byte{"README.md": []byte("free")}, "no license was found"},
		{"OneThatIsNotLinked", map[string][]byte{"LICENSE": mit, "testdata/LICENSE": agpl}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for path, content := range tc.files {
				writeFile(t, filepath.Join(dir, path), content)
			}
			_, err := license(source{module: module{Path: "example.org/m", Version: "v1.0.0"}, Dir: dir})
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "example.org/m@v1.0.0")):
				t.Errorf("got %v, want %q and the module", err, tc.want)
			}
		})
	}
}

var mit = []byte(`Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
`)

func TestKeysThatCannotSignAreRefused(t *testing.T) {
	pair, err := cosign.GenerateKeyPair(func(bool) ([]byte, error) { return []byte("secret"), nil })
	if err != nil {
		t.Fatal(err)
	}
	pkcs8 := func(key any, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	}
	for _, tc := range []struct {
		name          string
		key           []byte
		password      string
		wantInMessage string
	}{
		{"AKeyOfCosign", pair.PrivateBytes, "secret", ""},
		{"AWrongPassword", pair.PrivateBytes, "other", "cannot decrypt it with the password in COSIGN_PASSWORD"},
		{"AKeyOfOpenSSL", pkcs8(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), "", ""},
		{"AnotherCurve", pkcs8(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)), "", "must be an ECDSA key on the curve P-256"},
		{"RSA", pkcs8(rsa.GenerateKey(rand.Reader, 2048)), "", "it is a *rsa.PrivateKey, must be an ECDSA key"},
		{"APublicKey", pair.PublicBytes, "", "it is a PUBLIC KEY, must be a private key"},
		{"NoKey", []byte("secret"), "", "it is not in PEM"},
		{"Nothing", nil, "", "the environment variable is empty"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("KEY", string(tc.key))
			t.Setenv(passwordVariable, tc.password)
			_, err := LoadSigner("env://KEY")
			switch {
			case tc.wantInMessage == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case tc.wantInMessage != "" && (err == nil || !strings.Contains(err.Error(), tc.wantInMessage)):
				t.Errorf("got %v, want %q", err, tc.wantInMessage)
			}
		})
	}
	if _, err := LoadSigner(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that the file does not exist", err)
	}
}

func untar(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return readTar(t, zip)
}

func readTar(t *testing.T, stream io.Reader) map[string]string {
	t.Helper()
	all := map[string]string{}
	for r := tar.NewReader(stream); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = string(content)
	}
}
