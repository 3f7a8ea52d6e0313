package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// readsFile lists the files that the tests of each package read outside of its folder.
const readsFile = "test/suite/reads.txt"

// parts are the targets of make that run the tests of a package on a control plane. The tests of all other packages run without one.
var parts = map[string]string{
	"test/conformance": "conformance-short",
	"test/docs":        "docs",
	"test/e2e":         "e2e",
	"test/karpenter":   "karpenter",
	"test/realvm":      "realvm",
	"test/recovery":    "recovery",
	"test/render":      "render",
	// They have targets that are no part of "make test".
	"test/docs/site": "",
	"test/gitops":    "",
	"test/versions":  "",
}

// tested are the modules whose tests "make test" runs.
var tested = []string{".", "cluster", "cluster/cloud", "cluster/kubernetes", "karpenter", "test/monitoring", "tools/prose"}

// runChanged runs the tests that the changes since a commit can affect, or lists them.
func runChanged(since string, listOnly bool) error {
	files, err := changedFiles(since)
	if err != nil {
		return err
	}
	var packages []Package
	for _, module := range tested {
		of, err := listPackages(module)
		if err != nil {
			return err
		}
		packages = append(packages, of...)
	}
	reads, err := loadReads(readsFile)
	if err != nil {
		return err
	}
	dirs := affected(files, packages, reads)
	if listOnly {
		fmt.Println(strings.Join(dirs, "\n"))
		return nil
	}
	return runAffected(dirs, packages)
}

// runAffected runs the tests of packages: first those that need no control plane. It continues after a failure.
func runAffected(dirs []string, packages []Package) error {
	of := map[string][]string{}
	var planes []string
	for _, dir := range dirs {
		if part, ok := parts[dir]; ok {
			if part != "" {
				planes = append(planes, part)
			}
			continue
		}
		i := slices.IndexFunc(packages, func(p Package) bool { return p.Dir == dir })
		rel, err := filepath.Rel(packages[i].Module, dir)
		if err != nil {
			return err
		}
		of[packages[i].Module] = append(of[packages[i].Module], "./"+filepath.ToSlash(rel))
	}
	var failed error
	for _, module := range tested {
		if len(of[module]) == 0 {
			continue
		}
		failed = errors.Join(failed, show(module, "go", append([]string{"test", "-vet=off", "-p", "4"}, of[module]...)...))
		failed = errors.Join(failed, show(".", "make", "--no-print-directory", "lint-packages", "MODULE="+module, "LINTED="+strings.Join(of[module], " ")))
	}
	for _, part := range planes {
		failed = errors.Join(failed, show(".", "make", "--no-print-directory", part))
	}
	return failed
}

// show runs a command in a folder, and prints it and its output.
func show(dir, name string, args ...string) error {
	fmt.Printf("== %s: %s %s\n", dir, name, strings.Join(args, " "))
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return nil
}

// changedFiles returns the files that differ from a commit, with those that git does not track yet.
func changedFiles(since string) ([]string, error) {
	diff, err := output(".", "git", "diff", "--name-only", "--no-renames", since)
	if err != nil {
		return nil, err
	}
	others, err := output(".", "git", "ls-files", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(diff) + "\n" + string(others)), nil
}

func output(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, stderr.String())
	}
	return out, nil
}

// listPackages returns the packages of a module, with what their tests are built from.
func listPackages(module string) ([]Package, error) {
	root, err := filepath.Abs(".")
	if err != nil {
		return nil, err
	}
	out, err := output(module, "go", "list", "-e", "-test", "-deps", "-json=ImportPath,Dir,ForTest,Deps,Standard,TestGoFiles,XTestGoFiles", "./...")
	if err != nil {
		return nil, err
	}
	var listed []listedPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listedPackage
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		listed = append(listed, l)
	}
	return packagesOf(listed, root, module), nil
}

// A listedPackage is what "go list" prints of a package, or of one of its variants for tests.
type listedPackage struct {
	ImportPath, Dir, ForTest  string
	Deps                      []string
	Standard                  bool
	TestGoFiles, XTestGoFiles []string
}

// packagesOf merges the variants of the packages of a module, and keeps the dependencies in the repository.
func packagesOf(listed []listedPackage, root, module string) []Package {
	dirs := map[string]string{}
	for _, l := range listed {
		if rel, err := filepath.Rel(root, l.Dir); err == nil && !l.Standard && l.Dir != "" && !strings.HasPrefix(rel, "..") {
			dirs[l.ImportPath] = filepath.ToSlash(rel)
		}
	}
	byDir := map[string]*Package{}
	var order []string
	for _, l := range listed {
		dir, ok := dirs[l.ImportPath]
		if !ok || moduleOf(dir) != module {
			continue
		}
		p := byDir[dir]
		if p == nil {
			p = &Package{Dir: dir, Module: module}
			byDir[dir] = p
			order = append(order, dir)
		}
		p.Tested = p.Tested || len(l.TestGoFiles)+len(l.XTestGoFiles) > 0
		for _, d := range l.Deps {
			if of, ok := dirs[d]; ok && of != dir && !slices.Contains(p.Deps, of) {
				p.Deps = append(p.Deps, of)
			}
		}
	}
	var out []Package
	for _, dir := range order {
		out = append(out, *byDir[dir])
	}
	return out
}

// moduleOf returns the module of a folder: the nearest one above it.
func moduleOf(dir string) string {
	best := "."
	for _, m := range tested {
		if m != "." && isBelow(dir, m) && len(m) > len(best) {
			best = m
		}
	}
	return best
}
