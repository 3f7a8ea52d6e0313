package release

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// A module is a Go module that is linked into a binary.
type module struct {
	Path    string
	Version string
	// Sum is the hash of its content, as in go.sum.
	Sum string
}

func (m module) String() string { return m.Path + "@" + m.Version }

// A binary is the build information of a Go program.
type binary struct {
	// Go is the version of the toolchain, without the prefix "go".
	Go string
	// Revision and Time are those of the commit. Modified means that the tree had uncommitted
	// changes. Revision is empty for a build outside of a repository.
	Revision, Time string
	Modified       bool
	Modules        []module
}

// readBinary reads the build information that the linker wrote to a program.
func readBinary(path string) (binary, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return binary{}, fmt.Errorf("%s: %w", path, err)
	}
	b := binary{Go: strings.TrimPrefix(info.GoVersion, "go")}
	for _, d := range info.Deps {
		if isOfRepository(info.Main.Path, d) {
			continue
		}
		m, err := linked(d)
		if err != nil {
			return b, fmt.Errorf("%s: %w", path, err)
		}
		b.Modules = append(b.Modules, m)
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b, nil
}

// repositoryPath is the path of the module at the root of the repository. That of a nested module has its folder behind it.
const repositoryPath = "github.com/drover-dev/drover"

// isOfRepository reports whether a module is a folder of the repository. Its files are of the commit that is released, as
// those of the program are. program is the path of the program's own module.
func isOfRepository(program string, d *debug.Module) bool {
	if d.Replace == nil || !strings.HasPrefix(d.Replace.Path, ".") {
		return false
	}
	nested, _ := strings.CutPrefix(program, repositoryPath+"/")
	if nested == program {
		nested = ""
	}
	return filepath.IsLocal(filepath.Join(nested, d.Replace.Path))
}

// linked returns the module that was linked: its replacement, if it has one. A replacement by a
// folder elsewhere has neither a version nor a source to offer.
func linked(d *debug.Module) (module, error) {
	original := d.Path
	if d.Replace != nil {
		d = d.Replace
	}
	if d.Version == "" || d.Sum == "" {
		return module{}, fmt.Errorf("module %s is replaced by the folder %s: a release contains published modules only", original, d.Path)
	}
	return module{Path: d.Path, Version: d.Version, Sum: d.Sum}, nil
}

// A source is a module with its files in the module cache.
type source struct {
	module
	// Dir is the folder of its files, and Zip the archive that the module proxy serves.
	Dir, Zip string
}

// download returns the sources of modules from the module cache, and downloads missing ones. Their
// content must have the hash that was linked.
func download(ctx context.Context, modules []module) ([]source, error) {
	if len(modules) == 0 {
		return nil, nil
	}
	args := []string{"mod", "download", "-json"}
	for _, m := range modules {
		args = append(args, m.String())
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	runErr := cmd.Run()
	found := map[string]source{}
	for d := json.NewDecoder(&stdout); ; {
		var s struct {
			source
			Error string
		}
		if err := d.Decode(&s); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go mod download: %w: %s", errors.Join(runErr, err), stderr.String())
		}
		if s.Error != "" {
			return nil, fmt.Errorf("go mod download %s: %s", s.module, s.Error)
		}
		found[s.String()] = s.source
	}
	if runErr != nil {
		return nil, fmt.Errorf("go mod download: %w: %s", runErr, stderr.String())
	}
	var all []source
	for _, m := range modules {
		s, ok := found[m.String()]
		switch {
		case !ok:
			return nil, fmt.Errorf("go mod download %s: it was not reported", m)
		case m.Sum != "" && s.Sum != m.Sum:
			return nil, fmt.Errorf("%s: the module cache has %s, and the binary was linked with %s", m, s.Sum, m.Sum)
		}
		all = append(all, s)
	}
	return all, nil
}

// union returns the modules of several binaries, ordered by path and version.
func union(all ...[]module) []module {
	modules := slices.Concat(all...)
	slices.SortFunc(modules, func(a, b module) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(modules)
}
