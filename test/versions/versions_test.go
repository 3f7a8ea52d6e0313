package versions

import (
	"net/http"
	"testing"

	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
)

// TestNodesFollowTheirTargetClusterToItsNextVersions upgrades one target cluster from each version to the
// next. Nodes of the version join it. A rollout to the next version waits until the API server is upgraded,
// and then until the budget of the pods allows evictions.
func TestNodesFollowTheirTargetClusterToItsNextVersions(t *testing.T) {
	journal, err := plane.Journal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(journal.Close)
	pools := []*pool{{name: "simulated", Fleet: plane.NewTargetFleet(t), size: 3}}
	pools[0].start(t, "small", versions[0])
	if kit.HasRealVMs() {
		p := &pool{name: "real", Fleet: plane.NewRealFleet(t, localcloud.ImageFlatcarLike), size: 1}
		// The image has containerd 2, which serves all versions of kubelets.
		p.Create(t, p.RealClass("real", localcloud.ImageFlatcarLike, "flatcar-v1", map[string]string{"cniURL": "http://" + localcloud.GatewayAddress + "/plugins"}))
		p.start(t, "real", versions[0])
		pools = append(pools, p)
	} else {
		t.Log("NO REAL VM IS TESTED: the kubelets are those of simulated VMs")
	}

	nodes := map[*pool][]string{}
	each := func(name string, do func(t *testing.T, p *pool)) {
		t.Helper()
		for _, p := range pools {
			if !t.Run(name+"/"+p.name, func(t *testing.T) { do(t, p) }) {
				t.FailNow()
			}
		}
	}
	for i, version := range versions {
		checkVersion(t, version)
		each("NodesOf"+version+"Join", func(t *testing.T, p *pool) {
			old := nodes[p]
			nodes[p] = p.awaitNodes(t, version)
			p.awaitDeleted(t, old)
		})
		if i == len(versions)-1 {
			break
		}
		next := versions[i+1]
		each("AKubeletOf"+next+"WaitsForItsAPIServer", func(t *testing.T, p *pool) {
			p.hold(t)
			p.roll(t, next)
			p.awaitVersionSkew(t, version, next)
		})
		if err := plane.UpgradeTarget(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		checkVersion(t, next)
		each("ABudgetHoldsTheDrainOf"+version, func(t *testing.T, p *pool) { p.awaitBlockedDrain(t) })
		for _, p := range pools {
			p.relax(t)
		}
	}
	each("NothingIsLeft", func(t *testing.T, p *pool) { p.stop(t) })
	for _, p := range pools {
		checkEvictions(t, journal, p)
	}
}

// checkVersion checks the version of the target cluster's API server.
func checkVersion(t *testing.T, version string) {
	t.Helper()
	if got, err := plane.Target.Version(); err != nil || got != version {
		t.Fatalf("the target cluster is %s, want %s: %v", got, version, err)
	}
}

// checkEvictions checks that drains removed the pods of a pool by evictions only: the API server rejected
// at least one because of the budget.
func checkEvictions(t *testing.T, journal *kit.Journal, p *pool) {
	t.Helper()
	writes, _, err := journal.Since(0)
	if err != nil {
		t.Fatal(err)
	}
	var rejected, accepted int
	for _, w := range writes {
		if !w.Target || !w.IsByDrover() || w.ObjectRef.Namespace != p.Namespace {
			continue
		}
		switch {
		case w.Path() == "pods/eviction" && w.ResponseStatus.Code == http.StatusTooManyRequests:
			rejected++
		case w.Path() == "pods/eviction" && w.IsAccepted():
			accepted++
		case w.ObjectRef.Resource == "pods":
			t.Errorf("%s: Drover sent %s %s of pod %s, answered with %d", p.name, w.Verb, w.Path(), w.ObjectRef.Name, w.ResponseStatus.Code)
		}
	}
	if upgrades := len(versions) - 1; rejected < upgrades || accepted < upgrades*int(p.size) {
		t.Errorf("%s: %d evictions were rejected and %d accepted, want for each of %d upgrades at least one rejected, and one accepted per pod", p.name, rejected, accepted, upgrades)
	}
	t.Logf("%s: %d evictions were rejected, and %d accepted", p.name, rejected, accepted)
}
