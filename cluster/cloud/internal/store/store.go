// Package store keeps JSON documents in a directory, one file each. If the process is killed at any
// moment, each document has either its previous or its new content.
package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const suffix = ".json"

// Dir is a directory of documents. The caller must not write the same document twice at the same
// time.
type Dir struct{ path string }

// Open creates the directory if it does not exist, and deletes incomplete files of a killed
// process.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(path, ".*.tmp"))
	if err != nil {
		return nil, err
	}
	for _, f := range left {
		if err := os.Remove(f); err != nil {
			return nil, fmt.Errorf("remove half-written file: %w", err)
		}
	}
	return &Dir{path: path}, nil
}

// Put writes a document. When it returns, the document survives the end of the process. It is not
// synced to the disk: if the computer fails, so does the control plane beside it.
func (d *Dir) Put(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	tmp := filepath.Join(d.path, "."+name+".tmp")
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.Rename(tmp, d.file(name)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// Get reads a document into v. found is false if the document does not exist.
func (d *Dir) Get(name string, v any) (found bool, err error) {
	b, err := os.ReadFile(d.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return false, fmt.Errorf("decode %s: %w", d.file(name), err)
	}
	return true, nil
}

// Delete deletes a document. It returns no error if the document does not exist.
func (d *Dir) Delete(name string) error {
	if err := os.Remove(d.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	return nil
}

// Names returns the names of the documents.
func (d *Dir) Names() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, fmt.Errorf("list documents: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), suffix); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

func (d *Dir) file(name string) string { return filepath.Join(d.path, name+suffix) }
