package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A clock reads a time from the code.
type clock func(t *testing.T, s *source) time.Duration

// axis is the source of each time of docs/timeouts.md, by the beginning of its text.
var axis = map[string]clock{
	"the eviction of a pod that a budget refused":       constantIn("internal/controller/machine/drain", "EvictEvery"),
	"an answer that contradicts":                        constantIn("internal/controller/config", "confirmAfter"),
	"a call to a target cluster is given up":            constantIn("internal/target", "callTimeout"),
	"a set creates its other Machines":                  constantIn("internal/plan/set", "firstPatience"),
	"a set creates Machines again after the first":      backoff(10 * time.Second),
	"`drover.dev/force-delete` lets a Machine go":       constantIn("internal/controller/machine/deletion", "ForceDeleteAfter"),
	"a Machine whose reconcile failed":                  constantIn("internal/controller/machine", "afterError"),
	"a certificate request that waits is looked at":     constantIn("internal/controller/approver", "lookAgain"),
	"a frozen set looks whether":                        constantIn("internal/plan/freeze", "lookAgain"),
	"the provider of a VM that does not run yet":        constantIn("internal/plan/vm", "lookAfter"),
	"a target cluster is asked whether":                 constantIn("internal/controller/config", "probeEvery"),
	"a Machine whose Node was deleted is Failed":        constantIn("internal/plan/machine", "nodeGoneGrace"),
	"the deletion of a Machine no longer waits for the": constantIn("internal/controller/machine", "tokenFor"),
	"a pod that a forced drain deletes":                 constantIn("internal/controller/machine/drain", "forcedGrace"),
	"a pod that did not end is killed":                  constantIn("internal/controller/machine/drain", "KillDelay"),
	"a Machine for which the cloud has no room":         constantIn("apis/machine/v1alpha1", "DefaultCapacityTimeout"),
	"a Node that was unhealthy counts as healthy":       constantIn("internal/plan/machine", "wellAgain"),
	"the console of a VM without a Node":                constantIn("internal/plan/machine", "lateAfter"),
	"an event reports that a certificate request":       constantIn("internal/controller/approver", "reportAfter"),
	"a Node is left in the target cluster":              constantIn("internal/controller/machine/nodekeeper", "AbandonAfter"),
	"a resource that its provider never began":          constantIn("internal/controller/machine/deletion", "UnmadeAfter"),
	"a set creates two more Machines beside":            constantIn("internal/plan/set", "vmPatience"),
	"a set creates Machines again after the cloud":      backoff(time.Minute),
	"a provider looks at a VM at rest":                  defaultOfFlag("poll"),
	"a refused creation of a VM or companion":           constantIn("internal/plan/vm", "retryAfter"),
	"a throttled creation of a VM or companion":         constantIn("internal/plan/vm", "retryThrottledAfter"),
	"a pod with volumes is evicted":                     inSchema("spec.drain.volumeReattachTimeout"),
	"a volume that is not detached":                     inSchema("spec.drain.volumeDetachTimeout"),
	"Machines can fail for their Nodes again":           constantIn("apis/fn/v1alpha1", "DefaultReturnGrace"),
	"the pods of a Node that is not Ready count":        constantIn("internal/controller/machine/drain", "DeadAfter"),
	"a VM whose Node did not prove a soft":              constantIn("internal/plan/machine", "softRebootFor"),
	"a [reboot](health.md#reboot-a-machine) has failed": inSchema("spec.health.reboot.timeout"),
	"a reboot by health counts":                         inSchema("spec.health.reboot.window"),
	"the console of a VM whose Node is not healthy":     constantIn("internal/plan/machine", "lateWithNode"),
	"a Node may ask for the replacement":                constantIn("internal/plan/machine", "nodeMayRequestAfter"),
	"a set creates twice as many Machines":              constantIn("internal/plan/set", "joinPatience"),
	"Machines that are being deleted freeze":            constantIn("internal/plan/freeze", "deletionsFreeze"),
	"the backoff of a template whose VMs do not join":   backoff(5 * time.Minute),
	"a port or floating IP of OpenStack whose creation": constantIn("internal/controller/openstack", "settleTime"),
	"companions that depend on a VM":                    constantIn("internal/controller/machine/deletion", "DependentsTimeout"),
	"an OrphanCollector looks at the cloud again":       inSchema("OrphanCollector spec.interval"),
	"a Machine that is Unknown is Failed":               inSchema("spec.health.timeout"),
	"a failure domain without room":                     constantIn("internal/plan/set", "exhaustionLasts"),
	"the backoff of a template grows no further":        backoff(10 * time.Minute),
	"a set creates Machines again after an error":       backoff(10 * time.Minute),
	"a deletion that waits for the provider":            constantIn("internal/plan/deletion", "slowAfter"),
	"the rights in a target cluster":                    constantIn("internal/target", "rightsAgain"),
	"a VM that no Machine claims is an orphan":          inSchema("OrphanCollector spec.gracePeriod"),
	"a Machine that is not Running is Failed":           inSchema("spec.creationTimeout"),
	"an update in place has failed":                     inSchema("MachineDeployment spec.strategy.inPlaceUpdate.timeout"),
	"a provider gives up the call that creates a VM":    constantIn("internal/lift", "createTimeout"),
	"a rollout without progress":                        inSchema("MachineDeployment spec.progressDeadlineSeconds"),
	"a MachineSet that stands alone and is frozen":      constantIn("apis/machine/v1alpha1", "DefaultFreezeLimit"),
	"a Machine counts in the metric":                    constantIn("internal/metrics", "stuckAfter"),
	"the lease of a join token ends":                    constantIn("apis/fn/v1alpha1", "DefaultTokenTTL"),
	"a join token is not renewed any more":              constantIn("internal/plan", "TokenSlack"),
	"the backoff after errors that only a user can fix": backoff(time.Hour),
	"each object is reconciled":                         defaultOfFlag("sync"),
	"the pods that are left are deleted":                inSchema("spec.drain.timeout"),
	"hooks hold a deletion no longer":                   inSchema("spec.drain.hookTimeout"),
	"a preserved Machine is treated":                    inSchema("spec.preserve.timeout"),
}

// TestTheAxisOfTimeoutsIsThatOfTheCode reads each time of the page from the code, and checks that
// the rows are in the order of their times.
func TestTheAxisOfTimeoutsIsThatOfTheCode(t *testing.T) {
	s, seen, last := code, map[string]bool{}, time.Duration(0)
	for _, m := range regexp.MustCompile(`(?m)^\| ([0-9][0-9hms]*) \| (.+?) \|`).FindAllStringSubmatch(read(t, "docs/timeouts.md"), -1) {
		shown, err := time.ParseDuration(m[1])
		if err != nil {
			t.Fatal(err)
		}
		if shown < last {
			t.Errorf("%q: %s stands below %s", m[2], m[1], last)
		}
		last = shown
		from := ""
		for beginning := range axis {
			if strings.HasPrefix(m[2], beginning) && len(beginning) > len(from) {
				from = beginning
			}
		}
		if from == "" || seen[from] {
			t.Errorf("%q: the test knows no place in the code for it, or has one for two rows", m[2])
			continue
		}
		seen[from] = true
		if got := axis[from](t, s); got != shown {
			t.Errorf("%q: %s in the code, %s on the page", m[2], got, m[1])
		}
	}
	for beginning := range axis {
		if !seen[beginning] {
			t.Errorf("docs/timeouts.md has no row %q", beginning)
		}
	}
}

func TestTheLongestDeletionIsTheSumOfItsStages(t *testing.T) {
	s := code
	hooks, drain := inSchema("spec.drain.hookTimeout")(t, s), inSchema("spec.drain.timeout")(t, s)
	grace, kill := constantIn("internal/controller/machine/drain", "forcedGrace")(t, s), constantIn("internal/controller/machine/drain", "KillDelay")(t, s)
	page := read(t, "docs/timeouts.md")
	for _, d := range []time.Duration{hooks + drain + grace + 2*kill + hooks, drain + grace + 2*kill} {
		text := strings.NewReplacer("h", "h ", "m", "m ").Replace(d.String())
		if !strings.Contains(page, text) {
			t.Errorf("docs/timeouts.md does not have the sum %s", text)
		}
	}
}

// constantIn a package: a duration.
func constantIn(folder, name string) clock {
	return func(t *testing.T, s *source) time.Duration {
		t.Helper()
		p, err := s.load(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range s.declarations(p) {
			if d.name == name && d.value.Kind() == constant.Int {
				n, _ := constant.Int64Val(d.value)
				return time.Duration(n)
			}
		}
		t.Errorf("%s has no constant %s", folder, name)
		return 0
	}
}

// backoff of a set, which has no names for its bounds: the function that doubles it has the time.
func backoff(d time.Duration) clock {
	return func(t *testing.T, s *source) time.Duration {
		t.Helper()
		p, err := s.load("internal/plan/set")
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range p.syntax {
			for _, declared := range f.Decls {
				function, ok := declared.(*ast.FuncDecl)
				if !ok || function.Name.Name != "delay" {
					continue
				}
				ast.Inspect(function, func(n ast.Node) bool {
					e, ok := n.(ast.Expr)
					if v := p.info.Types[e].Value; ok && v != nil && v.Kind() == constant.Int {
						n, _ := constant.Int64Val(v)
						found = found || time.Duration(n) == d
					}
					return true
				})
			}
		}
		if !found {
			return 0
		}
		return d
	}
}

// inSchema is the default of a field of a kind, by default of Machine.
func inSchema(path string) clock {
	files := map[string]string{
		"Machine":           "package/provider-drover/crds/machine.drover.dev_machines.yaml",
		"MachineDeployment": "apis/machine/xrds/machine.drover.dev_machinedeployments.yaml",
		"OrphanCollector":   "apis/machine/xrds/machine.drover.dev_orphancollectors.yaml",
	}
	kind, field, ok := strings.Cut(path, " ")
	if !ok {
		kind, field = "Machine", path
	}
	return func(t *testing.T, _ *source) time.Duration {
		t.Helper()
		_, of := schemaIn(t, files[kind])
		for name := range strings.SplitSeq(field, ".") {
			of = of.Properties[name]
		}
		if seconds, ok := of.Default.(float64); ok {
			return time.Duration(seconds) * time.Second
		}
		d, err := time.ParseDuration(fmt.Sprint(of.Default))
		if err != nil {
			t.Errorf("%s: the default is %v", path, of.Default)
		}
		return d
	}
}

// defaultOfFlag of all providers, as the generated page has it.
func defaultOfFlag(name string) clock {
	return func(t *testing.T, _ *source) time.Duration {
		t.Helper()
		m := regexp.MustCompile("(?m)^\\| `--" + name + "` \\| duration \\| `([^`]+)`").FindStringSubmatch(read(t, "docs/reference/flags.md"))
		if m == nil {
			t.Fatalf("docs/reference/flags.md has no --%s", name)
		}
		d, err := time.ParseDuration(m[1])
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}
