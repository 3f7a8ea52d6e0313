// Package xpkg builds Crossplane packages, with runtime images that need no
// Docker, and pushes them.
package xpkg

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg"
)

// Organization is the first part of the names of our packages in a registry.
const Organization = "drover"

var fileName = regexp.MustCompile(`^(.+)-(v\d+\.\d+\.\d+[^/]*)\.xpkg$`)

// ParseFile splits NAME-VERSION.xpkg.
func ParseFile(path string) (name, version string, err error) {
	m := fileName.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return "", "", fmt.Errorf("%s: the name of a package file must be NAME-vX.Y.Z.xpkg", path)
	}
	return m[1], m[2], nil
}

// PushFolder pushes all packages of a folder to the registry at host:port and
// returns their references.
func PushFolder(ctx context.Context, folder, registry string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.xpkg"))
	if err != nil {
		return nil, err
	}
	var pushed []string
	for _, path := range paths {
		ref, err := Push(ctx, path, registry)
		if err != nil {
			return pushed, fmt.Errorf("push %s: %w", path, err)
		}
		pushed = append(pushed, ref)
	}
	return pushed, nil
}

// Push pushes one package file and returns its reference.
func Push(ctx context.Context, path, registry string) (string, error) {
	pkg, version, err := ParseFile(path)
	if err != nil {
		return "", err
	}
	ref, err := name.NewTag(registry+"/"+Organization+"/"+pkg+":"+version, name.StrictValidation)
	if err != nil {
		return "", err
	}
	image, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		return "", err
	}
	// A file cannot hold annotations of layers; labels stand for them until now.
	if image, err = xpkg.AnnotateLayers(image); err != nil {
		return "", err
	}
	return ref.String(), remote.Write(ref, image, remote.WithContext(ctx))
}
