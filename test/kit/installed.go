package kit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/drover-dev/drover/internal/localplane"
)

// Most planes start as copies of one installed control plane that was stopped, because an installation takes three times
// the CPU of a start. A copy differs from an installation in what the tests do not judge: its packages were installed before
// the audit log began, and the copies of one installation have the same certificate authority and the same UID of
// kube-system, which names an installation of Drover. So two planes of one cloud must not both be copies.

// copied are the parts of a control plane's folder that a copy has. All others depend on its ports, or are made at each start.
var copied = []string{"kubernetes/etcd", "kubernetes/pki", "crossplane/cache", "registry"}

// copiedPackage is the pattern of the parts of each package that a copy has: the binaries of its revisions.
const copiedPackage = "packages/*/" + "drover-*"

// copyInstalled makes the folder of p a copy of an installed control plane. The first process that needs one installs it,
// and others wait meanwhile.
func (p *Plane) copyInstalled(ctx context.Context) error {
	key, err := p.installedKey()
	if err != nil {
		return err
	}
	all := filepath.Join(filepath.Dir(filepath.Clean(p.packages)), "installed")
	if err := os.MkdirAll(all, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(all, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	dir := filepath.Join(all, key)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := p.install(ctx, all, dir); err != nil {
			return fmt.Errorf("the control plane that others are copies of: %w", err)
		}
	}
	return copyPlane(dir, p.Dir)
}

// install a control plane, stop it, and keep it in dir in place of all others.
func (p *Plane) install(ctx context.Context, all, dir string) error {
	old, err := filepath.Glob(filepath.Join(all, "*-*"))
	if err != nil {
		return err
	}
	for _, o := range old {
		if err := os.RemoveAll(o); err != nil {
			return err
		}
	}
	// The path of its sockets must be short, so it runs in a temporary folder.
	source, err := Up(ctx, Options{Fresh: true})
	defer source.Down()
	if err != nil {
		if source != nil {
			source.KeepLogs()
		}
		return err
	}
	if err := source.Launcher(ctx, "down"); err != nil {
		return err
	}
	partial := dir + ".partial"
	if err := copyPlane(source.Dir, partial); err != nil {
		return err
	}
	return os.Rename(partial, dir)
}

// installedKey names an installation by all that it is made of.
func (p *Plane) installedKey() (string, error) {
	h := sha256.New()
	packages, err := filepath.Glob(filepath.Join(p.packages, "*.xpkg"))
	if err != nil {
		return "", err
	}
	for _, name := range []string{"crossplane", "crossplane-manifests", "drover-cluster", "drover-kube", "xpkg"} {
		packages = append(packages, filepath.Join(p.bin, name))
	}
	for _, file := range packages {
		info, err := os.Stat(file)
		if err != nil {
			return "", fmt.Errorf("%w: run the tests with make", err)
		}
		fmt.Fprintln(h, file, info.Size(), info.ModTime().UnixNano())
	}
	for _, file := range slices.Concat(localplane.Rights, []string{localplane.RuntimeFile}, accountFiles) {
		content, err := os.ReadFile(filepath.Join(Root(), file))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", file, len(content), content)
	}
	return fmt.Sprintf("%s-%x", p.version, h.Sum(nil)[:8]), nil
}

// copyPlane copies a stopped control plane.
func copyPlane(from, to string) error {
	parts := copied
	packages, err := filepath.Glob(filepath.Join(from, copiedPackage))
	if err != nil {
		return err
	}
	for _, file := range packages {
		part, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		parts = append(parts, part)
	}
	for _, part := range parts {
		if err := copyTree(filepath.Join(from, part), filepath.Join(to, part)); err != nil {
			return err
		}
	}
	return nil
}

// copyTree keeps the modes of files, unlike os.CopyFS: there are keys among them.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		part, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, part)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return copyFile(path, target, info.Mode().Perm())
	})
}

func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
