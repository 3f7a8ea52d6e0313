// Package image builds the disk images of real VMs from packages of Debian, and lists the images
// that were built.
package image

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hashFile marks an image that is complete. It is written last.
const hashFile = "hash"

// List returns the names of the complete images in a folder.
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

// isCurrent reports whether a folder has the complete image with this hash.
func isCurrent(dir, hash string) bool {
	b, err := os.ReadFile(filepath.Join(dir, hashFile))
	return err == nil && strings.TrimSpace(string(b)) == hash
}
