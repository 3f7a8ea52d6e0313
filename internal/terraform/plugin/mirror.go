package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// DefaultHost of a source that names none.
const DefaultHost = "registry.terraform.io"

// A Source is a version of a provider.
type Source struct {
	// Address like hetznercloud/hcloud or example.org/hetznercloud/hcloud.
	Address string
	// Version like 1.68.0.
	Version string
	// SHA256 has the digests, in hexadecimal, of the program on each platform.
	SHA256 []string
}

var (
	addressPattern = regexp.MustCompile(`^(?:([a-z0-9][a-z0-9.-]*(?::[0-9]+)?)/)?([a-zA-Z0-9][a-zA-Z0-9_-]*)/([a-zA-Z0-9][a-zA-Z0-9_-]*)$`)
	versionPattern = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(?:[-+][0-9A-Za-z.+-]+)?$`)
)

// A Mirror is a directory of providers, laid out as a filesystem mirror of Terraform, unpacked:
// HOST/NAMESPACE/TYPE/VERSION/OS_ARCH/terraform-provider-TYPE_vVERSION. `terraform providers
// mirror` fills the packed form of it.
type Mirror string

// find returns the program of a provider, and its digest, which the source must have.
func (m Mirror) find(s Source) (program string, digest []byte, err error) {
	parts := addressPattern.FindStringSubmatch(s.Address)
	if parts == nil {
		return "", nil, fmt.Errorf("provider source: invalid value %q: must be like hetznercloud/hcloud or example.org/hetznercloud/hcloud", s.Address)
	}
	if !versionPattern.MatchString(s.Version) {
		return "", nil, fmt.Errorf("provider version: invalid value %q: must be one version, like 1.68.0", s.Version)
	}
	host := parts[1]
	if host == "" {
		host = DefaultHost
	}
	platform := runtime.GOOS + "_" + runtime.GOARCH
	dir := filepath.Join(string(m), host, parts[2], parts[3], s.Version, platform)
	programs, err := filepath.Glob(filepath.Join(dir, "terraform-provider-"+parts[3]+"*"))
	if err != nil {
		return "", nil, err
	}
	programs = slices.DeleteFunc(programs, func(p string) bool { return strings.HasSuffix(p, ".zip") })
	if len(programs) != 1 {
		return "", nil, fmt.Errorf("%s has %d programs terraform-provider-%s*, want 1: provide version %s of %s for %s in the plugin directory",
			dir, len(programs), parts[3], s.Version, s.Address, platform)
	}
	digest, err = digestOf(programs[0])
	if err != nil {
		return "", nil, err
	}
	if got := hex.EncodeToString(digest); !slices.ContainsFunc(s.SHA256, func(d string) bool { return strings.EqualFold(d, got) }) {
		return "", nil, fmt.Errorf("the program of %s %s has the SHA-256 digest %s, which is not among the allowed ones: it is not started", s.Address, s.Version, got)
	}
	return programs[0], digest, nil
}

func digestOf(file string) ([]byte, error) {
	f, err := os.Open(file) //nolint:gosec // It is a file of the mirror.
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", file, err)
	}
	return h.Sum(nil), nil
}
