package xpkg

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const (
	binFolder = "/usr/local/bin"
	// nonRoot is the user of distroless images of that name.
	nonRoot = "65532"
)

// RuntimeImage makes an image of one static Go binary, which is its entrypoint. The
// same binary gives the same image.
func RuntimeImage(binary string) (v1.Image, error) {
	platform, err := platformOf(binary)
	if err != nil {
		return nil, err
	}
	target := path.Join(binFolder, filepath.Base(binary))
	content, err := binaryTar(binary, target)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	})
	if err != nil {
		return nil, err
	}
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS:           platform.OS,
		Architecture: platform.Architecture,
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: []string{target},
			User:       nonRoot,
			WorkingDir: "/",
			Env:        []string{"PATH=" + binFolder},
		},
	})
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(image, layer)
}

// platformOf reads what a Go binary was built for. A binary with cgo would need
// libraries that the image does not have.
func platformOf(binary string) (v1.Platform, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return v1.Platform{}, fmt.Errorf("%s: %w", binary, err)
	}
	var p v1.Platform
	for _, s := range info.Settings {
		switch {
		case s.Key == "GOOS":
			p.OS = s.Value
		case s.Key == "GOARCH":
			p.Architecture = s.Value
		case s.Key == "CGO_ENABLED" && s.Value != "0":
			return p, fmt.Errorf("%s is built with CGO_ENABLED=%s: build it with CGO_ENABLED=0", binary, s.Value)
		}
	}
	return p, nil
}

// binaryTar is a tar of the binary at target and the folders above it, without
// times and owners.
func binaryTar(binary, target string) ([]byte, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, folder := range []string{"usr/", "usr/local/", "usr/local/bin/"} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o755}); err != nil {
			return nil, err
		}
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: target[1:], Mode: 0o755, Size: int64(len(content))}); err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	return b.Bytes(), w.Close()
}
