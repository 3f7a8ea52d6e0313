package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// wing is where the planners are.
const wing = "internal/plan"

// simulator plays planners against each other, and is none.
const simulator = wing + "/simulator"

// A mutant is a change of one operator.
type mutant struct {
	// File is relative to the root of the module.
	File string
	// Type of the change, as gremlins names it.
	Type string
	// Text of the line without the white space around it. It finds the line again when
	// others above it have changed.
	Text   string
	Line   int
	Status string
}

// isKilled reports whether a test failed, or did not end.
func (m mutant) isKilled() bool { return m.Status == "KILLED" || m.Status == "TIMED OUT" }

// counts reports whether the mutant compiles.
func (m mutant) counts() bool { return m.Status != "NOT VIABLE" && m.Status != "SKIPPED" }

// plannersIn a module are the packages of the wing that have code.
func plannersIn(root string) ([]string, error) {
	found := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, wing), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && filepath.Base(path) != "doc.go" {
			if rel, err := filepath.Rel(root, filepath.Dir(path)); err == nil && rel != simulator {
				found[filepath.ToSlash(rel)] = true
			}
		}
		return err
	})
	var out []string
	for p := range found {
		out = append(out, p)
	}
	slices.Sort(out)
	return out, err
}

// copyOfSources returns a folder with the files that git knows of. gremlins copies a module as a
// whole for each of its workers, and next to the sources there may be gigabytes of binaries.
func copyOfSources(root string) (string, error) {
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	list.Dir = root
	files, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("git ls-files: %w", err)
	}
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return "", err
	}
	for file := range strings.SplitSeq(strings.TrimSuffix(string(files), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(root, file), filepath.Join(dir, file)); err != nil && !os.IsNotExist(err) {
			return "", err
		}
	}
	return dir, nil
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}

// mutate a package, and run its own tests with each mutant.
func mutate(gremlins, dir, pkg string) ([]mutant, error) {
	report := filepath.Join(dir, "mutants.json")
	cmd := exec.Command(gremlins, "unleash", "--silent", "--output", report, "--timeout-coefficient", "20", "--invert-logical", "./"+pkg)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("gremlins unleash ./%s: %w\n%s", pkg, err, out)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		return nil, err
	}
	return parseReport(text, dir, pkg)
}

// parseReport of gremlins about a package. It names files relative to the package.
func parseReport(text []byte, dir, pkg string) ([]mutant, error) {
	var r struct {
		Files []struct {
			Name    string `json:"file_name"`
			Mutants []struct {
				Type, Status string
				Line         int
			} `json:"mutations"`
		} `json:"files"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("the report of gremlins: %w", err)
	}
	var out []mutant
	for _, f := range r.Files {
		name := pkg + "/" + filepath.Base(f.Name)
		lines, err := linesOf(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		for _, m := range f.Mutants {
			if m.Line < 1 || m.Line > len(lines) {
				return nil, fmt.Errorf("the report of gremlins: %s has no line %d", name, m.Line)
			}
			out = append(out, mutant{File: name, Type: m.Type, Text: strings.TrimSpace(lines[m.Line-1]), Line: m.Line, Status: m.Status})
		}
	}
	return out, nil
}

func linesOf(file string) ([]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []string
	s := bufio.NewScanner(f)
	for s.Scan() {
		out = append(out, s.Text())
	}
	return out, s.Err()
}
