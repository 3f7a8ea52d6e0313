package runtime

import (
	"context"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/drover-dev/drover/cluster/internal/files"
	"github.com/drover-dev/drover/cluster/internal/layout"
	"github.com/drover-dev/drover/cluster/internal/xpkg"
)

// A program is how to start a package's image.
type program struct {
	path string
	args []string
}

// fetch pulls a package's image and extracts the binary of its entrypoint.
func fetch(ctx context.Context, reference string, id identity, dir layout.Dir) (program, error) {
	ref, err := name.ParseReference(reference, name.StrictValidation)
	if err != nil {
		return program{}, fmt.Errorf("status.resolvedImage: %w", err)
	}
	image, err := remote.Image(ref, remote.WithContext(ctx))
	if err != nil {
		return program{}, fmt.Errorf("pull %s: %w", ref, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return program{}, err
	}
	command := append(append([]string{}, config.Config.Entrypoint...), config.Config.Cmd...)
	if len(command) == 0 {
		return program{}, fmt.Errorf("%s has no entrypoint: the package has no runtime image", ref)
	}
	p := program{path: binaryPath(dir, id, command[0]), args: command[1:]}
	if files.Exists(p.path) {
		return p, nil
	}
	content, err := xpkg.ReadFile(image, command[0])
	if err != nil {
		return p, fmt.Errorf("%s: %w", ref, err)
	}
	// The file gets its final name when it is complete and executable.
	tmp := p.path + ".new"
	if err := files.Write(tmp, content); err != nil {
		return p, err
	}
	if err := os.Chmod(tmp, 0o700); err != nil {
		return p, err
	}
	return p, os.Rename(tmp, p.path)
}
