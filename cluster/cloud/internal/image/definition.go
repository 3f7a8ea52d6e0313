package image

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/localcloud"
)

// A Definition is the source of an image: packages of Debian, and added files.
type Definition struct {
	// Name of the image in the API, and of its folders.
	Name string
	// Suite of Debian that the packages come from. A package that is listed as NAME/SUITE comes
	// from that other suite. User Mode Linux comes from the oldest suite: it is a program of the
	// host, so the host's C library must be at least as new as its own.
	Suite string
}

// Definitions of all images.
var Definitions = []Definition{
	{Name: localcloud.ImageDebian12Real, Suite: "bookworm"},
	{Name: localcloud.ImageDebian13Real, Suite: "trixie"},
	{Name: localcloud.ImageFlatcarLike, Suite: "bookworm"},
}

// DefinitionsOf returns the images with these names, or all images if there are no names.
func DefinitionsOf(names []string) ([]Definition, error) {
	if len(names) == 0 {
		return Definitions, nil
	}
	var out []Definition
	for _, name := range names {
		i := slices.IndexFunc(Definitions, func(d Definition) bool { return d.Name == name })
		if i < 0 {
			var known []string
			for _, d := range Definitions {
				known = append(known, d.Name)
			}
			return nil, fmt.Errorf("invalid value %q: must be one of %s", name, strings.Join(known, ", "))
		}
		out = append(out, Definitions[i])
	}
	return out, nil
}

// common is the folder of files that all images have.
const common = "common"

//go:embed definitions
var definitions embed.FS

//go:embed shim/amx.c
var amxSource []byte

// Packages returns the packages of the image, beside those of Debian's base system.
func (d Definition) Packages() ([]string, error) {
	b, err := definitions.ReadFile(path.Join("definitions", d.Name, "packages.txt"))
	return strings.Fields(string(b)), err
}

// Repository returns the packages that are not installed, but that the image can install without a
// network: apt's only source is a folder with these packages and their dependencies. An image
// without this list keeps its sources.
func (d Definition) Repository() ([]string, error) {
	b, err := definitions.ReadFile(path.Join("definitions", d.Name, "repository.txt"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return strings.Fields(string(b)), err
}

// otherSuites returns the other suites in the list of packages, each once.
func (d Definition) otherSuites(packages []string) []string {
	var suites []string
	known := map[string]bool{d.Suite: true}
	for _, p := range packages {
		if _, suite, ok := strings.Cut(p, "/"); ok && !known[suite] {
			known[suite] = true
			suites = append(suites, suite)
		}
	}
	return suites
}

// overlays returns the folders of added files. If two have the same file, the later one is used.
func (d Definition) overlays() []string {
	return []string{path.Join("definitions", common, "overlay"), path.Join("definitions", d.Name, "overlay")}
}

// Hash identifies the inputs of the image: the suite, the list of packages, and the added files.
func (d Definition) Hash() (string, error) {
	packages, err := d.Packages()
	if err != nil {
		return "", err
	}
	repository, err := d.Repository()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n%s\n", d.Suite, strings.Join(packages, "\n"), amxSource, strings.Join(d.steps("ROOT", "OUT", repository), "\n"))
	for _, dir := range d.overlays() {
		if err := fs.WalkDir(definitions, dir, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			b, err := definitions.ReadFile(name)
			fmt.Fprintf(h, "%s %d\n%s", name, len(b), b)
			return err
		}); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
