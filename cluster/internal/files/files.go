// Package files writes private files.
package files

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces a file atomically, so that no reader sees a partial file, and creates the folders
// that it needs. Only the owner can read the file and the folders.
func Write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(content)
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// Exists reports whether path exists. It is true if that cannot be determined.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// Tail returns the last lines of a file, at most n, or nothing if the file cannot be read.
func Tail(path string, n int) []byte {
	// Large enough for long lines, and small enough to read at once.
	const window = 64 << 10
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	b := make([]byte, min(info.Size(), window))
	if _, err := f.ReadAt(b, info.Size()-int64(len(b))); err != nil {
		return nil
	}
	lines := bytes.Split(bytes.TrimRight(b, "\n"), []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-n):], []byte("\n"))
}
