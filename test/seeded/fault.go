package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A fault is a patch with a header.
type fault struct {
	// Name is that of the file, without .patch.
	Name string
	// Promise to users that the fault breaks, as a sentence.
	Promise string
	// Tests own the promise. They run in this order until one of them fails.
	Tests []tests
	// Plane means that the tests need a control plane.
	Plane bool
	// Survives is the reason why no test catches the fault, empty if one must.
	Survives string
	// Files that the patch changes, relative to the repository.
	Files []string
	// Patch is the content of the file, header included: git apply ignores the header.
	Patch []byte
}

// tests are a package and the pattern of its tests, empty for all.
type tests struct{ Package, Run string }

func (t tests) String() string { return strings.TrimSpace(t.Package + " " + t.Run) }

// readFaults returns the faults in a folder by their names.
func readFaults(dir string) ([]fault, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var out []fault
	var errs []error
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		f, err := parseFault(strings.TrimSuffix(filepath.Base(file), ".patch"), text)
		out, errs = append(out, f), append(errs, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there are no faults in %s", dir)
	}
	return out, errors.Join(errs...)
}

// parseFault reads the header, which has lines like "Key: value", and the names of the files that the
// patch after it changes.
func parseFault(name string, text []byte) (fault, error) {
	f := fault{Name: name, Patch: text}
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("fault %s: "+format, append([]any{name}, args...)...)
	}
	header, diff, ok := strings.Cut(string(text), "\n--- ")
	if !ok {
		return f, wrong("has no unified diff")
	}
	for _, line := range strings.Split(header, "\n") {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "diff --git ") {
			continue
		}
		key, value, ok := strings.Cut(line, ": ")
		if value = strings.TrimSpace(value); !ok || value == "" {
			return f, wrong("%q must be a line like Promise: text", line)
		}
		if err := f.set(key, value); err != nil {
			return f, wrong("%v", err)
		}
	}
	f.Files = filesOf("--- " + diff)
	switch {
	case f.Promise == "":
		return f, wrong("has no line Promise")
	case len(f.Tests) == 0:
		return f, wrong("has no line Tests")
	case len(f.Files) == 0:
		return f, wrong("has no file in its diff")
	}
	return f, nil
}

func (f *fault) set(key, value string) error {
	switch key {
	case "Promise":
		f.Promise = value
	case "Survives":
		f.Survives = value
	case "Plane":
		if value != "yes" {
			return fmt.Errorf("line Plane: %q must be yes, or the line must be left out", value)
		}
		f.Plane = true
	case "Tests":
		return f.addTests(value)
	default:
		return fmt.Errorf("%q is none of Promise, Tests, Plane and Survives", key)
	}
	return nil
}

// addTests reads "./package" or "./package -run pattern".
func (f *fault) addTests(value string) error {
	pkg, pattern, _ := strings.Cut(value, " -run ")
	pkg, pattern = strings.TrimSpace(pkg), strings.TrimSpace(pattern)
	if !strings.HasPrefix(pkg, "./") || strings.ContainsAny(pkg, " \t") || path.Clean(pkg) != strings.TrimPrefix(pkg, "./") {
		return fmt.Errorf("line Tests: %q must be like ./internal/move -run ^TestA$", value)
	}
	if _, err := regexp.Compile(pattern); err != nil {
		return fmt.Errorf("line Tests: %w", err)
	}
	f.Tests = append(f.Tests, tests{Package: pkg, Run: pattern})
	return nil
}

// changedFile matches the line of a unified diff with the name of a file.
var changedFile = regexp.MustCompile(`(?m)^(?:---|\+\+\+) [ab]/(\S+)`)

func filesOf(diff string) []string {
	var out []string
	for _, m := range changedFile.FindAllStringSubmatch(diff, -1) {
		if !slices.Contains(out, m[1]) {
			out = append(out, m[1])
		}
	}
	return out
}

// describe the fault for -list.
func (f fault) describe() string {
	b := strings.Builder{}
	fmt.Fprintf(&b, "%s\n    %s\n", f.Name, f.Promise)
	for _, t := range f.Tests {
		plane := ""
		if f.Plane {
			plane = " (on a control plane)"
		}
		fmt.Fprintf(&b, "    %s%s\n", t, plane)
	}
	if f.Survives != "" {
		fmt.Fprintf(&b, "    survives: %s\n", f.Survives)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
