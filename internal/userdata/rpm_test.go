package userdata

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/osprofile"
)

// An rpmSystem is the root of a system with RPM packages. The real dnf installs into it, from a
// repository whose packages have a file or two each. Every other program that would change the
// kernel or a service only records that it was called.
type rpmSystem struct {
	t    *testing.T
	root string
	// dnf is the command line that installs into the root.
	dnf []string
}

// programs of the host that the steps call, and that are copied into the root.
var programs = strings.Fields("sh awk cat chmod cut dirname env grep gzip install ln mkdir mktemp mv rm sed sha256sum sync tar uname")

// recorded programs do nothing but that.
var recorded = strings.Fields("modprobe restorecon setenforce swapoff sysctl")

// units that the system has, for "systemctl cat".
var units = strings.Fields("firewalld.service nm-cloud-setup.service nm-cloud-setup.timer chronyd.service")

// contents of stub packages; one that is not here is empty.
var contents = map[string]map[string]string{
	"containernetworking-plugins": {"/usr/libexec/cni/bridge": "#!/bin/sh\n"},
	"cni-plugins":                 {"/usr/libexec/cni/bridge": "#!/bin/sh\n"},
	"containerd":                  {"/usr/bin/containerd": "#!/bin/sh\necho containerd github.com/containerd/containerd/v2 2.1.4 abc\n"},
}

// TestRPMSystemsArePrepared runs the whole bootstrap of the systems with dnf. It needs root, for
// chroot.
func TestRPMSystemsArePrepared(t *testing.T) {
	for _, name := range []string{"amazon-linux-2023-v1", "rhel-9-v1", "rocky-9-v1"} {
		t.Run(name, func(t *testing.T) {
			s := newRPMSystem(t, name)
			// The image has another curl, as those of these systems do.
			s.install("curl-minimal")
			if out, err := s.bootstrap(document(t, input(withProfile(name)))); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}

			installed := s.installed()
			for _, pkg := range append(packagesOf(name), "curl") {
				if !slices.Contains(installed, pkg) {
					t.Errorf("%s is not installed", pkg)
				}
			}
			if slices.Contains(installed, "curl-minimal") {
				t.Error("curl-minimal is installed beside curl")
			}
			for file, want := range map[string]string{
				"/opt/cni/bin/bridge":    "#!/bin/sh",
				"/etc/selinux/config":    "SELINUX=permissive",
				"/usr/local/bin/kubelet": "Kubernetes v1.35.4",
				pathContainerdConfig:     "SystemdCgroup = true",
			} {
				if got := s.read(file); !strings.Contains(got, want) {
					t.Errorf("%s is %q, want %q in it", file, got, want)
				}
			}
			calls := s.calls()
			for _, want := range []string{
				"modprobe --all overlay br_netfilter", "sysctl --quiet --load=/etc/sysctl.d/90-drover.conf", "swapoff --all", "setenforce 0",
				"systemctl disable --now firewalld.service", "systemctl disable --now nm-cloud-setup.timer", "systemctl enable --now chronyd.service",
				"systemctl restart containerd.service", "restorecon /usr/local/bin/kubelet", "systemctl enable --now kubelet.service",
			} {
				if !slices.Contains(calls, want) {
					t.Errorf("not called: %s\ncalls:\n%s", want, strings.Join(calls, "\n"))
				}
			}

			// A step that was cut off at its end runs again.
			if err := os.RemoveAll(filepath.Join(s.root, "var/lib/drover/steps")); err != nil {
				t.Fatal(err)
			}
			if out, err := s.bootstrap(document(t, input(withProfile(name)))); err != nil {
				t.Errorf("all steps again: %v\n%s", err, out)
			}
		})
	}
}

func TestAPackageThatARepositoryDoesNotHaveFailsItsStep(t *testing.T) {
	s := newRPMSystem(t, "rocky-9-v1")
	d := document(t, input(withProfile("rocky-9-v1"), func(in *Input) { in.Parameters = map[string]string{"extraPackages": "vim-of-acme"} }))
	out, err := s.bootstrap(d)
	if err == nil || !strings.Contains(out, "vim-of-acme") || !strings.Contains(out, "drover-bootstrap: step packages: failed (exit 1), trying again in 5s") {
		t.Errorf("got %v\n%s", err, out)
	}
	if slices.Contains(s.calls(), "systemctl enable --now kubelet.service") {
		t.Error("the kubelet is started although a step failed")
	}
}

var installLine = regexp.MustCompile(`(?m)^set -- (.*)$`)

// packagesOf a built-in profile.
func packagesOf(profile string) []string {
	for _, s := range osprofile.BuiltIn(profile).Spec.Steps {
		if m := installLine.FindStringSubmatch(s.Script); m != nil {
			return strings.Fields(m[1])
		}
	}
	return nil
}

func newRPMSystem(t *testing.T, profile string) *rpmSystem {
	t.Helper()
	dnf, build, index := tool(t, "dnf", "dnf"), tool(t, "rpmbuild", "rpm"), tool(t, "createrepo_c", "createrepo-c")
	if os.Geteuid() != 0 {
		t.Skip("only root can chroot, so that NOTHING RUNS the steps of systems with dnf")
	}
	s := &rpmSystem{t: t, root: filepath.Join(t.TempDir(), "root")}
	for _, dir := range []string{"usr/bin", "usr/local/bin", "usr/sbin", "usr/lib", "usr/lib64", "tmp", "etc/selinux"} {
		s.must(os.MkdirAll(filepath.Join(s.root, dir), 0o755))
	}
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		s.must(os.Symlink("usr/"+dir, filepath.Join(s.root, dir)))
	}
	for _, p := range programs {
		s.copyProgram(p)
	}
	for _, p := range recorded {
		s.script(p, `echo "`+p+` $*" >>/calls`)
	}
	s.script("systemctl", `echo "systemctl $*" >>/calls
[ "$1" != cat ] || case " `+strings.Join(units, " ")+` " in *" $2 "*) ;; *) exit 1 ;; esac`)
	s.script("sestatus", "exit 0")
	// The mirror has downloads in one folder, by the last part of their URL.
	s.script("curl", `while [ $# -gt 1 ]; do [ "$1" != --output ] || to=$2; shift; done
cat "/mirror/${1##*/}" >"$to"`)
	// The real dnf runs outside: the root has no Python.
	s.script("dnf", `{ for argument; do echo "$argument"; done; echo; } >/dnf.request
read -r code </dnf.answer
exit "$code"`)
	s.must(exec.CommandContext(t.Context(), "mkfifo", filepath.Join(s.root, "dnf.request"), filepath.Join(s.root, "dnf.answer")).Run())
	s.must(os.Mkdir(filepath.Join(s.root, "dev"), 0o755))
	s.must(exec.CommandContext(t.Context(), "mknod", filepath.Join(s.root, "dev/null"), "c", "1", "3").Run())
	s.write("/etc/selinux/config", "SELINUX=enforcing\nSELINUXTYPE=targeted\n")
	s.write("/etc/fstab", "/dev/vda2 swap swap defaults 0 0\n")
	s.write("/etc/resolv.conf", "nameserver 10.0.0.1\n")
	s.mirror()

	repo := s.repository(build, index, append(packagesOf(profile), "curl-minimal"))
	config := filepath.Join(t.TempDir(), "dnf.conf")
	write(t, "[main]\ngpgcheck=0\nplugins=0\n[stub]\nname=stub\nbaseurl=file://"+repo+"\n", config)
	s.dnf = []string{dnf, "--config=" + config, "--setopt=reposdir=/nowhere", "--installroot=" + s.root, "--releasever=9"}
	s.serve()
	return s
}

func (s *rpmSystem) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *rpmSystem) write(file, content string) {
	s.t.Helper()
	write(s.t, content, s.root, file)
}

// read a file as the system does: a link may be absolute.
func (s *rpmSystem) read(file string) string {
	out, _ := s.chroot("cat", file)
	return out
}

func (s *rpmSystem) script(name, text string) {
	s.t.Helper()
	s.write("/usr/bin/"+name, "#!/bin/sh\n"+text+"\n")
}

var library = regexp.MustCompile(`(?m)(/\S+) \(0x`)

// copyProgram with the libraries that it loads.
func (s *rpmSystem) copyProgram(name string) {
	s.t.Helper()
	file, err := exec.LookPath(name)
	s.must(err)
	files := map[string]string{file: "/usr/bin/" + name}
	out, _ := exec.CommandContext(s.t.Context(), "ldd", file).Output()
	for _, m := range library.FindAllStringSubmatch(string(out), -1) {
		files[m[1]] = m[1]
	}
	for from, to := range files {
		b, err := os.ReadFile(from)
		s.must(err)
		to = filepath.Join(s.root, to)
		if _, err := os.Stat(to); err == nil {
			continue
		}
		s.must(os.MkdirAll(filepath.Dir(to), 0o755))
		s.must(os.WriteFile(to, b, 0o755))
	}
}

// mirror has a kubelet and a containerd that know their version.
func (s *rpmSystem) mirror() {
	s.t.Helper()
	s.write("/mirror/kubelet", "#!/bin/sh\necho Kubernetes v1.35.4\n")
	s.write("/unpacked/bin/containerd", "#!/bin/sh\necho containerd github.com/containerd/containerd/v2 v2.3.2 abc\n")
	const archive = "containerd-2.3.2-linux-amd64.tar.gz"
	s.run("sh", "-ec", "cd /mirror; sha256sum kubelet >kubelet.sha256; tar -czf "+archive+" -C /unpacked bin; sha256sum "+archive+" >"+archive+".sha256sum")
}

// repository of stub packages, which are built at once.
func (s *rpmSystem) repository(build, index string, packages []string) string {
	s.t.Helper()
	dir, spec := s.t.TempDir(), &strings.Builder{}
	spec.WriteString("Name: stubs\nVersion: 1\nRelease: 1\nSummary: stubs\nLicense: none\nBuildArch: noarch\n%description\nstubs\n%install\nmkdir -p %{buildroot}\n")
	var sections []string
	for _, p := range packages {
		section := fmt.Sprintf("%%package -n %s\nSummary: stub\nAutoReqProv: no\n", p)
		if p == "curl-minimal" {
			section += "Conflicts: curl\n"
		}
		section += fmt.Sprintf("%%description -n %s\nstub\n%%files -n %s\n", p, p)
		for _, file := range slices.Sorted(maps.Keys(contents[p])) {
			write(s.t, contents[p][file], dir, "files", p, file)
			fmt.Fprintf(spec, "mkdir -p %%{buildroot}%s\ncp %s %%{buildroot}%s\n", path.Dir(file), filepath.Join(dir, "files", p, file), file)
			section += fmt.Sprintf("%%attr(0755, root, root) %s\n", file)
		}
		sections = append(sections, section)
	}
	spec.WriteString(strings.Join(sections, ""))
	write(s.t, spec.String(), dir, "stubs.spec")
	repo := filepath.Join(dir, "RPMS")
	for _, c := range [][]string{
		{build, "-bb", "--quiet", "--define", "_topdir " + dir, "--define", "_rpmdir " + repo, "--define", "_build_id_links none", filepath.Join(dir, "stubs.spec")},
		{index, "--quiet", repo},
	} {
		out, err := exec.CommandContext(s.t.Context(), c[0], c[1:]...).CombinedOutput()
		if err != nil {
			s.t.Fatalf("%s: %v\n%s", c[0], err, out)
		}
	}
	return repo
}

// serve runs the real dnf for the one in the root, until the test ends.
func (s *rpmSystem) serve() {
	s.t.Helper()
	var pipes []*os.File
	for _, name := range []string{"dnf.request", "dnf.answer"} {
		// With both ends open, no read sees an end while the test runs.
		f, err := os.OpenFile(filepath.Join(s.root, name), os.O_RDWR, 0)
		s.must(err)
		s.t.Cleanup(func() { _ = f.Close() })
		pipes = append(pipes, f)
	}
	go func() {
		lines := bufio.NewScanner(pipes[0])
		var args []string
		for lines.Scan() {
			if lines.Text() != "" {
				args = append(args, lines.Text())
				continue
			}
			out, err := exec.CommandContext(s.t.Context(), s.dnf[0], append(s.dnf[1:], args...)...).CombinedOutput()
			code := 0
			args = nil
			if err = errors.Join(err, os.WriteFile(filepath.Join(s.root, "dnf.log"), out, 0o600)); err != nil {
				code = 1
			}
			fmt.Fprintln(pipes[1], code)
		}
	}()
}

func (s *rpmSystem) install(packages ...string) {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), s.dnf[0], append(append(s.dnf[1:], "--assumeyes", "install"), packages...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
}

// installed packages, as rpm knows them.
func (s *rpmSystem) installed() []string {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), "rpm", "--root", s.root, "--query", "--all", "--queryformat", "%{NAME}\n").CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	return strings.Fields(string(out))
}

func (s *rpmSystem) calls() []string {
	return strings.Split(s.read("/calls"), "\n")
}

func (s *rpmSystem) run(argv ...string) string {
	s.t.Helper()
	out, err := s.chroot(argv...)
	if err != nil {
		s.t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return out
}

func (s *rpmSystem) chroot(argv ...string) (string, error) {
	cmd := exec.CommandContext(s.t.Context(), "chroot", append([]string{s.root}, argv...)...)
	cmd.Env = []string{"PATH=/usr/bin:/usr/local/bin", "LC_ALL=C"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// bootstrap writes the files of a document, and runs its steps as their unit does.
func (s *rpmSystem) bootstrap(d Document) (string, error) {
	s.t.Helper()
	d, err := d.assembled()
	s.must(err)
	for _, f := range d.Files {
		s.write(f.Path, f.Content)
	}
	out, err := s.chroot("sh", "-c", "set -a; . "+pathEnvironment+"; exec "+pathBootstrap)
	return out + s.read("/dnf.log"), err
}
