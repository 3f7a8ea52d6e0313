package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// envRecord names the file of the records. Without it nothing is recorded.
const envRecord = "DROVER_SPENT"

// The kinds of records.
const (
	kindStage   = "stage"
	kindPackage = "package"
)

// Spent is the cost of a stage or of the tests of a package.
type Spent struct {
	// Kind is kindStage or kindPackage.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Wall is the time in seconds, and CPU the seconds of all processors together.
	Wall float64 `json:"wall"`
	CPU  float64 `json:"cpu"`
	// MemoryMB is the largest resident size of a single process.
	MemoryMB int64 `json:"memoryMB"`
	// Failed reports whether the command failed.
	Failed bool `json:"failed,omitempty"`
	// Reads are the folders and files of the repository that the tests of a package opened outside of its own folder.
	Reads []string `json:"reads,omitempty"`
}

// save appends the record by a single write, so that packages that are tested side by side do not mix their lines.
func (s Spent) save() error {
	file := os.Getenv(envRecord)
	if file == "" {
		return nil
	}
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// load reads the records of a file. A file that does not exist has none.
func load(file string) ([]Spent, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var all []Spent
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var s Spent
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, s)
	}
	return all, lines.Err()
}

// rootOf returns the root of the repository that a folder is in, "" if it is in none.
func rootOf(dir string) string {
	for root := dir; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, ".git")); err == nil {
			return root
		}
		if root == filepath.Dir(root) {
			return ""
		}
	}
}

// packageName names the tests that run in a folder: the path from the root of the repository, or the name of the
// test binary for a package of another repository.
func packageName(root, dir, binary string) string {
	rel, err := filepath.Rel(root, dir)
	if root == "" || err != nil {
		return filepath.Base(binary)
	}
	return filepath.ToSlash(rel)
}
