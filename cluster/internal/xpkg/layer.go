package xpkg

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// A File is one file of an image.
type File struct {
	// Path in the image, without a leading slash.
	Path string
	// Mode has the permissions of the file. The default is 0644.
	Mode int64
	// Content of the file. A path that ends in a slash is a folder, without content.
	Content []byte
	// Link is the target of a symbolic link, which has no content.
	Link string
}

// layer returns a layer of files and of the folders above them, ordered by path, without times and
// owners. The same files give the same layer.
func layer(files []File) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers(files) {
		if err := w.WriteHeader(h.Header); err != nil {
			return nil, fmt.Errorf("%s: %w", h.Name, err)
		}
		if _, err := w.Write(h.content); err != nil {
			return nil, fmt.Errorf("%s: %w", h.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	// Digest, size and content are read one after the other. The cache makes it compress only once.
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b.Bytes())), nil
	}, tarball.WithCompressedCaching)
}

type entry struct {
	*tar.Header
	content []byte
}

func headers(files []File) []entry {
	byPath := map[string]entry{}
	folder := func(name string, mode int64) {
		byPath[name] = entry{Header: &tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode}}
	}
	for _, f := range files {
		for dir := path.Dir(strings.TrimSuffix(f.Path, "/")); dir != "."; dir = path.Dir(dir) {
			if _, found := byPath[dir+"/"]; !found {
				folder(dir+"/", 0o755)
			}
		}
		mode := f.Mode
		switch {
		case strings.HasSuffix(f.Path, "/"):
			folder(f.Path, mode)
			continue
		case mode == 0:
			mode = 0o644
		}
		if f.Link != "" {
			byPath[f.Path] = entry{Header: &tar.Header{Typeflag: tar.TypeSymlink, Name: f.Path, Linkname: f.Link, Mode: 0o777}}
			continue
		}
		byPath[f.Path] = entry{
			Header:  &tar.Header{Typeflag: tar.TypeReg, Name: f.Path, Mode: mode, Size: int64(len(f.Content))},
			content: f.Content,
		}
	}
	var all []entry
	for _, e := range byPath {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.Name, b.Name) })
	return all
}
