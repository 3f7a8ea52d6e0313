package release

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/drover-dev/drover/cluster/internal/xpkg"
)

// PublishOptions are the options of Publish.
type PublishOptions struct {
	// Folder of the release.
	Folder string
	// Registry is the prefix of the packages' names. It must be the one that the release was built
	// for, unless Mirror is set.
	Registry string
	// Mirror allows a registry other than the one that the release was built for. A mirror serves
	// the packages unchanged, so its users install them by the names of the original registry.
	Mirror bool
	// PlainHTTP allows a registry without TLS.
	PlainHTTP bool
	// Transport of all requests. The default is that of the library.
	Transport http.RoundTripper
	// Log reports each tag.
	Log func(format string, args ...any)
}

// A repository is a package of a release that is pushed.
type repository struct {
	name string
	path layout.Path
	// version is the tag of the release, and digest the digest of the manifest that gets it.
	version string
	tag     name.Tag
	digest  v1.Hash
	// all are the descriptors of the manifest, its SBOM and its signatures.
	all []v1.Descriptor
	// isThere means that the registry already has the tag.
	isThere bool
}

// Publish pushes a release. A version is never changed: if a tag of the version exists with other
// content, nothing is pushed at all.
//
// The tags of the version are written last, after everything that they refer to. The tag of the
// Configuration is the very last one. To continue an interrupted push, call Publish again: it does
// not send content that the registry has.
func Publish(ctx context.Context, o PublishOptions) error {
	repositories, err := read(o)
	if err != nil {
		return err
	}
	opts := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if o.Transport != nil {
		opts = append(opts, remote.WithTransport(o.Transport))
	}
	var conflicts []error
	for i := range repositories {
		r := &repositories[i]
		if err := r.compare(opts); err != nil {
			conflicts = append(conflicts, err)
		}
	}
	if len(conflicts) > 0 {
		return errors.Join(conflicts...)
	}
	for _, r := range repositories {
		if err := r.push(opts); err != nil {
			return fmt.Errorf("push %s: %w: run it again to continue", r.tag, err)
		}
	}
	for _, r := range repositories {
		if r.isThere {
			o.Log("%s is unchanged: %s", r.tag, r.digest)
			continue
		}
		if err := r.finish(opts); err != nil {
			return fmt.Errorf("tag %s: %w: run it again to continue", r.tag, err)
		}
		o.Log("pushed %s: %s", r.tag, r.digest)
	}
	return nil
}

// read reads the repositories of a release. The Configuration is the last one.
func read(o PublishOptions) ([]repository, error) {
	paths, err := filepath.Glob(filepath.Join(o.Folder, packagesFolder, "*"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: there is no release: build it first", o.Folder)
	}
	if !o.Mirror {
		if err := o.checkRegistry(); err != nil {
			return nil, err
		}
	}
	var all []repository
	for _, path := range paths {
		r := repository{name: filepath.Base(path)}
		if err := r.read(path, o); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b repository) int {
		if last := boolOrder(a.name == xpkg.Organization, b.name == xpkg.Organization); last != 0 {
			return last
		}
		return strings.Compare(a.name, b.name)
	})
	return all, nil
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// checkRegistry fails if the release was built for another registry, because the Configuration
// refers to the function and the provider by it.
func (o PublishOptions) checkRegistry() error {
	content, err := os.ReadFile(filepath.Join(o.Folder, "digests.txt"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(content)) {
		_, reference, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if !strings.HasPrefix(reference, o.Registry+"/") {
			return fmt.Errorf("registry %q: the release was built with %s: build it for this registry, or push it as a mirror with --mirror", o.Registry, reference)
		}
	}
	return nil
}

func (r *repository) read(folder string, o PublishOptions) error {
	var err error
	if r.path, err = layout.FromPath(folder); err != nil {
		return err
	}
	index, err := r.path.ImageIndex()
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, d := range manifest.Manifests {
		r.all = append(r.all, d)
		if tag := d.Annotations[ocispec.AnnotationRefName]; tag != "" && !strings.HasSuffix(tag, ".sig") {
			r.version, r.digest = tag, d.Digest
		}
	}
	if r.version == "" {
		return errors.New("its index.json names no version")
	}
	opts := []name.Option{name.StrictValidation}
	if o.PlainHTTP {
		opts = append(opts, name.Insecure)
	}
	if r.tag, err = name.NewTag(o.Registry+"/"+r.name+":"+r.version, opts...); err != nil {
		return err
	}
	if !o.PlainHTTP && r.tag.Scheme() == "http" {
		return fmt.Errorf("registry %q would be reached without TLS: allow it with --plain-http", o.Registry)
	}
	return nil
}

// compare fails if the registry has other content under the tag, or does not answer.
func (r *repository) compare(opts []remote.Option) error {
	there, err := remote.Head(r.tag, opts...)
	var failure *transport.Error
	switch {
	case errors.As(err, &failure) && failure.StatusCode == http.StatusNotFound:
		return nil
	case err != nil:
		return fmt.Errorf("look for %s: %w", r.tag, err)
	case there.Digest != r.digest:
		return fmt.Errorf("%s exists with the digest %s, and the release has %s: a version is never changed, release the next one",
			r.tag, there.Digest, r.digest)
	}
	r.isThere = true
	return nil
}

// push pushes everything except the tag of the version.
func (r *repository) push(opts []remote.Option) error {
	index, err := r.path.ImageIndex()
	if err != nil {
		return err
	}
	for _, d := range r.all {
		var ref name.Reference = r.tag.Context().Digest(d.Digest.String())
		if tag := d.Annotations[ocispec.AnnotationRefName]; tag != "" && tag != r.version {
			ref = r.tag.Context().Tag(tag)
		}
		if d.MediaType.IsIndex() {
			images, err := index.ImageIndex(d.Digest)
			if err != nil {
				return err
			}
			if err := remote.WriteIndex(ref, images, opts...); err != nil {
				return err
			}
			continue
		}
		image, err := index.Image(d.Digest)
		if err != nil {
			return err
		}
		if err := remote.Write(ref, image, opts...); err != nil {
			return err
		}
	}
	return nil
}

// finish writes the tag of the version.
func (r *repository) finish(opts []remote.Option) error {
	desc, err := remote.Get(r.tag.Context().Digest(r.digest.String()), opts...)
	if err != nil {
		return err
	}
	return remote.Tag(r.tag, desc, opts...)
}
