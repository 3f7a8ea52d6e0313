// Package xpkg builds Crossplane packages, with runtime images, without Docker, and pushes them.
package xpkg

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg"
)

// Organization is the first part of the names of Drover's packages in a registry.
const Organization = "drover"

var fileName = regexp.MustCompile(`^(.+)-(v\d+\.\d+\.\d+[^/]*)\.xpkg$`)

// ParseFile splits the file name NAME-VERSION.xpkg.
func ParseFile(path string) (name, version string, err error) {
	m := fileName.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return "", "", fmt.Errorf("%s: the name of a package file must be NAME-vX.Y.Z.xpkg", path)
	}
	return m[1], m[2], nil
}

// A Pushed is the result of a push.
type Pushed struct {
	// Reference of the package.
	Reference string
	// Unchanged means that the registry had the same package already. Replaced means that it had
	// another package under this version. Crossplane does not pull a version again that it has
	// installed.
	Unchanged, Replaced bool
}

// String describes the result.
func (p Pushed) String() string {
	switch {
	case p.Unchanged:
		return p.Reference + " is unchanged"
	case p.Replaced:
		return "pushed " + p.Reference + " in place of another one: what is installed stays as it is"
	}
	return "pushed " + p.Reference
}

// PushFolder pushes all packages of a folder to the registry at host:port.
func PushFolder(ctx context.Context, folder, registry string) ([]Pushed, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.xpkg"))
	if err != nil {
		return nil, err
	}
	var all []Pushed
	for _, path := range paths {
		p, err := Push(ctx, path, registry)
		if err != nil {
			return all, fmt.Errorf("push %s: %w", path, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// Annotate marks the layers of an image that are the package, so that Crossplane pulls only those.
// The builder stored the marks as labels, because a file cannot hold annotations of layers.
func Annotate(image v1.Image) (v1.Image, error) { return xpkg.AnnotateLayers(image) }

// Push pushes one package file.
func Push(ctx context.Context, path, registry string) (Pushed, error) {
	pkg, version, err := ParseFile(path)
	if err != nil {
		return Pushed{}, err
	}
	ref, err := name.NewTag(registry+"/"+Organization+"/"+pkg+":"+version, name.StrictValidation)
	if err != nil {
		return Pushed{}, err
	}
	image, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		return Pushed{}, err
	}
	if image, err = Annotate(image); err != nil {
		return Pushed{}, err
	}
	digest, err := image.Digest()
	if err != nil {
		return Pushed{}, err
	}
	p := Pushed{Reference: ref.String()}
	// An error counts as a missing package: if the registry is not available, the push fails.
	if there, err := remote.Head(ref, remote.WithContext(ctx)); err == nil {
		p.Unchanged, p.Replaced = there.Digest == digest, there.Digest != digest
	}
	if p.Unchanged {
		return p, nil
	}
	return p, remote.Write(ref, image, remote.WithContext(ctx))
}
