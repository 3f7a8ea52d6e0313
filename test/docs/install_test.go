package docs

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/localplane"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// TestTheInstallationOfTheDocs installs, upgrades and uninstalls Drover by the commands of
// docs/install.md, in their order, on a control plane that has Crossplane and nothing else.
func TestTheInstallationOfTheDocs(t *testing.T) {
	t.Parallel()
	blocks, err := Read(kit.Root())
	must(t, err)
	p := up(t, kit.Options{Bare: true})
	s := &story{world: newWorld(t, p), blocks: slices.DeleteFunc(blocks, func(b Block) bool { return !inStory(b) })}
	f := kit.Fleet{Plane: p, Namespace: metav1.NamespaceDefault}

	s.section(t, "Install Drover")
	must(t, localplane.Runtime(t.Context(), p.Client, kit.Root()))
	s.healthy(t)
	s.real(t, Block{Page: installPage, Script: "crossplane xpkg install provider $REGISTRY/provider-local:$VERSION\n"})
	s.healthy(t)
	must(t, localplane.Account(t.Context(), p.Client, p.LocalCloud))
	for _, file := range []string{"providerconfig", "clusterproviderconfig", "machineclass", "machinedeployment"} {
		must(t, localplane.Apply(t.Context(), p.Client, filepath.Join(kit.Root(), "examples/local", file+".yaml")))
	}
	f.AwaitDeployment(t, "workers")

	s.section(t, "Upgrade")
	s.healthy(t)
	f.AwaitDeployment(t, "workers")

	s.section(t, "Uninstall")
	out, err := p.Kubectl(t, "get", "xrd,crd", "-o", "name")
	if must(t, err); strings.Contains(out, "drover.dev") {
		t.Errorf("definitions are left:\n%s", out)
	}
	if len(s.blocks) > 0 {
		t.Errorf("%s was not run", s.blocks[0])
	}
}

// A story runs the blocks of a page in their order.
type story struct {
	*world
	blocks []Block
}

// section runs the blocks of a section.
func (s *story) section(t *testing.T, name string) {
	t.Helper()
	ran := 0
	for ; len(s.blocks) > 0 && s.blocks[0].Section == name; s.blocks = s.blocks[1:] {
		ran++
		b := s.blocks[0]
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
		t.Fatalf("section %q has no commands, or they are not in this order", name)
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

// healthy waits until all packages are installed and healthy.
func (s *story) healthy(t *testing.T) {
	t.Helper()
	patience.Eventually(t, func(context.Context) string {
		out, err := s.plane.Kubectl(t, "get", "pkg", "--no-headers", "-o", `jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Healthy")].status}{.status.conditions[?(@.type=="Installed")].status}{"\n"}{end}`)
		for line := range strings.Lines(out) {
			if !strings.HasSuffix(strings.TrimSpace(line), "=TrueTrue") {
				return "not healthy: " + line
			}
		}
		if err != nil || strings.Count(out, "\n") < 3 {
			return fmt.Sprintf("packages are missing: %s %v", out, err)
		}
		return ""
	})
}
