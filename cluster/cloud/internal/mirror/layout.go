package mirror

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// TagAnnotation has the tag of a manifest in an index.
const TagAnnotation = "org.opencontainers.image.ref.name"

const (
	mediaTypeIndex    = "application/vnd.oci.image.index.v1+json"
	mediaTypeManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaTypeConfig   = "application/vnd.oci.image.config.v1+json"
	mediaTypeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// A Descriptor names a blob of a layout.
type Descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// An Index has the manifests of a layout.
type Index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []Descriptor `json:"manifests"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        Descriptor   `json:"config"`
	Layers        []Descriptor `json:"layers"`
}

type imageConfig struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Config       struct {
		Entrypoint []string
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// AddImage writes an image with one static program to the folder of a mirror, under a reference
// such as registry.k8s.io/pause:3.10. An image with the same reference is replaced.
func AddImage(dir, reference, program string) error {
	host, name, tag, err := parse(reference)
	if err != nil {
		return err
	}
	binary, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	l := layoutWriter{filepath.Join(dir, "images", host, filepath.FromSlash(name))}
	plain, packed, err := archive([]executable{{filepath.Base(program), binary}})
	if err != nil {
		return err
	}
	config := imageConfig{Architecture: "amd64", OS: "linux"}
	config.Config.Entrypoint = []string{"/" + filepath.Base(program)}
	config.RootFS.Type = "layers"
	config.RootFS.DiffIDs = []string{digestOf(plain)}
	m := manifest{SchemaVersion: 2, MediaType: mediaTypeManifest}
	layers, err := l.blob(mediaTypeLayer, packed)
	if err != nil {
		return err
	}
	m.Layers = []Descriptor{layers}
	if m.Config, err = l.document(mediaTypeConfig, config); err != nil {
		return err
	}
	d, err := l.document(mediaTypeManifest, m)
	if err != nil {
		return err
	}
	d.Annotations = map[string]string{TagAnnotation: tag}
	if err := l.file("oci-layout", []byte(`{"imageLayoutVersion": "1.0.0"}`+"\n")); err != nil {
		return err
	}
	i, err := readIndex(l.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	others := slices.DeleteFunc(i.Manifests, func(d Descriptor) bool { return d.Annotations[TagAnnotation] == tag })
	index, err := json.Marshal(Index{SchemaVersion: 2, MediaType: mediaTypeIndex, Manifests: append(others, d)})
	return errors.Join(err, l.file("index.json", index))
}

// readIndex reads the index of a layout.
func readIndex(layout string) (Index, error) {
	b, err := os.ReadFile(filepath.Join(layout, "index.json"))
	if err != nil {
		return Index{}, err
	}
	var i Index
	return i, json.Unmarshal(b, &i)
}

func parse(reference string) (host, name, tag string, err error) {
	host, rest, ok := strings.Cut(reference, "/")
	name, tag, tagged := strings.Cut(rest, ":")
	if !ok || !tagged || host == "" || name == "" || tag == "" {
		return "", "", "", fmt.Errorf("invalid image %q: must be like registry.k8s.io/pause:3.10", reference)
	}
	return host, name, tag, nil
}

type layoutWriter struct{ dir string }

func (l layoutWriter) document(mediaType string, v any) (Descriptor, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return Descriptor{}, err
	}
	return l.blob(mediaType, b)
}

func (l layoutWriter) blob(mediaType string, b []byte) (Descriptor, error) {
	digest := digestOf(b)
	d := Descriptor{MediaType: mediaType, Digest: digest, Size: int64(len(b))}
	return d, l.file(filepath.Join("blobs", "sha256", strings.TrimPrefix(digest, "sha256:")), b)
}

func (l layoutWriter) file(name string, b []byte) error {
	file := filepath.Join(l.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o644)
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
