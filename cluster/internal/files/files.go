// Package files writes private files.
package files

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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

var (
	// goroutine matches the first line of the stack of a goroutine.
	goroutine = regexp.MustCompile(`^goroutine \d+ .*\[.*\]:$`)
	// entry matches the first line of an entry of a log: of klog, of a logger that writes JSON or keys and values, or of the
	// package process.
	entry = regexp.MustCompile(`^([IWEF]\d{4} |\{|time=|--- )`)
	// stack matches the stack trace of an entry in JSON.
	stack = regexp.MustCompile(`,"stacktrace":"(\\.|[^"\\])*"`)
)

// Tail returns the last lines of a log, at most n, without stack traces, which are of no use to a reader of an error and
// would be all of its lines. It returns nothing if the file cannot be read.
func Tail(path string, n int) []byte {
	// Large enough for the stacks of all goroutines, and small enough to read at once.
	const window = 1 << 20
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
	lines := withoutStacks(bytes.Split(bytes.TrimRight(b, "\n"), []byte("\n")))
	return bytes.Join(lines[max(0, len(lines)-n):], []byte("\n"))
}

func withoutStacks(lines [][]byte) [][]byte {
	var out [][]byte
	inStack := false
	for _, line := range lines {
		inStack = (inStack || goroutine.Match(line)) && !entry.Match(line)
		if !inStack {
			out = append(out, stack.ReplaceAll(line, nil))
		}
	}
	return out
}
