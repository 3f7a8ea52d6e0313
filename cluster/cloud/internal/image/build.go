package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// diskSize is what the guest sees; the file holds only what is used.
const diskSize = "8G"

// tools that Build calls, and the package of Debian that has each.
var tools = map[string]string{"mmdebstrap": "mmdebstrap", "mke2fs": "e2fsprogs", "gcc": "gcc"}

// Build makes the image in a folder of that name below dir, if it is not there already.
// Progress goes to log.
func Build(ctx context.Context, dir string, log io.Writer) error {
	hash, err := Hash()
	if err != nil {
		return err
	}
	out, err := filepath.Abs(filepath.Join(dir, Debian12))
	if err != nil {
		return err
	}
	if isCurrent(out, hash) {
		fmt.Fprintf(log, "%s is up to date\n", out)
		return nil
	}
	if runtime.GOARCH != "amd64" {
		return fmt.Errorf("no image can be built on %s: User Mode Linux is for amd64 alone", runtime.GOARCH)
	}
	if os.Geteuid() != 0 {
		return errors.New("the image can only be built by root: mmdebstrap installs packages into a file system of its own")
	}
	if err := installTools(ctx, log); err != nil {
		return err
	}
	partial := out + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	if err := os.MkdirAll(partial, 0o755); err != nil {
		return err
	}
	if err := assemble(ctx, partial, log); err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	if err := os.WriteFile(filepath.Join(partial, hashFile), []byte(hash+"\n"), 0o644); err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	return os.Rename(partial, out)
}

// installTools installs what is missing, where that is possible.
func installTools(ctx context.Context, log io.Writer) error {
	var missing []string
	for tool, pkg := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			missing = append(missing, pkg)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("missing: %s; there is no apt-get to install them: install them by hand", strings.Join(missing, ", "))
	}
	fmt.Fprintf(log, "installing %s\n", strings.Join(missing, ", "))
	if err := run(ctx, log, "apt-get", "update", "-q"); err != nil {
		return err
	}
	return run(ctx, log, "apt-get", append([]string{"install", "-q", "-y", "--no-install-recommends"}, missing...)...)
}

func assemble(ctx context.Context, out string, log io.Writer) error {
	overlay := filepath.Join(out, "overlay")
	if err := writeOverlay(overlay); err != nil {
		return err
	}
	source := filepath.Join(out, "amx.c")
	if err := os.WriteFile(source, amxSource, 0o644); err != nil {
		return err
	}
	if err := run(ctx, log, "gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", filepath.Join(out, "amx.so"), source); err != nil {
		return err
	}
	args := []string{"--mode=root", "--variant=apt", "--format=null", "--include=" + strings.Join(Packages(), ","),
		`--aptopt=Apt::Install-Recommends "false"`,
		"--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*"}
	for _, s := range steps(`"$1"`, "'"+out+"'") {
		args = append(args, "--customize-hook="+s)
	}
	if err := run(ctx, log, "mmdebstrap", append(args, Suite, "/dev/null")...); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(overlay), os.Remove(source))
}

// steps are shell commands on the new file system at root, whose result is in out.
func steps(root, out string) []string {
	return []string{
		"rm -f " + root + "/etc/resolv.conf && cp -a " + out + "/overlay/. " + root,
		"chroot " + root + " /usr/local/sbin/finish-image",
		"mv " + root + "/usr/bin/linux.uml " + out + "/linux.uml",
		"cp " + root + "/boot/vmlinuz-* " + out + "/vmlinuz",
		"cp " + root + "/boot/initrd.img-* " + out + "/initrd.img",
		// The bind mount leaves out what is mounted below.
		"mkdir " + out + "/root && mount --bind " + root + " " + out + "/root",
		"mke2fs -q -t ext4 -L root -d " + out + "/root " + out + "/disk.img " + diskSize + "; code=$?; umount " + out + "/root && rmdir " + out + "/root && exit $code",
	}
}

// writeOverlay writes the files that are added. What is in a folder sbin can be executed.
func writeOverlay(dir string) error {
	return fs.WalkDir(overlayFiles, "overlay", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimPrefix(name, "overlay"))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		b, err := overlayFiles.ReadFile(name)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if filepath.Base(filepath.Dir(name)) == "sbin" {
			mode = 0o755
		}
		return os.WriteFile(to, b, mode)
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
