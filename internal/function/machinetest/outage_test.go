package machinetest

import (
	"slices"
	"testing"
	"time"
)

func TestNobodyIsJudgedThroughAClusterThatIsCutOff(t *testing.T) {
	p := newPlane(t)
	config := p.Cluster
	Condition(config, "Reachable", "False", "Unreachable", "")
	Set(config, "2030-01-01T12:01:00Z", "status", "outage", "since")
	p.Reconcile()
	p.VMIsCreated()
	p.VMRuns()
	if r := p.Reconcile(); phase(p) != "Joining" || slices.Contains(r.Requirements, "cluster") {
		t.Fatalf("phase %s, requires %v: a Machine that is not judged asks for nothing", phase(p), r.Requirements)
	}

	p.Now = p.Now.Add(40 * time.Minute)
	if r := p.Reconcile(); phase(p) != "Joining" || !slices.Contains(r.Requirements, "cluster") || r.TTL > time.Minute {
		t.Errorf("phase %s, requires %v, again after %s", phase(p), r.Requirements, r.TTL)
	}

	Condition(config, "Reachable", "True", "Reachable", "")
	Set(config, p.Now.Format(time.RFC3339), "status", "outage", "until")
	p.Now = p.Now.Add(time.Minute)
	if r := p.Reconcile(); phase(p) != "Joining" || r.TTL != time.Minute {
		t.Errorf("phase %s, again after %s: kubelets have two minutes to come back", phase(p), r.TTL)
	}
	p.Now = p.Now.Add(time.Minute)
	if p.Reconcile(); phase(p) != "Failed" || field(p, "failureReason") != "JoinTimeout" {
		t.Errorf("phase %s, %s", phase(p), field(p, "failureReason"))
	}
}
