package main

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// A Package is a package of the repository with tests or without. All folders are paths from the root of the repository.
type Package struct {
	// Dir is its folder.
	Dir string
	// Module is the folder of its module, "." for that of the root.
	Module string
	// Deps are the folders of the packages of the repository that its tests are built from, without its own.
	Deps []string
	// Tested reports whether it has tests.
	Tested bool
}

// binaries, as a read of a package, stands for all programs and packages that "make build packages" makes.
const binaries = "BINARIES"

// builds has the folders that make the binaries, beside the packages that the programs are built from.
var builds = []string{"cluster", "package", "apis/machine", "crossplane.yaml"}

// affected returns the folders of the packages whose tests the changed files can affect: because a file is in their
// folder, because they are built from the package of a file, or because their tests read it. The dependencies of a package come
// from the import graph. What tests read is recorded in the file reads.txt.
func affected(files []string, packages []Package, reads map[string][]string) []string {
	byDir := map[string]Package{}
	for _, p := range packages {
		byDir[p.Dir] = p
	}
	own, built := map[string]bool{}, map[string]bool{}
	for _, f := range files {
		dir := owner(f, byDir)
		own[dir] = true
		if !isForTestsOnly(f, dir) {
			built[dir] = true
		}
	}
	modules := changedModules(files)
	all := map[string]bool{}
	for _, p := range packages {
		if own[p.Dir] || modules[p.Module] || slices.ContainsFunc(p.Deps, func(d string) bool { return built[d] }) {
			all[p.Dir] = true
		}
	}
	for dir, what := range reads {
		if _, ok := byDir[dir]; ok && slices.ContainsFunc(what, func(r string) bool { return isRead(r, files, packages, built, modules) }) {
			all[dir] = true
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(dir string) bool { return !byDir[dir].Tested })
}

// owner returns the folder of the package that a file belongs to: the nearest one above it. It is "" if there is none.
func owner(file string, byDir map[string]Package) string {
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if _, ok := byDir[dir]; ok {
			return dir
		}
		if dir == "." {
			return ""
		}
	}
}

// isForTestsOnly reports whether a file is in no program that is built from its package.
func isForTestsOnly(file, dir string) bool {
	return strings.HasSuffix(file, "_test.go") || strings.HasPrefix(strings.TrimPrefix(file, dir+"/"), "testdata/")
}

// changedModules returns the modules whose versions of other modules have changed.
func changedModules(files []string) map[string]bool {
	out := map[string]bool{}
	for _, f := range files {
		if base := path.Base(f); base == "go.mod" || base == "go.sum" {
			out[path.Dir(f)] = true
		}
	}
	return out
}

// isRead reports whether a changed file is one of those that an entry of reads.txt stands for.
func isRead(entry string, files []string, packages []Package, built, modules map[string]bool) bool {
	if entry != binaries {
		return slices.ContainsFunc(files, func(f string) bool { return isBelow(f, entry) })
	}
	for _, b := range builds {
		if slices.ContainsFunc(files, func(f string) bool { return isBelow(f, b) && !strings.HasSuffix(f, "_test.go") }) {
			return true
		}
	}
	return slices.ContainsFunc(packages, func(p Package) bool {
		return isBelow(p.Dir, "cmd") && (modules[p.Module] || built[p.Dir] || slices.ContainsFunc(p.Deps, func(d string) bool { return built[d] }))
	})
}

// isBelow reports whether a path is a folder, or below it.
func isBelow(file, folder string) bool {
	return folder == "." || file == folder || strings.HasPrefix(file, folder+"/")
}
