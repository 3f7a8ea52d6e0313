package xpkg

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// ReadFile returns a file of an image, as a container of the image would see it.
func ReadFile(image v1.Image, file string) ([]byte, error) {
	stream := mutate.Extract(image)
	defer stream.Close()
	for r := tar.NewReader(stream); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: %w in the image", file, fs.ErrNotExist)
		}
		if err != nil {
			return nil, err
		}
		if path.Clean("/"+h.Name) == path.Clean(file) && h.Typeflag == tar.TypeReg {
			return io.ReadAll(r)
		}
	}
}
