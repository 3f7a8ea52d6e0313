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

// A Definition is what an image is made of: packages of Debian, and files that are added.
type Definition struct {
	// Name of the image in the API, and of its folders.
	Name string
	// Suite of Debian that the packages come from. One that the list has as NAME/SUITE comes
	// from that other suite: User Mode Linux from the oldest, because it is a program of the
	// host and needs the host's C library to be as new as its own.
	Suite string
}

// Definitions of all images.
var Definitions = []Definition{
	{Name: localcloud.ImageDebian12Real, Suite: "bookworm"},
	{Name: localcloud.ImageDebian13Real, Suite: "trixie"},
	{Name: localcloud.ImageFlatcarLike, Suite: "bookworm"},
}

// DefinitionsOf images by their names; of all images if there are no names.
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

// Packages that the image is made of, beside those that Debian's base system has.
func (d Definition) Packages() ([]string, error) {
	b, err := definitions.ReadFile(path.Join("definitions", d.Name, "packages.txt"))
	return strings.Fields(string(b)), err
}

// Repository are the packages that the image does not have, but can install without a network:
// apt's only source is a folder with these and what they depend on. An image without the list
// keeps its sources.
func (d Definition) Repository() ([]string, error) {
	b, err := definitions.ReadFile(path.Join("definitions", d.Name, "repository.txt"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return strings.Fields(string(b)), err
}

// otherSuites of the list of packages, each once.
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

// overlays are the folders of files that are added. Of two files, the later one is taken.
func (d Definition) overlays() []string {
	return []string{path.Join("definitions", common, "overlay"), path.Join("definitions", d.Name, "overlay")}
}

// Hash identifies what the image is built from: the suite, the list of packages, and the
// files that are added.
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
