package xpkg

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

const (
	binFolder = "/usr/local/bin"
	// nonRoot is the ID of the user nonroot in distroless images.
	nonRoot = "65532"
	// Without these files os/user fails, and so does client-go for a kubeconfig.
	passwd = "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n"
	group  = "root:x:0:\nnonroot:x:65532:\n"
)

// RuntimeImage returns an image of one static Go binary, which is its entrypoint, with the public
// certificate authorities, a /tmp that every user may write to, and the given files. The same
// binary and files give the same image.
func RuntimeImage(binary string, files ...File) (v1.Image, error) {
	platform, err := PlatformOf(binary)
	if err != nil {
		return nil, err
	}
	base, err := baseLayer()
	if err != nil {
		return nil, err
	}
	layers := []v1.Layer{base}
	if len(files) > 0 {
		l, err := layer(files)
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	target := path.Join(binFolder, filepath.Base(binary))
	program, err := layer([]File{{Path: target[1:], Mode: 0o755, Content: content}})
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
	return mutate.AppendLayers(image, append(layers, program)...)
}

// ToolsImage returns an image of several static programs with their files, the public certificate authorities, and a
// /tmp that every user may write to. The same files give the same image.
func ToolsImage(platform v1.Platform, config v1.Config, layers ...[]File) (v1.Image, error) {
	base, err := baseLayer()
	if err != nil {
		return nil, err
	}
	all := []v1.Layer{base}
	for _, files := range layers {
		l, err := layer(files)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	config.User = nonRoot
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: platform.OS, Architecture: platform.Architecture, RootFS: v1.RootFS{Type: "layers"}, Config: config})
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(image, all...)
}

// baseLayer is the same in all images, so that a registry and a node store it once.
func baseLayer() (v1.Layer, error) {
	authorities, err := roots()
	if err != nil {
		return nil, err
	}
	return layer([]File{
		{Path: rootsFile, Content: authorities},
		{Path: "etc/passwd", Content: []byte(passwd)},
		{Path: "etc/group", Content: []byte(group)},
		{Path: "tmp/", Mode: 0o1777},
	})
}

// PlatformOf returns the platform that a Go binary was built for. It refuses a binary with cgo,
// which would need libraries that the image does not have.
func PlatformOf(binary string) (v1.Platform, error) {
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
