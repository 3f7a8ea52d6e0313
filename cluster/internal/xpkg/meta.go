package xpkg

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	pkgmetav1 "github.com/crossplane/crossplane/apis/v2/pkg/meta/v1"
)

// DefaultRegistry is the registry and organization of released packages if no other one is given,
// without a trailing slash. A local control plane serves packages with this prefix from its own
// registry. The Makefile has the same value.
const DefaultRegistry = "xpkg.drover.dev/drover"

// A Release has the properties that all packages of one build share.
type Release struct {
	// Registry is the prefix of the packages' names, such as DefaultRegistry.
	Registry string
	// Version of all packages, vX.Y.Z or vX.Y.Z-PRERELEASE.
	Version string
}

// Variables of crossplane.yaml that the build expands.
const (
	registryVariable = "${REGISTRY}"
	rangeVariable    = "${COMPATIBLE}"
)

// parseVersion accepts vX.Y.Z and vX.Y.Z-PRERELEASE. A tag cannot have build metadata.
func parseVersion(version string) (*semver.Version, error) {
	bare, hasPrefix := strings.CutPrefix(version, "v")
	v, err := semver.StrictNewVersion(bare)
	if !hasPrefix || err != nil || v.Metadata() != "" {
		return nil, fmt.Errorf("version %q: must be vX.Y.Z or vX.Y.Z-PRERELEASE", version)
	}
	return v, nil
}

// Range returns the version constraint on other packages of Drover for a package of this version:
// at least this version, and the same minor version. An upgrade of the Configuration then always
// upgrades the function and the provider too.
//
// A constraint selects prereleases only if both of its bounds are prereleases.
func Range(version string) (string, error) {
	v, err := parseVersion(version)
	if err != nil {
		return "", err
	}
	next := v.IncMinor()
	upper := "v" + next.String()
	if v.Prerelease() != "" {
		upper += "-0"
	}
	return fmt.Sprintf(">=%s <%s", version, upper), nil
}

// expand expands the variables of a crossplane.yaml.
func (r Release) expand(meta string) (string, error) {
	compatible, err := Range(r.Version)
	if err != nil {
		return "", err
	}
	if r.Registry == "" || strings.HasSuffix(r.Registry, "/") {
		return "", fmt.Errorf("registry %q: must be a prefix as %s, without a trailing slash", r.Registry, DefaultRegistry)
	}
	meta = strings.NewReplacer(registryVariable, r.Registry, rangeVariable, compatible).Replace(meta)
	if _, rest, found := strings.Cut(meta, "${"); found {
		variable, _, _ := strings.Cut(rest, "}")
		return "", fmt.Errorf("unknown variable ${%s}: there are %s and %s", variable, registryVariable, rangeVariable)
	}
	return meta, nil
}

// checkDependencies refuses a dependency on a package of the same release if another version or
// another registry could satisfy it. With an open range such as ">=v0.1.0", an upgrade of the
// Configuration would not upgrade the function and the provider.
func (r Release) checkDependencies(dependencies []pkgmetav1.Dependency, siblings []string) error {
	want, err := Range(r.Version)
	if err != nil {
		return err
	}
	for i, d := range dependencies {
		source := dependencySource(d)
		name := path.Base(source)
		if !slices.Contains(siblings, name) {
			continue
		}
		field := fmt.Sprintf("spec.dependsOn[%d]", i)
		if expected := r.Registry + "/" + name; source != expected {
			return fmt.Errorf("%s.package: is %q, must be %q: write %s/%s", field, source, expected, registryVariable, name)
		}
		if d.Version != want {
			return fmt.Errorf("%s.version: %s has the range %q, must be %q: an upgrade would not replace an older one; write %s",
				field, name, d.Version, want, rangeVariable)
		}
	}
	return nil
}

// dependencySource returns the package that a dependency names, in any of Crossplane's fields for
// it.
func dependencySource(d pkgmetav1.Dependency) string {
	for _, s := range []*string{d.Package, d.Configuration, d.Provider, d.Function} {
		if s != nil {
			return *s
		}
	}
	return ""
}
