package release

import (
	"encoding/json"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// An artifact is a manifest of files that are not an image, in the form of the OCI image
// specification: its config is empty.
type artifact struct {
	manifest []byte
	blobs    map[v1.Hash]v1.Layer
}

// A blob is a file of an artifact.
type blob struct {
	name      string
	mediaType types.MediaType
	content   []byte
}

// newArtifact returns an artifact that refers to the manifest subject, if there is one.
func newArtifact(artifactType string, subject *v1.Descriptor, annotations map[string]string, blobs []blob) (v1.Image, error) {
	a := artifact{blobs: map[v1.Hash]v1.Layer{}}
	m := v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		ArtifactType:  artifactType,
		Annotations:   annotations,
		Subject:       subject,
	}
	add := func(b blob) (v1.Descriptor, error) {
		l := static.NewLayer(b.content, b.mediaType)
		d, err := partial.Descriptor(l)
		if err != nil {
			return v1.Descriptor{}, err
		}
		a.blobs[d.Digest] = l
		if b.name != "" {
			d.Annotations = map[string]string{ocispec.AnnotationTitle: b.name}
		}
		return *d, nil
	}
	var err error
	if m.Config, err = add(blob{mediaType: types.MediaType(ocispec.MediaTypeEmptyJSON), content: []byte("{}")}); err != nil {
		return nil, err
	}
	for _, b := range blobs {
		d, err := add(b)
		if err != nil {
			return nil, err
		}
		m.Layers = append(m.Layers, d)
	}
	if a.manifest, err = json.Marshal(m); err != nil {
		return nil, err
	}
	return partial.CompressedToImage(a)
}

func (a artifact) RawManifest() ([]byte, error)        { return a.manifest, nil }
func (a artifact) RawConfigFile() ([]byte, error)      { return []byte("{}"), nil }
func (a artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// LayerByDigest implements partial.CompressedImageCore.
func (a artifact) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	l, ok := a.blobs[h]
	if !ok {
		return nil, errNoBlob(h)
	}
	return l, nil
}
