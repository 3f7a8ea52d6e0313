package release

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/drover-dev/drover/cluster/internal/xpkg"
)

// Programs that users run on their own computers.
const (
	pluginName    = "kubectl-drover"
	terraformName = "terraform-provider-drover"
)

// terraformFolder is the place of the Terraform provider in a release: that of a mirror of providers, which Terraform
// reads as a folder and from a web server.
const terraformFolder = "terraform/registry.terraform.io/drover-dev/drover"

// completionScript is the file in the repository that kubectl runs to complete "kubectl drover".
const completionScript = "package/krew/kubectl_complete-drover"

// A pluginArchive is an archive of the plugin for a platform, as the manifest of krew names it.
type pluginArchive struct{ OS, Arch, File, SHA256, Bin string }

// tools writes the archives of kubectl drover with the manifest for krew, and those of the Terraform provider with
// what a registry and a mirror of providers serve beside them.
func (b *builder) tools(ctx context.Context) error {
	if len(b.Tools) == 0 {
		return nil
	}
	var downloads []pluginArchive
	zips := map[string][]byte{}
	for _, platform := range slices.Sorted(maps.Keys(b.Tools)) {
		goos, arch, ok := strings.Cut(platform, "/")
		if !ok {
			return fmt.Errorf("platform %q: must be OS/ARCH, such as linux/amd64", platform)
		}
		d, err := b.plugin(ctx, goos, arch)
		if err != nil {
			return fmt.Errorf("%s for %s: %w", pluginName, platform, err)
		}
		downloads = append(downloads, d)
		content, err := b.terraformProvider(ctx, goos, arch)
		if err != nil {
			return fmt.Errorf("%s for %s: %w", terraformName, platform, err)
		}
		zips[goos+"_"+arch] = content
	}
	manifest, err := krewManifest(filepath.Join(b.Root, "package", "krew", "drover.yaml"), b.Version, b.Downloads, downloads)
	if err != nil {
		return err
	}
	if err := b.write("drover.yaml", manifest); err != nil {
		return err
	}
	return b.terraformMirror(zips)
}

// tool returns a program of a platform, and the texts that its licenses require.
func (b *builder) tool(ctx context.Context, name, goos, arch string) (xpkg.File, []xpkg.File, error) {
	platform := goos + "/" + arch
	file := toolPath(b.Tools[platform], name, platform)
	modules, err := b.linkedModules(ctx, file)
	if err != nil {
		return xpkg.File{}, nil, err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return xpkg.File{}, nil, err
	}
	return xpkg.File{Path: filepath.Base(file), Mode: 0o755, Content: content}, legalFiles(b.own, modules, b.Release), nil
}

// toolPath is the path of a program in the folder of a platform.
func toolPath(folder, name, platform string) string {
	if strings.HasPrefix(platform, "windows/") {
		name += ".exe"
	}
	return filepath.Join(folder, name)
}

// plugin writes the archive of kubectl drover for a platform.
func (b *builder) plugin(ctx context.Context, goos, arch string) (pluginArchive, error) {
	program, files, err := b.tool(ctx, pluginName, goos, arch)
	if err != nil {
		return pluginArchive{}, err
	}
	completion, err := os.ReadFile(filepath.Join(b.Root, completionScript))
	if err != nil {
		return pluginArchive{}, err
	}
	files = append(files, program, xpkg.File{Path: path.Base(completionScript), Mode: 0o755, Content: completion})
	// Krew wants the license at the top.
	files = append(files, b.own...)
	content, err := archive(files)
	if err != nil {
		return pluginArchive{}, err
	}
	d := pluginArchive{OS: goos, Arch: arch, Bin: program.Path, File: fmt.Sprintf("%s-%s-%s-%s.tar.gz", pluginName, b.Version, goos, arch), SHA256: sum(content)}
	return d, b.write(d.File, content)
}

// krewManifest fills in the template of the manifest for krew.
func krewManifest(file, version, url string, archives []pluginArchive) ([]byte, error) {
	t, err := template.ParseFiles(file)
	if err != nil {
		return nil, err
	}
	out := &bytes.Buffer{}
	err = t.Execute(out, struct {
		Version, URL string
		Archives     []pluginArchive
	}{version, strings.TrimSuffix(url, "/"), archives})
	return out.Bytes(), err
}

// terraformProvider returns the archive of the Terraform provider for a platform.
func (b *builder) terraformProvider(ctx context.Context, goos, arch string) ([]byte, error) {
	program, files, err := b.tool(ctx, terraformName, goos, arch)
	if err != nil {
		return nil, err
	}
	// Terraform looks for this prefix, and releases have the version behind it.
	program.Path = terraformName + "_" + b.Version + strings.TrimPrefix(program.Path, terraformName)
	return zipped(append(files, program))
}

// zipped returns a zip of files, ordered by path, without times.
func zipped(files []xpkg.File) ([]byte, error) {
	slices.SortFunc(files, func(a, b xpkg.File) int { return strings.Compare(a.Path, b.Path) })
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.Path, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		h.SetMode(fs.FileMode(modeOf(f))) //nolint:gosec // It is a mode.
		entry, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(f.Content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// terraformMirror writes the archives, the files that the protocol of registries wants beside them, and those of the
// protocol of mirrors. zips are by OS_ARCH.
func (b *builder) terraformMirror(zips map[string][]byte) error {
	version := strings.TrimPrefix(b.Version, "v")
	prefix := terraformName + "_" + version + "_"
	type mirrored struct {
		URL    string   `json:"url"`
		Hashes []string `json:"hashes"`
	}
	archives, sums := map[string]mirrored{}, ""
	write := func(name string, content []byte) error { return b.write(path.Join(terraformFolder, name), content) }
	for _, platform := range slices.Sorted(maps.Keys(zips)) {
		name := prefix + platform + ".zip"
		if err := write(name, zips[platform]); err != nil {
			return err
		}
		archives[platform] = mirrored{URL: name, Hashes: []string{"zh:" + sum(zips[platform])}}
		sums += sum(zips[platform]) + "  " + name + "\n"
	}
	protocol := []byte(`{"version": 1, "metadata": {"protocol_versions": ["6.0"]}}` + "\n")
	sums += sum(protocol) + "  " + prefix + "manifest.json\n"
	index, err := json.MarshalIndent(map[string]any{"versions": map[string]any{version: struct{}{}}}, "", "  ")
	if err != nil {
		return err
	}
	list, err := json.MarshalIndent(map[string]any{"archives": archives}, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(write(prefix+"manifest.json", protocol), write(prefix+"SHA256SUMS", []byte(sums)),
		write("index.json", append(index, '\n')), write(version+".json", append(list, '\n')))
}

func sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}
