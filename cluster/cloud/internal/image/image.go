// Package image builds the disk image of real VMs from packages of Debian, and finds images
// that were built.
package image

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/localcloud"
)

// Suite of Debian that the image is made of.
const Suite = "bookworm"

// Debian12 is the name of the image that Build makes, in the API and as a folder.
const Debian12 = localcloud.ImageDebian12Real

// hashFile marks an image that is complete. It is written last.
const hashFile = "hash"

//go:embed packages.txt
var packageList string

//go:embed shim/amx.c
var amxSource []byte

//go:embed overlay
var overlayFiles embed.FS

// Packages that the image is made of, beside those that Debian's base system has.
func Packages() []string { return strings.Fields(packageList) }

// Hash identifies what an image is built from: the suite, the list of packages, and the files
// that are added.
func Hash() (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n%s\n", Suite, strings.Join(Packages(), "\n"), amxSource, strings.Join(steps("ROOT", "OUT"), "\n"))
	err := fs.WalkDir(overlayFiles, "overlay", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := overlayFiles.ReadFile(name)
		fmt.Fprintf(h, "%s %d\n%s", name, len(b), b)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// List finds the complete images in a folder, by name.
func List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(dir, e.Name(), hashFile)); err == nil {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// isCurrent reports whether a folder has the image with a hash.
func isCurrent(dir, hash string) bool {
	b, err := os.ReadFile(filepath.Join(dir, hashFile))
	return err == nil && strings.TrimSpace(string(b)) == hash
}
