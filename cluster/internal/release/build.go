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
	// Only are the names of the packages to build; by default all.
	Only []string
	// Tools are the folders with kubectl-drover and terraform-provider-drover, by platform, such as linux/amd64.
	// Without one there are no archives of them.
	Tools map[string]string
	// Demo are the folders with the programs of the demo in bin, and its packages in packages, by architecture. Without
	// one there is no image of the demo.
	Demo map[string]string
	// Images are the programs of images that are no packages, of all architectures. The name of a program is that of its image.
	Images []string
	// Downloads is the URL of the folder that users download the files of the release from.
	Downloads string
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
	return create(o, func(b *builder) error { return b.build(ctx) })
}

// BuildTools creates the archives of the tools alone in Out. If it fails, the previous content of Out stays.
func BuildTools(ctx context.Context, o Options) error {
	return create(o, func(b *builder) error {
		if err := b.readOwn(); err != nil {
			return err
		}
		if err := b.readCommit(nil); err != nil {
			return err
		}
		return b.tools(ctx)
	})
}

func create(o Options, do func(*builder) error) error {
	tmp := o.Out + ".new"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return err
	}
	b := builder{Options: o, folder: tmp, known: map[string]licensed{}}
	if err := do(&b); err != nil {
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
	if err := b.readOwn(); err != nil {
		return err
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
	if err := b.demo(ctx); err != nil {
		return fmt.Errorf("build %s: %w", demoName, err)
	}
	if err := b.images(ctx); err != nil {
		return err
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
	if err := b.tools(ctx); err != nil {
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

// readOwn reads Drover's LICENSE and NOTICE.
func (b *builder) readOwn() error {
	for _, name := range []string{"LICENSE", "NOTICE"} {
		content, err := os.ReadFile(filepath.Join(b.Root, name))
		if err != nil {
			return err
		}
		b.own = append(b.own, xpkg.File{Path: name, Content: content})
	}
	return nil
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
			if len(b.Only) > 0 && !slices.Contains(b.Only, s.Name) {
				continue
			}
			if byName[s.Name] == nil {
				byName[s.Name] = map[string]xpkg.Source{}
			}
			byName[s.Name][arch] = s
		}
	}
	for _, name := range b.Only {
		if byName[name] == nil {
			return nil, nil, fmt.Errorf("package %q: there is none of that name", name)
		}
	}
	return byName, slices.Sorted(maps.Keys(byName)), nil
}

// readCommit fails unless all binaries were built from the same commit.
func (b *builder) readCommit(byName map[string]map[string]xpkg.Source) error {
	first := ""
	for _, path := range b.programs(byName) {
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
	if b.created == "" {
		b.created = time.Unix(0, 0).UTC().Format(time.RFC3339)
	}
	return nil
}

// programs returns the paths of all programs of the release.
func (b *builder) programs(byName map[string]map[string]xpkg.Source) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		for _, arch := range slices.Sorted(maps.Keys(byName[name])) {
			if path := byName[name][arch].Binary; path != "" {
				out = append(out, path)
			}
		}
	}
	for _, platform := range slices.Sorted(maps.Keys(b.Tools)) {
		for _, name := range []string{pluginName, terraformName} {
			out = append(out, toolPath(b.Tools[platform], name, platform))
		}
	}
	return append(out, b.Images...)
}

// pack builds a package for all architectures.
func (b *builder) pack(ctx context.Context, name string, sources map[string]xpkg.Source) error {
	return b.index(name, slices.Sorted(maps.Keys(sources)), func(arch string) (v1.Image, []licensed, error) {
		s := sources[arch]
		modules, err := b.modules(ctx, s.Binary)
		if err != nil {
			return nil, nil, err
		}
		if s.Binary != "" {
			s.Files = legalFiles(b.own, modules, b.Release)
		}
		built, err := xpkg.Build(ctx, s, b.Release)
		return built, modules, err
	})
}

// index writes the images of all architectures under one name, with their SBOM and signatures.
func (b *builder) index(name string, architectures []string, build func(arch string) (v1.Image, []licensed, error)) error {
	p, err := newPackage(b.folder, name, b.Registry, b.Signer)
	if err != nil {
		return err
	}
	index := mutate.Annotations(empty.Index, b.annotations(name)).(v1.ImageIndex) //nolint:forcetypeassert // It is made of an ImageIndex.
	var images []image
	for _, arch := range architectures {
		i := image{platform: v1.Platform{OS: "linux", Architecture: arch}}
		var built v1.Image
		if built, i.modules, err = build(arch); err != nil {
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
	return b.linkedModules(ctx, program, module{Path: xpkg.RootsModule, Version: b.Authorities})
}

// linkedModules returns the modules of a program, Go's standard library, and more.
func (b *builder) linkedModules(ctx context.Context, program string, more ...module) ([]licensed, error) {
	bin, err := readBinary(program)
	if err != nil {
		return nil, err
	}
	std, err := standardLibrary(ctx, bin.Go)
	if err != nil {
		return nil, err
	}
	modules := union(bin.Modules, more)
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
	case strings.HasSuffix(name, ".zip"):
		mediaType = "application/zip"
	case strings.HasSuffix(name, ".json"):
		mediaType = "application/json"
	case strings.HasSuffix(name, ".yaml"):
		mediaType = "application/yaml"
	}
	b.files = append(b.files, blob{name: name, mediaType: mediaType, content: content})
	file := filepath.Join(b.folder, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
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
