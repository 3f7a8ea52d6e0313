package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A workCopy is a copy of the repository, to which one patch at a time is applied. The build cache has the packages that
// are equal to those of the repository, so that a patch compiles only the packages that depend on it.
type workCopy struct {
	// from is the repository, to is the copy, and work is the folder that the copy is in. All are absolute.
	from, to, work string
}

// newCopy brings the copy below a folder of the repository in line with the work tree: tracked, changed and new
// files, without ignored ones.
func newCopy(from, work string) (*workCopy, error) {
	from, err := filepath.Abs(from)
	if err != nil {
		return nil, err
	}
	c := &workCopy{from: from, work: filepath.Join(from, work)}
	c.to = filepath.Join(c.work, "copy")
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = from
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list the files of the repository: %w", err)
	}
	wanted := map[string]bool{}
	for _, name := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(from, name)); err != nil {
			continue // It is deleted in the work tree.
		}
		wanted[name] = true
		if err := c.restoreFile(name); err != nil {
			return nil, err
		}
	}
	return c, c.removeOthers(wanted)
}

// restoreFile brings a file of the copy in line with the repository.
func (c *workCopy) restoreFile(name string) error {
	source, target := filepath.Join(c.from, name), filepath.Join(c.to, name)
	info, err := os.Lstat(source)
	if os.IsNotExist(err) {
		return os.RemoveAll(target)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := os.Readlink(source)
		if err != nil {
			return err
		}
		if is, err := os.Readlink(target); err == nil && is == to {
			return nil
		}
		if err := os.RemoveAll(target); err != nil {
			return err
		}
		return os.Symlink(to, target)
	}
	want, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	if is, err := os.ReadFile(target); err == nil && bytes.Equal(is, want) {
		return os.Chmod(target, info.Mode())
	}
	if err := os.WriteFile(target, want, info.Mode()); err != nil {
		return err
	}
	return os.Chmod(target, info.Mode())
}

// removeOthers deletes the files of the copy that the repository does not have, except for its builds.
func (c *workCopy) removeOthers(wanted map[string]bool) error {
	return filepath.WalkDir(c.to, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(c.to, p)
		switch {
		case err != nil:
			return err
		case d.IsDir() && name == ".work":
			return filepath.SkipDir
		case d.IsDir() || wanted[name]:
			return nil
		}
		return os.Remove(p)
	})
}

// apply a patch to the copy.
func (c *workCopy) apply(patch []byte) (output string, err error) {
	apply := exec.Command("git", "apply", "-")
	// Without this, git finds the repository around the copy, and ignores files outside of it.
	apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+c.work)
	apply.Dir, apply.Stdin = c.to, bytes.NewReader(patch)
	out, err := apply.CombinedOutput()
	return string(out), err
}

// restore undoes a patch.
func (c *workCopy) restore(f fault) error {
	for _, name := range f.Files {
		if err := c.restoreFile(name); err != nil {
			return err
		}
	}
	return nil
}

// moduleOf returns the folder of the Go module that a package like ./cluster/cloud/internal/api is in, and the
// package relative to it.
func (c *workCopy) moduleOf(pkg string) (dir, relative string, err error) {
	folder := filepath.Join(c.to, pkg)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return "", "", fmt.Errorf("there is no package %s", pkg)
	}
	dir = folder
	for dir != c.work {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			relative, err = filepath.Rel(dir, folder)
			return dir, "./" + filepath.ToSlash(relative), err
		}
		dir = filepath.Dir(dir)
	}
	return "", "", fmt.Errorf("%s is in no Go module", pkg)
}
