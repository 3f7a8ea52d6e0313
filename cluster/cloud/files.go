package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// lock prevents a second daemon from using a directory. The system releases the lock when the
// process ends, also if it is killed.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("--dir: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--dir: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("--dir: invalid value %q: another local cloud runs in it", dir)
	}
	return func() { _ = f.Close() }, nil
}

// readToken reads the token, or creates one if the file does not exist.
func readToken(file string) (string, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		token := rand.Text()
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			return "", fmt.Errorf("--token-file: %w", err)
		}
		return token, nil
	}
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if token == "" {
		return "", fmt.Errorf("--token-file: %s is empty", file)
	}
	return token, nil
}
