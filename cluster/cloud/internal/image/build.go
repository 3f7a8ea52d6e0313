package image

import (
	"bytes"
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

// diskSize is the size that the guest sees. The file is sparse.
const diskSize = "8G"

// tools are the programs that Build calls, each with its package of Debian.
var tools = map[string]string{"mmdebstrap": "mmdebstrap", "mke2fs": "e2fsprogs", "gcc": "gcc"}

// Build creates the image in a folder of its name below dir, unless it is there already. Progress
// is written to log.
func (d Definition) Build(ctx context.Context, dir string, log io.Writer) error {
	hash, err := d.Hash()
	if err != nil {
		return err
	}
	out, err := filepath.Abs(filepath.Join(dir, d.Name))
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
	if err := d.assemble(ctx, partial, log); err != nil {
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

// installTools installs missing tools, if the host has apt-get and the rights.
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

func (d Definition) assemble(ctx context.Context, out string, log io.Writer) error {
	overlay := filepath.Join(out, "overlay")
	if err := d.writeOverlay(overlay); err != nil {
		return err
	}
	source := filepath.Join(out, "amx.c")
	if err := os.WriteFile(source, amxSource, 0o644); err != nil {
		return err
	}
	if err := run(ctx, log, "gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", filepath.Join(out, "amx.so"), source); err != nil {
		return err
	}
	packages, err := d.Packages()
	if err != nil {
		return err
	}
	repository, err := d.Repository()
	if err != nil {
		return err
	}
	args := []string{"--mode=root", "--variant=apt", "--format=null", "--include=" + strings.Join(packages, ","),
		`--aptopt=Apt::Install-Recommends "false"`,
		"--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*"}
	for _, suite := range d.otherSuites(packages) {
		args = append(args, "--setup-hook="+d.addSuite(`"$1"`, suite))
	}
	for _, s := range d.steps(`"$1"`, "'"+out+"'", repository) {
		args = append(args, "--customize-hook="+s)
	}
	if err := run(ctx, log, "mmdebstrap", append(args, d.Suite, "/dev/null")...); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(overlay), os.Remove(source))
}

// addSuite returns a shell command that adds another suite to apt, from which apt installs only
// packages that name it. The signature of an unreleased suite expires within days, and some mirrors
// have no newer one by then, so its validity is not checked.
func (d Definition) addSuite(root, suite string) string {
	apt := root + "/etc/apt"
	return `sed -n 's/^deb \(.*\) ` + d.Suite + ` /deb [check-valid-until=no] \1 ` + suite + ` /p' ` + apt + "/sources.list >" + apt + "/sources.list.d/" + suite + ".list && " +
		`printf 'Package: *\nPin: release n=` + suite + `\nPin-Priority: 100\n' >` + apt + "/preferences.d/" + suite
}

// steps returns shell commands on the new file system at root, which write their results to out.
// The first commands still have the network of the host.
func (d Definition) steps(root, out string, repository []string) []string {
	return append(addRepository(root, repository),
		"rm -f "+root+"/etc/resolv.conf && cp -a "+out+"/overlay/. "+root,
		"chroot "+root+" /usr/local/sbin/finish-image",
		"mv "+root+"/usr/bin/linux.uml "+out+"/linux.uml",
		"cp "+root+"/boot/vmlinuz-* "+out+"/vmlinuz",
		"cp "+root+"/boot/initrd.img-* "+out+"/initrd.img",
		// Only some images need an initial RAM disk for User Mode Linux.
		"if [ -e "+root+"/boot/initrd.uml ]; then mv "+root+"/boot/initrd.uml "+out+"/initrd.uml; fi",
		// The bind mount excludes file systems that are mounted below root.
		"mkdir "+out+"/root && mount --bind "+root+" "+out+"/root",
		"mke2fs -q -t ext4 -L root -d "+out+"/root "+out+"/disk.img "+diskSize+"; code=$?; umount "+out+"/root && rmdir "+out+"/root && exit $code",
	)
}

// repositoryDir is the folder in an image with the packages that the image can install.
const repositoryDir = "/srv/packages"

// addRepository returns shell commands that make these packages the only source of apt.
func addRepository(root string, packages []string) []string {
	if len(packages) == 0 {
		return nil
	}
	chroot := "chroot " + root + " "
	return []string{
		chroot + "apt-get clean",
		chroot + "apt-get install --quiet --yes --no-install-recommends --download-only " + strings.Join(packages, " "),
		"mkdir -p " + root + repositoryDir + " && mv " + root + "/var/cache/apt/archives/*.deb " + root + repositoryDir,
		chroot + "sh -c 'cd " + repositoryDir + " && apt-ftparchive packages . >Packages'",
		"rm -rf " + root + "/etc/apt/sources.list " + root + "/etc/apt/sources.list.d/* && " +
			"echo 'deb [trusted=yes] file:" + repositoryDir + " ./' >" + root + "/etc/apt/sources.list",
	}
}

// writeOverlay writes the added files. Scripts are made executable.
func (d Definition) writeOverlay(dir string) error {
	for _, from := range d.overlays() {
		if err := fs.WalkDir(definitions, from, func(name string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			to := filepath.Join(dir, strings.TrimPrefix(name, from))
			if e.IsDir() {
				return os.MkdirAll(to, 0o755)
			}
			b, err := definitions.ReadFile(name)
			if err != nil {
				return err
			}
			mode := fs.FileMode(0o644)
			if bytes.HasPrefix(b, []byte("#!")) {
				mode = 0o755
			}
			return os.WriteFile(to, b, mode)
		}); err != nil {
			return err
		}
	}
	return nil
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
