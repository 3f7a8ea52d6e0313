package docs

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/localplane"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// Versions of the releases that TestTheInstallationOfTheDocs builds.
const firstVersion, secondVersion = "v0.1.0", "v0.1.1"

// TestTheInstallationOfTheDocs types the commands of docs/install.md on a control plane that has Crossplane and nothing
// else. It builds a release, pushes it to a registry, installs it by one command, uses it, upgrades it to the next
// release, and removes it. Then, on the control plane that is bare again, it installs Drover step by step and uses that.
func TestTheInstallationOfTheDocs(t *testing.T) {
	t.Parallel()
	blocks, err := Read(kit.Root())
	must(t, err)
	p := up(t, kit.Options{Bare: true})
	w := newWorld(t, p)
	s := &story{world: w, blocks: slices.DeleteFunc(blocks, func(b Block) bool { return !inStory(b) }), ran: map[string]bool{}}
	f := kit.Fleet{Plane: p, Namespace: metav1.NamespaceDefault}

	s.choose(t)
	s.release(firstVersion)
	s.section(t, "Get a release")
	must(t, localplane.Account(t.Context(), p.Client, p.LocalCloud))
	s.section(t, "One command")
	s.healthy(t, firstVersion)
	f.AwaitDeployment(t, "workers")

	before := machines(t, f)
	s.release(secondVersion)
	s.section(t, "Get a release")
	s.section(t, "Upgrade")
	s.healthy(t, secondVersion)
	f.AwaitDeployment(t, "workers")
	if after := machines(t, f); after != before {
		t.Errorf("the upgrade replaced Machines:\n%s\n%s", before, after)
	}

	s.section(t, "Uninstall")
	out, err := p.Kubectl(t, "get", "xrd,crd,validatingadmissionpolicy,clusterrole,clusterrolebinding,namespace", "-o", "name")
	must(t, err)
	for line := range strings.Lines(out) {
		// Crossplane generates roles of packages, and deletes them with their owners in its own time. The launcher of the
		// control plane bound its users to cluster-admin.
		if strings.Contains(line, "drover") && !strings.Contains(line, "crossplane:") && !strings.Contains(line, "drover:cluster-admins") {
			t.Errorf("after the removal there is %s", line)
		}
	}

	w.env = append(w.env, "REGISTRY="+localplane.Registry, "VERSION="+localplane.Version)
	s.section(t, "Step by step")
	must(t, localplane.Runtime(t.Context(), p.Client, kit.Root()))
	s.healthy(t, localplane.Version)
	s.real(t, Block{Page: installPage, Script: "crossplane xpkg install provider $REGISTRY/provider-local:$VERSION\n"})
	s.healthy(t, localplane.Version)
	for _, file := range []string{"providerconfig", "clusterproviderconfig", "machineclass", "machinedeployment"} {
		must(t, localplane.Apply(t.Context(), p.Client, filepath.Join(kit.Root(), "examples/local", file+".yaml")))
	}
	f.AwaitDeployment(t, "workers")
	for _, b := range s.blocks {
		if !s.ran[b.String()] {
			t.Errorf("%s was not run", b)
		}
	}
}

// machines are the names of all Machines, with their Nodes.
func machines(t *testing.T, f kit.Fleet) string {
	t.Helper()
	out, err := f.Kubectl(t, "get", "machines", "-n", f.Namespace, "--sort-by=.metadata.name", "-o", `jsonpath={range .items[*]}{.metadata.name}={.status.nodeRef.name} {end}`)
	must(t, err)
	return out
}

// choose makes the choices of a reader: the local cloud, the registry of the control plane, and what to build.
func (s *story) choose(t *testing.T) {
	t.Helper()
	status, err := s.plane.Status(t.Context())
	must(t, err)
	s.replace(`\bhcloud\b`, "local")
	s.replace(`registry\.example\.com/drover\b`, status.Registry+"/released")
	s.replace(`--context target\b`, "--context control")
	s.env = append(s.env, "ARCHITECTURES="+runtime.GOARCH, "PLATFORMS="+runtime.GOOS+"/"+runtime.GOARCH, "ONLY=drover function-drover provider-drover provider-local",
		"ALLOW_MODIFIED=1", "PLAIN_HTTP=1", "INSTALL_FLAGS=--join-this-cluster="+metav1.NamespaceDefault, "MAKEFLAGS=", "MAKELEVEL=", "DEMO=false", envRoot+"="+kit.Root(),
		envPlugin+"="+filepath.Join(kit.Root(), ".work/plugin/kubectl-drover"))
}

// release sets the variables of the page: a registry that does not exist, as the one of the first release does not, and
// a version.
func (s *story) release(version string) {
	s.env = append(s.env, "REGISTRY=registry.example.org/drover", "VERSION="+version)
}

// A story runs the blocks of a page in their order.
type story struct {
	*world
	blocks []Block
	// ran are the blocks that have run, by page and line.
	ran map[string]bool
}

// section runs the blocks of a section.
func (s *story) section(t *testing.T, name string) {
	t.Helper()
	ran := 0
	for _, b := range s.blocks {
		if b.Section != name {
			continue
		}
		ran++
		s.ran[b.String()] = true
		if b.Output != "" {
			s.shown(t, b)
			continue
		}
		s.real(t, b)
		if strings.Contains(b.Script, "--all -A") {
			s.repeat(t, b, "cluster-usages of drover", func(out string) bool { return strings.Contains(out, "drover-") })
		}
	}
	if ran == 0 {
		t.Fatalf("section %q has no commands", name)
	}
}

// real runs a block that takes effect.
func (s *story) real(t *testing.T, b Block) {
	t.Helper()
	if _, err := s.run(t.Context(), b, envReal+"=1"); err != nil {
		t.Fatal(err)
	}
}

// repeat a block until its output no longer shows the objects whose deletion the page waits for.
func (s *story) repeat(t *testing.T, b Block, what string, there func(string) bool) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		out, err := s.run(ctx, b, envReal+"=1")
		if err != nil || there(out) {
			return fmt.Sprintf("%s are there, error %v:\n%s", what, err, out)
		}
		return ""
	})
}

// shown runs a block that the API server refuses, and compares the error with the output on the
// page.
func (s *story) shown(t *testing.T, b Block) {
	t.Helper()
	out, err := s.run(t.Context(), b, envReal+"=1")
	if err == nil {
		t.Fatalf("%s: is not refused:\n%s", b, out)
	}
	want := strings.Join(strings.Fields(strings.TrimPrefix(b.Output, "... ")), " ")
	if got := strings.Join(strings.Fields(out), " "); !strings.Contains(got, want) {
		t.Errorf("%s: the page shows\n%s\nand the API server answers\n%s", b, want, got)
	}
}

// healthy waits until all packages are installed in a version, and healthy.
func (s *story) healthy(t *testing.T, version string) {
	t.Helper()
	patience.Eventually(t, func(context.Context) string {
		out, err := s.plane.Kubectl(t, "get", "pkg", "--no-headers", "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.currentIdentifier}={.status.conditions[?(@.type=="Healthy")].status}{.status.conditions[?(@.type=="Installed")].status}{"\n"}{end}`)
		for line := range strings.Lines(out) {
			if !strings.HasSuffix(strings.TrimSpace(line), ":"+version+"=TrueTrue") {
				return "not healthy: " + line
			}
		}
		if err != nil || strings.Count(out, "\n") < 3 {
			return fmt.Sprintf("packages are missing: %s %v", out, err)
		}
		return ""
	})
}
