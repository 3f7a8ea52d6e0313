package release

import (
	"context"
	"debug/buildinfo"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/drover-dev/drover/cluster/internal/xpkg"
)

const (
	// demoName is the repository of the image with the demo.
	demoName = "demo"
	// demoFolder has the layout of the repository in that image.
	demoFolder = "drover"
	demoWork   = demoFolder + "/.work"
	// demoPlane is the folder of the local control plane. The user of the image may write nowhere but to /tmp.
	demoPlane = "/tmp/drover"
)

// demo builds the image of the demo.
func (b *builder) demo(ctx context.Context) error {
	if len(b.Demo) == 0 {
		return nil
	}
	applied, err := manifests(b.Root)
	if err != nil {
		return err
	}
	for i := range applied {
		applied[i].Path = path.Join(demoFolder, applied[i].Path)
	}
	err = b.index(demoName, slices.Sorted(maps.Keys(b.Demo)), func(arch string) (v1.Image, []licensed, error) {
		files, programs, err := demoFiles(b.Demo[arch])
		if err != nil {
			return nil, nil, err
		}
		var modules []licensed
		for _, program := range programs {
			more, err := b.linkedModules(ctx, program)
			if err != nil {
				return nil, nil, err
			}
			for _, m := range more {
				if !slices.ContainsFunc(modules, func(l licensed) bool { return l.String() == m.String() }) {
					modules = append(modules, m)
				}
			}
		}
		bin := "/" + demoWork + "/bin"
		built, err := xpkg.ToolsImage(v1.Platform{OS: "linux", Architecture: arch}, v1.Config{
			Entrypoint: []string{bin + "/demo", "--launcher=" + bin + "/drover-cluster", "--packages=/" + demoWork + "/packages", "--root=/" + demoFolder, "--dir=" + demoPlane, "--keep"},
			WorkingDir: "/" + demoFolder,
			Env:        []string{"PATH=" + bin, "HOME=/tmp", "KUBECONFIG=" + demoPlane + "/kubeconfig"},
		}, files, append(legalFiles(b.own, modules, b.Release), applied...))
		return built, modules, err
	})
	if err == nil {
		b.Log("built %s", b.digests[len(b.digests)-1])
	}
	return err
}

// demoFiles returns the files of a folder with the demo, and the paths of its Go programs.
func demoFiles(folder string) (files []xpkg.File, programs []string, err error) {
	err = filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(folder, file)
		if err != nil {
			return err
		}
		f := xpkg.File{Path: path.Join(demoWork, filepath.ToSlash(relative)), Content: content}
		if _, err := buildinfo.ReadFile(file); err == nil {
			f.Mode, programs = 0o755, append(programs, file)
		}
		files = append(files, f)
		return nil
	})
	// This name makes the program kubectl.
	return append(files, xpkg.File{Path: demoWork + "/bin/kubectl", Link: "drover-kube"}), programs, err
}
