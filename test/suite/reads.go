package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// testlogFlag has a test binary log each file that it opens.
const testlogFlag = "-test.testlogfile="

// readsOf returns the folders and files of the repository that a test opened outside of its own folder, by the log of its
// binary. Files that are made by the build are left out.
func readsOf(testlog, dir, root string) ([]string, error) {
	f, err := os.Open(testlog)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var out []string
	at := dir
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		verb, file, _ := strings.Cut(lines.Text(), " ")
		if !filepath.IsAbs(file) {
			file = filepath.Join(at, file)
		}
		switch verb {
		case "chdir":
			at = file
		case "open":
			if r := readOutside(file, dir, root); r != "" && !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	slices.Sort(out)
	return out, lines.Err()
}

// readOutside returns the path of a file from the root of the repository: that of its folder, or of a file in the root or
// in docs, whose files have little to do with each other. It is "" for files outside of the repository, of the test itself and of the build.
func readOutside(file, dir, root string) string {
	rel, err := filepath.Rel(root, file)
	if err != nil || strings.HasPrefix(rel, "..") || rel == "." {
		return ""
	}
	own, err := filepath.Rel(root, dir)
	if err != nil || isBelow(rel, own) || isBelow(rel, ".work") || isBelow(rel, ".git") {
		return ""
	}
	info, err := os.Stat(file)
	if err != nil || info.IsDir() {
		return ""
	}
	if folder := filepath.Dir(rel); folder != "." && folder != "docs" {
		return filepath.ToSlash(folder)
	}
	return filepath.ToSlash(rel)
}

// loadReads reads lines of a package and what its tests read, separated by spaces. Text after a # is a comment.
func loadReads(file string) (map[string][]string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for line := range strings.Lines(string(b)) {
		line, _, _ = strings.Cut(line, "#")
		if fields := strings.Fields(line); len(fields) > 1 {
			out[fields[0]] = append(out[fields[0]], fields[1:]...)
		}
	}
	return out, nil
}

// missingReads returns the lines that reads.txt lacks: what tests have read, by their records, and no entry covers.
func missingReads(records []Spent, reads map[string][]string) []string {
	var out []string
	for _, r := range records {
		missing := slices.DeleteFunc(slices.Clone(r.Reads), func(f string) bool {
			return slices.ContainsFunc(reads[r.Name], func(entry string) bool { return isBelow(f, entry) })
		})
		if len(missing) > 0 {
			out = append(out, fmt.Sprintf("%s %s", r.Name, strings.Join(missing, " ")))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
