package e2e

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localplane"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

var skewEach = flag.Bool("skew-each", false, "upgrade each package alone as well, and let whole rollouts run beside packages of the other version")

// inOrder are the packages in the order of an upgrade in docs/install.md.
var inOrder = []drover{{"function", "function-drover"}, {"provider", "provider-drover"}, {"provider", "provider-local"}, {"configuration", "drover"}}

// TestUpgradesAmidRollouts upgrades the packages from the previous release one by one while a
// MachineDeployment rolls, and downgrades them again. In each stage, packages of both versions
// run until the rollout has updated another Machine.
func TestUpgradesAmidRollouts(t *testing.T) {
	kit.OnlyInLong(t, "test/compatibility")
	if !kit.HasPrevious() {
		t.Skip("DROVER_PREVIOUS is not set: make previous builds the packages of the release before this one")
	}
	t.Parallel()
	p, err := kit.Up(t.Context(), kit.Options{Previous: true, Args: kit.Limits})
	t.Cleanup(p.Down)
	must(t, err)
	s := &skew{Fleet: p.NewFleet(t)}
	const replicas = 6
	s.pool = s.Deployment("pool", replicas, 1, 0)
	s.census = s.Census(t)
	s.Create(t, s.pool)
	s.AwaitDeployment(t, s.pool.Name)
	bounds := s.hold(t, kit.Bounds{MaxMachines: replicas + 1 + 1, MinAvailable: replicas})

	s.roll(t, kit.Version, inOrder...)
	// The range of its dependencies prevents the installation of a Configuration with functions
	// and providers of another version. The following steps are for users who disable this check.
	s.kubectl(t, "patch", "configuration.pkg.crossplane.io", "drover-drover", "--type=merge", "-p", `{"spec":{"skipDependencyResolution":true}}`)
	s.skips = true
	back := []drover{inOrder[3], inOrder[2], inOrder[1], inOrder[0]}
	s.roll(t, kit.PreviousVersion, back...)
	if *skewEach {
		for _, pkg := range inOrder {
			t.Logf("%s alone", pkg.name)
			s.roll(t, kit.Version, pkg)
			s.roll(t, "")
			s.roll(t, kit.PreviousVersion, pkg)
		}
		// All packages except the Configuration, for as long as a user takes to upgrade.
		s.roll(t, kit.Version, inOrder[:3]...)
		s.roll(t, "")
		s.roll(t, kit.Version, inOrder[3])
	}
	bounds()
	s.census.Done(t, replicas*(1+s.rolls))
	s.DeleteDeployment(t, s.pool.Name)
}

// hold checks the bounds until the returned function is called. It lists Machines repeatedly: an
// upgrade changes their CRD, which ends each watch.
func (s *skew) hold(t *testing.T, b kit.Bounds) func() {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	looks, broken := 0, map[string]bool{}
	go func() {
		defer close(ended)
		for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
			l, err := s.Machines(ctx)
			if err != nil {
				continue
			}
			byName := map[string]*machinev1alpha1.Machine{}
			for i := range l {
				byName[l[i].Name] = &l[i]
			}
			looks++
			for _, is := range b.Check(byName) {
				broken[is] = true
			}
		}
	}()
	t.Cleanup(cancel)
	return func() {
		t.Helper()
		cancel()
		<-ended
		for is := range broken {
			t.Error(is)
		}
		if looks < 200 {
			t.Errorf("looked %d times: this shows nothing", looks)
		}
		t.Logf("the bounds held at each of %d looks", looks)
	}
}

type skew struct {
	kit.Fleet
	pool   *machinev1alpha1.MachineDeployment
	census *kit.Census
	rolls  int
	// skips is true while the Configuration does not resolve its dependencies.
	skips bool
}

// roll the pool, and install packages of a version in the middle of the rollout.
func (s *skew) roll(t *testing.T, version string, packages ...drover) {
	t.Helper()
	s.rolls++
	to := []string{kit.OldVersion, kit.NewVersion}[s.rolls%2]
	s.Patch(t, s.pool, fmt.Sprintf(`{"spec":{"template":{"spec":{"version":%q}}}}`, to))
	for i, pkg := range packages {
		patience.Eventually(t, func(ctx context.Context) string {
			if err := s.Client.Get(ctx, client.ObjectKeyFromObject(s.pool), s.pool); err != nil {
				return err.Error()
			}
			if got := int(s.pool.Status.UpdatedReplicas); got < i+1 {
				return fmt.Sprintf("%d Machines updated, want %d before %s is %s\n%s", got, i+1, pkg.name, version, s.Describe(ctx))
			}
			return ""
		})
		s.install(t, pkg, version)
	}
	s.AwaitDeployment(t, s.pool.Name)
}

func (s *skew) install(t *testing.T, pkg drover, version string) {
	t.Helper()
	if pkg.kind != "configuration" || !s.skips {
		ctx, cancel := patience.Context(t)
		defer cancel()
		must(t, s.InstallVersion(ctx, pkg.kind, pkg.name, version))
		return
	}
	// A package that resolves no dependencies is not in the Lock that the installer reads.
	source := localplane.Registry + "/" + pkg.name + ":" + version
	s.kubectl(t, "patch", pkg.resource(), pkg.object(), "--type=merge", "-p", fmt.Sprintf(`{"spec":{"package":%q}}`, source))
	patience.Eventually(t, func(context.Context) string {
		revision, _ := s.Kubectl(t, "get", pkg.resource(), pkg.object(), "-o", "jsonpath={.status.currentRevision}")
		is, _ := s.Kubectl(t, "get", pkg.resource(), pkg.object(), "-o", "jsonpath={.status.currentIdentifier}")
		controls, _ := s.Kubectl(t, "get", "composition", "machine-local", "-o", "jsonpath={.metadata.ownerReferences[?(@.controller==true)].name}")
		if is != source || controls != revision {
			return fmt.Sprintf("the package is %s, want %s; %s controls the Compositions, want %s", is, source, controls, revision)
		}
		return ""
	})
}

func (s *skew) kubectl(t *testing.T, args ...string) {
	t.Helper()
	if out, err := s.Kubectl(t, args...); err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
}
