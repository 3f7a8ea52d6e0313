// Package mirror serves the downloads of real VMs from a folder: kubelets at the paths of
// dl.k8s.io, network plugins at the paths of their releases, and container images as a registry. A
// folder is
//
//	release/v1.35.4/bin/linux/amd64/kubelet             and kubelet.sha256 beside it
//	plugins/v1.9.1/cni-plugins-linux-amd64-v1.9.1.tgz   and its .sha256 beside it
//	images/registry.k8s.io/pause/                       an OCI image layout for each repository
package mirror

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// Folders of a mirror whose files are served as they are.
const (
	releases = "release"
	plugins  = "plugins"
)

// Paths that Handler serves.
var Paths = []string{"/" + releases + "/", "/" + plugins + "/", "/v2/"}

// DefaultRegistry is the registry of images for clients that do not name one.
const DefaultRegistry = "registry.k8s.io"

var (
	digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	pullPattern   = regexp.MustCompile(`^(.+)/(manifests|blobs)/([^/]+)$`)
)

// Handler serves the folder, read-only.
func Handler(dir string) http.Handler {
	mux := http.NewServeMux()
	for _, folder := range []string{releases, plugins} {
		served := http.FileServerFS(files(os.DirFS(filepath.Join(dir, folder))))
		mux.Handle("GET /"+folder+"/", http.StripPrefix("/"+folder, served))
	}
	mux.Handle("GET /v2/{$}", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	}))
	mux.Handle("GET /v2/{rest...}", registry(filepath.Join(dir, "images")))
	return mux
}

// files serves files, and no lists of folders.
func files(f fs.FS) fs.FS { return onlyFiles{f} }

type onlyFiles struct{ fs.FS }

func (o onlyFiles) Open(name string) (fs.File, error) {
	f, err := o.FS.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}, f.Close())
	}
	return f, nil
}

// registry implements the part of the distribution protocol that containerd needs to pull. The
// query parameter ns is the name of the mirrored registry.
func registry(dir string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		m := pullPattern.FindStringSubmatch(r.PathValue("rest"))
		host := r.URL.Query().Get("ns")
		if host == "" {
			host = DefaultRegistry
		}
		if m == nil || !fs.ValidPath(m[1]) || !fs.ValidPath(host) || strings.Contains(host, "/") {
			http.NotFound(w, r)
			return
		}
		layout := filepath.Join(dir, host, filepath.FromSlash(m[1]))
		digest, mediaType := m[3], "application/octet-stream"
		if m[2] == "manifests" {
			d, err := find(layout, m[3])
			if err != nil {
				http.NotFound(w, r)
				return
			}
			digest, mediaType = d.Digest, d.MediaType
		}
		if !digestPattern.MatchString(digest) {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Docker-Content-Digest", digest)
		http.ServeFileFS(w, r, os.DirFS(layout), path.Join("blobs", "sha256", strings.TrimPrefix(digest, "sha256:")))
	}
}

// find returns a manifest by its tag or digest in the index of a layout.
func find(layout, reference string) (Descriptor, error) {
	i, err := readIndex(layout)
	if err != nil {
		return Descriptor{}, err
	}
	for _, d := range i.Manifests {
		if d.Digest == reference || d.Annotations[TagAnnotation] == reference {
			return d, nil
		}
	}
	return Descriptor{}, fs.ErrNotExist
}
