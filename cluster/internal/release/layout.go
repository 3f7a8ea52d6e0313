package release

import (
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func errNoBlob(h v1.Hash) error { return fmt.Errorf("there is no blob %s", h) }

// A pkg is a repository of a release: the manifest that gets the tag of the version, and the
// manifests that refer to it.
type pkg struct {
	path layout.Path
	name string
	// signer is nil for a release without signatures.
	signer   *Signer
	registry string
}

// newPackage creates the layout of a repository below folder.
func newPackage(folder, name, registry string, signer *Signer) (pkg, error) {
	dir := filepath.Join(folder, packagesFolder, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return pkg{}, err
	}
	p, err := layout.Write(dir, empty.Index)
	return pkg{path: p, name: name, registry: registry, signer: signer}, err
}

// add adds an image or artifact under a tag. Without a tag it is found by its digest, and as a
// referrer of its subject.
func (p pkg) add(image v1.Image, tag string) (v1.Descriptor, error) {
	if err := p.path.WriteImage(image); err != nil {
		return v1.Descriptor{}, err
	}
	return p.record(image, tag)
}

// addIndex adds the images of all architectures under a tag.
func (p pkg) addIndex(index v1.ImageIndex, tag string) (v1.Descriptor, error) {
	if err := p.path.WriteIndex(index); err != nil {
		return v1.Descriptor{}, err
	}
	return p.record(index, tag)
}

func (p pkg) record(d partial.Describable, tag string) (v1.Descriptor, error) {
	desc, err := partial.Descriptor(d)
	if err != nil {
		return v1.Descriptor{}, err
	}
	listed := *desc
	if tag != "" {
		listed.Annotations = map[string]string{ocispec.AnnotationRefName: tag}
	}
	return *desc, p.path.AppendDescriptor(listed)
}

// sign signs a manifest of the repository.
func (p pkg) sign(digest v1.Hash) error {
	if p.signer == nil {
		return nil
	}
	s, err := p.signer.signatureOf(p.registry+"/"+p.name, digest)
	if err != nil {
		return err
	}
	_, err = p.add(s, signatureTag(digest))
	return err
}
