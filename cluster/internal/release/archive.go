package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-dev/drover/cluster/internal/xpkg"
)

func manifestsFile(r xpkg.Release) string { return "drover-" + r.Version + "-manifests.tar.gz" }
func sourcesFile(r xpkg.Release) string   { return "drover-" + r.Version + "-sources.tar.gz" }

// manifestFolders have the manifests that a user applies beside the packages. They are relative to
// the root of the repository.
var manifestFolders = []string{"package/policies", "package/provider-drover", "package/provider-inventory", "examples"}

// released is a name of the repository with the version that is in the source.
var released = regexp.MustCompile(regexp.QuoteMeta(xpkg.DefaultRegistry) + `/([a-z-]+):v[0-9.]+`)

// manifestsArchive returns the manifests of the repository, for the registry and the version of the release: an
// ImageConfig selects a package by the prefix of its name.
func manifestsArchive(root string, r xpkg.Release) ([]byte, error) {
	files, err := manifests(root)
	if err != nil {
		return nil, err
	}
	for i, f := range files {
		files[i].Path = path.Join(strings.TrimSuffix(manifestsFile(r), ".tar.gz"), f.Path)
		content := released.ReplaceAll(f.Content, []byte(xpkg.DefaultRegistry+"/$1:"+r.Version))
		files[i].Content = bytes.ReplaceAll(content, []byte(xpkg.DefaultRegistry+"/"), []byte(r.Registry+"/"))
	}
	return archive(files)
}

// manifests are the files of the repository that a user applies, as they are.
func manifests(root string) ([]xpkg.File, error) {
	var files []xpkg.File
	for _, folder := range manifestFolders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(file string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "crds" || d.Name() == "testdata"):
				return fs.SkipDir
			case d.IsDir() || d.Name() == "crossplane.yaml" || filepath.Ext(file) == ".go":
				return nil
			}
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(root, file)
			if err != nil {
				return err
			}
			files = append(files, xpkg.File{Path: filepath.ToSlash(relative), Content: content})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// sourcesArchive returns the sources of modules whose licenses require it, as the module proxy
// serves them.
func sourcesArchive(modules []licensed) ([]byte, error) {
	var files []xpkg.File
	for _, m := range modules {
		if !m.offersSource() {
			continue
		}
		content, err := os.ReadFile(m.Zip)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.module, err)
		}
		files = append(files, xpkg.File{Path: path.Join("sources", m.String()+".zip"), Content: content})
	}
	return archive(files)
}

// modeOf a file, by default that of one that is read.
func modeOf(f xpkg.File) int64 {
	if f.Mode == 0 {
		return 0o644
	}
	return f.Mode
}

// archive returns a compressed tar of files, ordered by path, without times and owners.
func archive(files []xpkg.File) ([]byte, error) {
	slices.SortFunc(files, func(a, b xpkg.File) int { return strings.Compare(a.Path, b.Path) })
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	w := tar.NewWriter(zip)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.Path, Mode: modeOf(f), Size: int64(len(f.Content))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Content); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
