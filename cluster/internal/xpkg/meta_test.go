package xpkg

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"

	pkgmetav1 "github.com/crossplane/crossplane/apis/v2/pkg/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg/parser/yaml"
)

// dependencies returns the dependencies of the repository's Configuration, as Crossplane reads
// them.
func dependencies(t *testing.T, r Release) []pkgmetav1.Dependency {
	t.Helper()
	sources, err := Sources(filepath.Join("..", "..", ".."), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	image, err := Build(context.Background(), sources[0], r)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := xpkg.ExtractPackageYAML(image)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	parser, err := yaml.New()
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := parser.Parse(context.Background(), io.NopCloser(stream))
	if err != nil {
		t.Fatal(err)
	}
	meta, ok := pkg.GetMeta()[0].(pkgmetav1.Pkg)
	if !ok {
		t.Fatalf("the metadata is %T", pkg.GetMeta()[0])
	}
	return meta.GetDependencies()
}

// Crossplane does not change a dependency while the range accepts its version.
func TestAnUpgradeOfTheConfigurationReplacesWhatItDependsOn(t *testing.T) {
	const registry = "registry.example.org/drover"
	for _, tc := range []struct {
		name, release string
		keeps         map[string]bool
	}{
		{"ANewMinorVersion", "v0.2.0", map[string]bool{"v0.1.0": false, "v0.1.9": false, "v0.2.0": true, "v0.2.1": true, "v0.3.0": false}},
		{"APatch", "v0.2.1", map[string]bool{"v0.2.0": false, "v0.2.1": true, "v0.3.0": false}},
		{"APrerelease", "v0.2.0-rc.1", map[string]bool{"v0.1.0": false, "v0.2.0-rc.1": true, "v0.2.0": true, "v0.3.0-rc.1": false}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := dependencies(t, Release{Registry: registry, Version: tc.release})
			if len(all) != 2 {
				t.Fatalf("got %d dependencies, want the function and provider-drover", len(all))
			}
			for _, d := range all {
				if source := dependencySource(d); !strings.HasPrefix(source, registry+"/") {
					t.Errorf("%s is not of the registry %s", source, registry)
				}
				c, err := semver.NewConstraint(d.Version)
				if err != nil {
					t.Fatalf("%s: %v", d.Version, err)
				}
				for version, keep := range tc.keeps {
					if got := c.Check(semver.MustParse(version)); got != keep {
						t.Errorf("%s of %s accepts %s: %v, want %v", d.Version, dependencySource(d), version, got, keep)
					}
				}
			}
		})
	}
}

func TestADependencyThatAnUpgradeWouldNotReplaceIsRefused(t *testing.T) {
	const meta = `apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: test}
spec:
  dependsOn:
    - {apiVersion: pkg.crossplane.io/v1, kind: Function, package: PACKAGE, version: "RANGE"}
`
	for _, tc := range []struct{ name, pkg, constraint, want string }{
		{"VariablesAreAccepted", "${REGISTRY}/function-test", "${COMPATIBLE}", ""},
		{"ADependencyOfAnotherProjectMayHaveAnyRange", "xpkg.example.org/other/function-other", ">=v1.0.0", ""},
		{"AnOpenRange", "${REGISTRY}/function-test", ">=v0.1.0", `spec.dependsOn[0].version: function-test has the range ">=v0.1.0", must be ">=v0.2.0 <v0.3.0"`},
		{"AFixedRegistry", "xpkg.drover.dev/drover/function-test", "${COMPATIBLE}", `is "xpkg.drover.dev/drover/function-test", must be "registry.example.org/drover/function-test"`},
		{"AVariableThatDoesNotExist", "${PREFIX}/function-test", "${COMPATIBLE}", "unknown variable ${PREFIX}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := t.TempDir()
			writeFile(t, filepath.Join(root, "crossplane.yaml"), strings.NewReplacer("PACKAGE", tc.pkg, "RANGE", tc.constraint).Replace(meta))
			writeFile(t, filepath.Join(root, "package", "function-test", "crossplane.yaml"), functionMeta)
			sources, err := Sources(root, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			_, err = Build(context.Background(), sources[0], Release{Registry: "registry.example.org/drover", Version: "v0.2.0"})
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestAVersionOrARegistryThatCannotBeATagIsRefused(t *testing.T) {
	for _, tc := range []struct {
		name string
		r    Release
		want string
	}{
		{"NoV", Release{DefaultRegistry, "0.2.0"}, `version "0.2.0": must be vX.Y.Z`},
		{"NoPatch", Release{DefaultRegistry, "v0.2"}, `version "v0.2": must be vX.Y.Z`},
		{"BuildMetadata", Release{DefaultRegistry, "v0.2.0+linux"}, `version "v0.2.0+linux": must be vX.Y.Z`},
		{"NoRegistry", Release{"", "v0.2.0"}, `registry "": must be a prefix`},
		{"ASlashAtTheEnd", Release{"registry.example.org/drover/", "v0.2.0"}, "without a trailing slash"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := tc.r.expand("kind: Function"); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
