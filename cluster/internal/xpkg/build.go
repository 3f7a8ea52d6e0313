package xpkg

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/spf13/afero"

	pkgmetav1 "github.com/crossplane/crossplane/apis/v2/pkg/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg/parser"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg/parser/examples"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg/parser/yaml"
)

const metaFile = "crossplane.yaml"

// A Source has the inputs of a package.
type Source struct {
	// Name of the package.
	Name string
	// Meta is the path of crossplane.yaml. Objects are folders whose YAML files are the package's
	// objects. A folder that does not exist counts as empty.
	Meta    string
	Objects []string
	// Examples is a folder of examples, which may not exist.
	Examples string
	// Binary is the static Go binary of the runtime image, empty for a Configuration.
	Binary string
	// Files are added to the runtime image.
	Files []File
	// Siblings are the names of all packages of the release, including this one.
	Siblings []string
}

// Sources returns the packages of the repository at root: the Configuration, and the function and
// providers below package/, whose binaries of the same name are in bin.
func Sources(root, bin string) ([]Source, error) {
	sources := []Source{{
		Name: Organization,
		Meta: filepath.Join(root, metaFile),
		// The other folders of apis have the entries of clouds, which are no objects.
		Objects:  []string{filepath.Join(root, "apis", "machine")},
		Examples: filepath.Join(root, "examples"),
	}}
	metas, err := filepath.Glob(filepath.Join(root, "package", "*", metaFile))
	if err != nil {
		return nil, err
	}
	for _, meta := range metas {
		folder := filepath.Dir(meta)
		name := filepath.Base(folder)
		sources = append(sources, Source{
			Name: name, Meta: meta,
			Objects: []string{filepath.Join(folder, "crds"), filepath.Join(folder, "input")},
			Binary:  filepath.Join(bin, name),
		})
	}
	var names []string
	for _, s := range sources {
		names = append(names, s.Name)
	}
	for i := range sources {
		sources[i].Siblings = names
	}
	return sources, nil
}

// Build builds a package. The same inputs give the same package, byte for byte.
func Build(ctx context.Context, s Source, r Release) (v1.Image, error) {
	var base v1.Image = empty.Image
	if s.Binary != "" {
		var err error
		if base, err = RuntimeImage(s.Binary, s.Files...); err != nil {
			return nil, err
		}
	}
	stream, err := packageStream(s, r)
	if err != nil {
		return nil, err
	}
	parse, err := yaml.New()
	if err != nil {
		return nil, err
	}
	builder := xpkg.New(
		parser.NewEchoBackend(stream),
		parser.NewFsBackend(afero.NewOsFs(), parser.FsDir(s.Examples), parser.FsFilters(
			parser.SkipDirs(), parser.SkipNotYAML(), parser.SkipEmpty())),
		parse, examples.New())
	image, meta, err := builder.Build(ctx, xpkg.WithBase(base))
	if err != nil {
		return nil, err
	}
	if p, ok := meta.(pkgmetav1.Pkg); ok {
		if err := r.checkDependencies(p.GetDependencies(), s.Siblings); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Meta, err)
		}
	}
	return image, nil
}

// BuildFile builds a package into a file of folder and returns its path.
func BuildFile(ctx context.Context, s Source, r Release, folder string) (string, error) {
	if _, err := parseVersion(r.Version); err != nil {
		return "", err
	}
	out := filepath.Join(folder, s.Name+"-"+r.Version+".xpkg")
	image, err := Build(ctx, s, r)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	tmp := out + ".new"
	defer os.Remove(tmp)
	if err := tarball.WriteToFile(tmp, nil, image); err != nil {
		return "", err
	}
	return out, os.Rename(tmp, out)
}

// packageStream joins crossplane.yaml, with its variables expanded, and all objects, in the order
// of their paths.
func packageStream(s Source, r Release) (string, error) {
	paths := []string{s.Meta}
	for _, folder := range s.Objects {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if os.IsNotExist(err) && path == folder {
				return fs.SkipAll
			}
			if err == nil && !d.IsDir() && filepath.Ext(path) == ".yaml" {
				paths = append(paths, path)
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	var b strings.Builder
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		text := string(bytes.TrimSpace(content))
		if path == s.Meta {
			if text, err = r.expand(text); err != nil {
				return "", fmt.Errorf("%s: %w", path, err)
			}
		}
		b.WriteString("---\n" + text + "\n")
	}
	return b.String(), nil
}
