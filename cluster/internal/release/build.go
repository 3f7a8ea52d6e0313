package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/drover-dev/drover/cluster/internal/xpkg"
)

const (
	packagesFolder = "packages"
	// artifactName is the repository of the files of a release that are not packages.
	artifactName  = "release"
	artifactType  = "application/vnd.drover.release.v1"
	sourceLink    = "https://github.com/drover-dev/drover"
	checksumsFile = "checksums.txt"
)

// Options of a build.
type Options struct {
	xpkg.Release
	// Root is the repository. Out is the folder of the release, which is replaced.
	Root, Out string
	// Bin is the folder with the binaries per architecture, such as amd64.
	Bin map[string]string
	// Authorities is the version of xpkg.RootsModule, as returned by AuthoritiesVersion.
	Authorities string
	// Signer signs the release. Without one it is not signed.
	Signer *Signer
	// AllowModified accepts binaries that are not all of one commit, that were built from a tree
	// with uncommitted changes, or that do not have the commit. Such a release cannot be
	// reproduced.
	AllowModified bool
	// Log reports each completed step.
	Log func(format string, args ...any)
}

// Build creates a release in Out. If it fails, the previous content of Out stays.
func Build(ctx context.Context, o Options) error {
	tmp := o.Out + ".new"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return err
	}
	b := builder{Options: o, folder: tmp, known: map[string]licensed{}}
	if err := b.build(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(o.Out); err != nil {
		return err
	}
	return os.Rename(tmp, o.Out)
}

type builder struct {
	Options
	folder string
	// own are Drover's LICENSE and NOTICE.
	own []xpkg.File
	// known are the modules whose licenses were read, by path@version. revision and created are the
	// revision and the time of the commit that all binaries were built from.
	known             map[string]licensed
	revision, created string
	// digests of the packages, in the order of their names.
	digests []string
	// files of the release artifact.
	files []blob
}

func (b *builder) build(ctx context.Context) error {
	for _, name := range []string{"LICENSE", "NOTICE"} {
		content, err := os.ReadFile(filepath.Join(b.Root, name))
		if err != nil {
			return err
		}
		b.own = append(b.own, xpkg.File{Path: name, Content: content})
	}
	byName, names, err := b.sources()
	if err != nil {
		return err
	}
	if err := b.readCommit(byName); err != nil {
		return err
	}
	for _, name := range names {
		began := time.Now()
		if err := b.pack(ctx, name, byName[name]); err != nil {
			return fmt.Errorf("build %s: %w", name, err)
		}
		b.Log("built %s in %.1fs", b.digests[len(b.digests)-1], time.Since(began).Seconds())
	}
	if err := b.write("digests.txt", []byte(strings.Join(b.digests, "\n")+"\n")); err != nil {
		return err
	}
	manifests, err := manifestsArchive(b.Root, b.Release)
	if err != nil {
		return err
	}
	if err := b.write(manifestsFile(b.Release), manifests); err != nil {
		return err
	}
	archive, err := sourcesArchive(slices.Collect(maps.Values(b.known)))
	if err != nil {
		return err
	}
	if err := b.write(sourcesFile(b.Release), archive); err != nil {
		return err
	}
	if err := b.packFiles(); err != nil {
		return err
	}
	return b.writeChecksums()
}

// sources returns the sources of each package, by architecture.
func (b *builder) sources() (map[string]map[string]xpkg.Source, []string, error) {
	byName := map[string]map[string]xpkg.Source{}
	for arch, bin := range b.Bin {
		sources, err := xpkg.Sources(b.Root, bin)
		if err != nil {
			return nil, nil, err
		}
		for _, s := range sources {
			if byName[s.Name] == nil {
				byName[s.Name] = map[string]xpkg.Source{}
			}
			byName[s.Name][arch] = s
		}
	}
	return byName, slices.Sorted(maps.Keys(byName)), nil
}

// readCommit fails unless all binaries were built from the same commit.
func (b *builder) readCommit(byName map[string]map[string]xpkg.Source) error {
	first := ""
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		for _, arch := range slices.Sorted(maps.Keys(byName[name])) {
			path := byName[name][arch].Binary
			if path == "" {
				continue
			}
			bin, err := readBinary(path)
			if err != nil {
				return err
			}
			switch {
			case bin.Modified && !b.AllowModified:
				return fmt.Errorf("%s was built from a tree with changes that are not committed: commit them, or remove them", path)
			case bin.Revision == "" && !b.AllowModified:
				return fmt.Errorf("%s does not name the commit that it was built from: build it in a clone of the repository, not in a worktree of git", path)
			case first == "":
				first, b.revision, b.created = path, bin.Revision, bin.Time
			case bin.Revision != b.revision && !b.AllowModified:
				return fmt.Errorf("%s was built from commit %q, and %s from %q: build all binaries from the same one", first, b.revision, path, bin.Revision)
			}
		}
	}
	if b.created == "" {
		b.created = time.Unix(0, 0).UTC().Format(time.RFC3339)
	}
	return nil
}

// pack builds a package for all architectures, with its SBOM and signatures.
func (b *builder) pack(ctx context.Context, name string, sources map[string]xpkg.Source) error {
	p, err := newPackage(b.folder, name, b.Registry, b.Signer)
	if err != nil {
		return err
	}
	index := mutate.Annotations(empty.Index, b.annotations(name)).(v1.ImageIndex) //nolint:forcetypeassert // It is made of an ImageIndex.
	var images []image
	for _, arch := range slices.Sorted(maps.Keys(sources)) {
		s := sources[arch]
		i := image{platform: v1.Platform{OS: "linux", Architecture: arch}}
		if i.modules, err = b.modules(ctx, s.Binary); err != nil {
			return err
		}
		if s.Binary != "" {
			s.Files = legalFiles(b.own, i.modules, b.Release)
		}
		built, err := xpkg.Build(ctx, s, b.Release)
		if err != nil {
			return err
		}
		if built, err = finish(built, i.platform); err != nil {
			return err
		}
		if i.digest, err = built.Digest(); err != nil {
			return err
		}
		images = append(images, i)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: built, Descriptor: v1.Descriptor{Platform: &i.platform}})
	}
	desc, err := p.addIndex(index, b.Version)
	if err != nil {
		return err
	}
	content, err := sbom(name, b.Release, desc.Digest, images, b.created)
	if err != nil {
		return err
	}
	file := name + "-" + b.Version + ".spdx.json"
	if err := b.write(file, content); err != nil {
		return err
	}
	attached, err := newArtifact(spdxMediaType, &desc, map[string]string{ocispec.AnnotationCreated: b.created},
		[]blob{{name: file, mediaType: spdxMediaType, content: content}})
	if err != nil {
		return err
	}
	bill, err := p.add(attached, "")
	if err != nil {
		return err
	}
	b.digests = append(b.digests, desc.Digest.String()+"  "+b.Registry+"/"+name+":"+b.Version)
	signed := []v1.Hash{desc.Digest, bill.Digest}
	for _, i := range images {
		signed = append(signed, i.digest)
	}
	for _, d := range signed {
		if err := p.sign(d); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) annotations(title string) map[string]string {
	a := map[string]string{
		ocispec.AnnotationTitle: title, ocispec.AnnotationVersion: b.Version, ocispec.AnnotationCreated: b.created,
		ocispec.AnnotationSource: sourceLink, ocispec.AnnotationLicenses: "Apache-2.0",
	}
	if b.revision != "" {
		a[ocispec.AnnotationRevision] = b.revision
	}
	return a
}

// modules returns the modules of an image: those of its program, Go's standard library, and the one
// with the certificate authorities.
func (b *builder) modules(ctx context.Context, program string) ([]licensed, error) {
	if program == "" {
		return nil, nil
	}
	bin, err := readBinary(program)
	if err != nil {
		return nil, err
	}
	std, err := standardLibrary(ctx, bin.Go)
	if err != nil {
		return nil, err
	}
	modules := union(bin.Modules, []module{{Path: xpkg.RootsModule, Version: b.Authorities}})
	var unknown []module
	for _, m := range modules {
		if _, ok := b.known[m.String()]; !ok {
			unknown = append(unknown, m)
		}
	}
	read, err := licenses(ctx, unknown)
	if err != nil {
		return nil, err
	}
	for _, l := range read {
		b.known[l.String()] = l
	}
	all := []licensed{std}
	for _, m := range modules {
		all = append(all, b.known[m.String()])
	}
	return all, nil
}

// AuthoritiesVersion returns the version of the module with the certificate authorities that is
// linked into this program.
func AuthoritiesVersion() (string, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", errors.New("this program has no build information: build it with go build")
	}
	for _, d := range info.Deps {
		if d.Path == xpkg.RootsModule {
			m, err := linked(d)
			return m.Version, err
		}
	}
	return "", fmt.Errorf("this program is not built with %s", xpkg.RootsModule)
}

// finish converts the image of a package to the form for a registry of OCI images: it adds
// annotations to the layers that are the package, and uses only media types of OCI.
func finish(built v1.Image, platform v1.Platform) (v1.Image, error) {
	annotated, err := xpkg.Annotate(built)
	if err != nil {
		return nil, err
	}
	config, err := annotated.ConfigFile()
	if err != nil {
		return nil, err
	}
	if have := config.Architecture; have != "" && have != platform.Architecture {
		return nil, fmt.Errorf("its program is built for %s, and lies in the folder of %s", have, platform.Architecture)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = platform.OS, platform.Architecture
	manifest, err := annotated.Manifest()
	if err != nil {
		return nil, err
	}
	layers, err := annotated.Layers()
	if err != nil {
		return nil, err
	}
	var adds []mutate.Addendum
	for i, l := range layers {
		adds = append(adds, mutate.Addendum{Layer: l, Annotations: manifest.Layers[i].Annotations, MediaType: types.OCILayer})
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	oci, err := mutate.Append(base, adds...)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(oci, config)
}

// write writes a file of the release.
func (b *builder) write(name string, content []byte) error {
	mediaType := types.MediaType("text/plain")
	switch {
	case strings.HasSuffix(name, ".spdx.json"):
		mediaType = spdxMediaType
	case strings.HasSuffix(name, ".tar.gz"):
		mediaType = "application/gzip"
	}
	b.files = append(b.files, blob{name: name, mediaType: mediaType, content: content})
	return os.WriteFile(filepath.Join(b.folder, name), content, 0o644)
}

// packFiles creates the artifact of the files that were written until now.
func (b *builder) packFiles() error {
	p, err := newPackage(b.folder, artifactName, b.Registry, b.Signer)
	if err != nil {
		return err
	}
	a, err := newArtifact(artifactType, nil, b.annotations(artifactName), b.files)
	if err != nil {
		return err
	}
	desc, err := p.add(a, b.Version)
	if err != nil {
		return err
	}
	return p.sign(desc.Digest)
}

// writeChecksums lists every file of the release, as sha256sum does, and signs the list.
func (b *builder) writeChecksums() error {
	var list strings.Builder
	err := filepath.WalkDir(b.folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(b.folder, path)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		fmt.Fprintf(&list, "%s  %s\n", hex.EncodeToString(sum[:]), filepath.ToSlash(relative))
		return nil
	})
	if err != nil {
		return err
	}
	if err := b.write(checksumsFile, []byte(list.String())); err != nil || b.Signer == nil {
		return err
	}
	signature, err := b.Signer.sign([]byte(list.String()))
	if err != nil {
		return err
	}
	key, err := b.Signer.PublicKey()
	if err != nil {
		return err
	}
	return errors.Join(b.write(checksumsFile+".sig", []byte(signature+"\n")), b.write("cosign.pub", key))
}
