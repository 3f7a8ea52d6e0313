//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// suite is the release of Debian: 12, with OpenStack Zed.
const suite = "bookworm"

// files are the list of packages, and the files that are added to the file system.
//
//go:embed files
var files embed.FS

const (
	packagesFile = "files/packages.txt"
	// hashFile has the hash of the packages that a file system was built of.
	hashFile = "packages.sha256"
)

// packages returns the names in the list of packages.
func packages() ([]string, error) {
	b, err := files.ReadFile(packagesFile)
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out, nil
}

// build creates the file system at root, unless it is there already. Empty means the mirrors of Debian.
func build(ctx context.Context, root, mirror string, log io.Writer) error {
	names, err := packages()
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(suite + "\n" + strings.Join(names, "\n")))
	hash := hex.EncodeToString(sum[:])
	if there, err := os.ReadFile(filepath.Join(root, hashFile)); err == nil && string(there) == hash {
		return nil
	}
	if os.Geteuid() != 0 {
		return errors.New("only root can build and start the OpenStack: its packages are installed into a file system of their own, and its processes run in namespaces")
	}
	if err := installMmdebstrap(ctx, log); err != nil {
		return err
	}
	if err := os.RemoveAll(root); err != nil {
		return err
	}
	args := []string{
		"--mode=root", "--variant=apt", "--format=directory", "--include=" + strings.Join(names, ","),
		`--aptopt=Apt::Install-Recommends "false"`, "--dpkgopt=force-unsafe-io",
		"--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
		suite, root,
	}
	if mirror != "" {
		args = append(args, mirror)
	}
	if err := run(ctx, log, "mmdebstrap", args...); err != nil {
		return errors.Join(err, os.RemoveAll(root))
	}
	return os.WriteFile(filepath.Join(root, hashFile), []byte(hash), 0o644)
}

// installMmdebstrap installs the tool that is missing, if the host has apt-get.
func installMmdebstrap(ctx context.Context, log io.Writer) error {
	if _, err := exec.LookPath("mmdebstrap"); err == nil {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("missing: mmdebstrap; there is no apt-get to install it: install it by hand")
	}
	if err := run(ctx, log, "apt-get", "update", "-q"); err != nil {
		return err
	}
	return run(ctx, log, "apt-get", "install", "-q", "-y", "--no-install-recommends", "mmdebstrap")
}

// addFiles writes the configuration to a file system.
func addFiles(root string) error {
	const from = "files"
	return fs.WalkDir(files, from, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || name == packagesFile {
			return err
		}
		b, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		to := filepath.Join(root, strings.TrimPrefix(name, from))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		// The mode is that of the file of the package, whose owner alone may read it in most cases.
		return os.WriteFile(to, b, 0o644)
	})
}

func run(ctx context.Context, log io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
