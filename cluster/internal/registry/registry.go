// Package registry is a package registry on loopback whose content survives a restart.
package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/drover-dev/drover/cluster/internal/files"
)

// maxManifest is the maximum size of a manifest in bytes, as in most registries.
const maxManifest = 4 << 20

var manifestPath = regexp.MustCompile(`^/v2/.+/manifests/[^/]+$`)

// Handler serves the registry whose data is in dir. go-containerregistry's registry can store blobs
// on disk, but has manifests in memory only. So the handler stores manifests itself, and pushes
// them again at the start.
func Handler(dir string, logger *log.Logger) (http.Handler, error) {
	blobs := filepath.Join(dir, "blobs")
	if err := os.MkdirAll(blobs, 0o700); err != nil {
		return nil, err
	}
	k := &keeper{
		dir:   filepath.Join(dir, "manifests"),
		inner: registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)), registry.Logger(logger)),
	}
	return k, k.load()
}

type keeper struct {
	dir   string
	inner http.Handler
}

type manifest struct {
	Path        string `json:"path"`
	ContentType string `json:"contentType"`
	Body        []byte `json:"body"`
}

func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut || !manifestPath.MatchString(r.URL.Path) {
		k.inner.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxManifest))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	// Store it before it is acknowledged, so that no acknowledged manifest is lost.
	if err := k.keep(manifest{Path: r.URL.Path, ContentType: r.Header.Get("Content-Type"), Body: body}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	k.inner.ServeHTTP(w, r)
}

// keep writes a manifest under its tag and under its digest: references by digest must find it
// after the tag has changed.
func (k *keeper) keep(m manifest) error {
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(m.Body))
	byDigest := m
	byDigest.Path = path.Join(path.Dir(m.Path), digest)
	for _, m := range []manifest{byDigest, m} {
		b, err := json.Marshal(m)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%x.json", sha256.Sum256([]byte(m.Path)))
		if err := files.Write(filepath.Join(k.dir, name), b); err != nil {
			return err
		}
	}
	return nil
}

func (k *keeper) load() error {
	names, err := filepath.Glob(filepath.Join(k.dir, "*.json"))
	if err != nil {
		return err
	}
	var images, indexes []manifest
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var m manifest
		if err := json.Unmarshal(b, &m); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if types.MediaType(m.ContentType).IsIndex() {
			indexes = append(indexes, m)
		} else {
			images = append(images, m)
		}
	}
	// The registry refuses an index unless its images exist.
	for _, m := range append(images, indexes...) {
		if err := k.replay(m); err != nil {
			return fmt.Errorf("%s: %w", m.Path, err)
		}
	}
	return nil
}

func (k *keeper) replay(m manifest) error {
	req, err := http.NewRequest(http.MethodPut, m.Path, bytes.NewReader(m.Body)) //nolint:noctx // It is served in this process.
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", m.ContentType)
	w := &answer{header: http.Header{}}
	k.inner.ServeHTTP(w, req)
	if w.code != http.StatusCreated {
		return errors.New(w.body.String())
	}
	return nil
}

// An answer is the registry's response to a request of this package.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(code int)        { a.code = code }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }
