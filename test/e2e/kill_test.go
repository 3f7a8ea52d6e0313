package e2e

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

var (
	killMachines = flag.Int("kill-machines", 8, "Machines of TestKillsLoseNothing; from 20 on, kills end only with each stage")
	killSeed     = flag.Uint64("kill-seed", 0, "seed of TestKillsLoseNothing, 0 for one of its own")
)

const (
	victim = "provider-drover"
	// manyMachines is the number of Machines from which on the long form runs.
	manyMachines = 20
	// randomKills per stage of the short form, in addition to the aimed kills.
	randomKills = 2
	// earliestKill and latestKill limit the life of the process after it is ready, if a kill is
	// not aimed.
	earliestKill, latestKill = time.Second, 4 * time.Second
	// aimFor is the time limit of an aimed kill. After it, a kill comes at random.
	aimFor = 10 * time.Second
	// anchor is a Machine that is not deleted, so that evicted pods have a Node.
	anchor = "anchor"
	pods   = "pods"
)

// TestKillsLoseNothing kills provider-drover with SIGKILL while Machines are created, rolled and
// deleted: at least once after each kind of its writes, and at random points. Each Machine must
// have one VM and one join token in its life. Each Node must be drained before its VM is deleted.
// The bounds of the rollout must hold, and no object may be left.
func TestKillsLoseNothing(t *testing.T) {
	kit.OnlyInLong(t, "TestARolloutSurvivesTheRestartOfEverything")
	n := int32(*killMachines)
	surge := max(1, n/5)
	limit := randomKills
	if n >= manyMachines {
		limit = -1
	}
	f := plane.NewTargetFleet(t)
	k := newKiller(t)
	seen := newRegister()
	always := f.GuardBy(t, seen.check(kit.Bounds{MaxMachines: int(n+surge) + 1}))
	// If the test ends early, the records are checked too: they show why.
	defer judge(t, f, k, seen, int(2*n))
	running(t, f, anchor)

	md := f.Deployment("killed", n, int(surge), 0)
	k.during(t, "creation", creationAims, limit, func() {
		f.Create(t, md)
		f.AwaitDeployment(t, md.Name)
	})
	noTokenIsLeft(t, f)

	must(t, f.MakeWorkload(t.Context(), pods, 2*n, intstr.FromString("40%")))
	podsAreReady(t, f, 2*n)
	guard := f.Guard(t, kit.Bounds{MaxMachines: int(n+surge) + 1, MinAvailable: int(n) + 1})
	k.during(t, "rollout", slices.Concat(creationAims, deletionAims), limit, func() {
		f.Patch(t, md, fmt.Sprintf(`{"spec":{"template":{"spec":{"version":%q}}}}`, kit.NewVersion))
		f.AwaitDeployment(t, md.Name)
	})
	guard.Done(t, int(4*n))
	noTokenIsLeft(t, f)
	everyMachineHasItsNode(t, f, int(n)+1)

	k.during(t, "deletion", deletionAims, limit, func() {
		must(t, f.Client.Delete(t.Context(), md))
		patience.Eventually(t, func(ctx context.Context) string {
			machines, err := f.Machines(ctx)
			if err != nil || len(machines) != 1 {
				return fmt.Sprintf("%d Machines are left, 1 shall be: %v", len(machines), err)
			}
			return ""
		}, f.Describe)
	})
	// The pods are on their last Node.
	must(t, f.DeleteBudget(t.Context(), pods))
	must(t, f.Client.Delete(t.Context(), &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: anchor}}))
	f.AwaitNothing(t)
	f.DeleteWorkload(t, pods)
	always.Done(t, int(8*n))
	k.report(t)
	// No Machine failed, and none was replaced.
	if got := len(seen.machines()); got != int(2*n)+1 {
		t.Errorf("%d Machines ever existed, want %d", got, 2*n+1)
	}
}

// judge the life of all Machines by the records.
func judge(t *testing.T, f kit.Fleet, k *killer, seen *register, evictions int) {
	t.Helper()
	history, err := f.History(t.Context())
	must(t, err)
	writes, _, err := k.journal.Since(0)
	must(t, err)
	e := kit.Evidence{Namespace: f.Namespace, Writes: writes, VMs: history, Machines: seen.machines()}
	for _, killed := range k.kills {
		e.Kills = append(e.Kills, killed.at)
	}
	for _, broken := range e.Broken() {
		t.Error(broken)
	}
	evicted := e.Evicted()
	if evicted < evictions {
		t.Errorf("only %d pods were evicted: that shows little", evicted)
	}
	t.Logf("%d Machines, %d VMs, %d writes to the API servers, %d evictions", len(e.Machines), e.Created(), len(writes), evicted)
}

func noTokenIsLeft(t *testing.T, f kit.Fleet) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		left, err := f.BootstrapTokens(ctx)
		if err != nil || len(left) > 0 {
			return fmt.Sprintf("all Nodes have joined, and %v are left: %v", left, err)
		}
		return ""
	})
}

func podsAreReady(t *testing.T, f kit.Fleet, n int32) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string { return f.WorkloadUnready(ctx, pods, n) })
}

// A register has all Machines that ever existed.
type register struct {
	mu  sync.Mutex
	all map[types.UID]string
}

func newRegister() *register { return &register{all: map[types.UID]string{}} }

func (r *register) machines() map[types.UID]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.all)
}

// check the bounds, and register the Machines.
func (r *register) check(b kit.Bounds) func(map[string]*machinev1alpha1.Machine) []string {
	return func(machines map[string]*machinev1alpha1.Machine) []string {
		r.mu.Lock()
		defer r.mu.Unlock()
		for name, m := range machines {
			r.all[m.UID] = name
		}
		return b.Check(machines)
	}
}

// An aim is a kind of write. An aimed kill follows such a write immediately.
type aim struct {
	name string
	fits func(kit.Write) bool
}

// writeOf Drover to a path, in the target cluster if target is true. The body has all of the
// texts, and none of those that start with "!".
func writeOf(name string, target bool, verb, path string, texts ...string) aim {
	return aim{name, func(w kit.Write) bool {
		return w.Target == target && w.IsByDrover() && w.Verb == verb && w.Path() == path && bodyHas(w, texts)
	}}
}

func bodyHas(w kit.Write, texts []string) bool {
	for _, text := range texts {
		text, not := strings.CutPrefix(text, "!")
		if bytes.Contains(w.RequestObject, []byte(text)) == not {
			return false
		}
	}
	return true
}

// named restricts an aim to objects whose names contain a text.
func (x aim) named(part string) aim {
	return aim{x.name, func(w kit.Write) bool { return x.fits(w) && strings.Contains(w.ObjectRef.Name, part) }}
}

// answered restricts an aim to answers with a status code.
func (x aim) answered(code int) aim {
	return aim{x.name, func(w kit.Write) bool { return x.fits(w) && w.ResponseStatus.Code == code }}
}

// Kinds of writes, in the order of a Machine's life.
var (
	creationAims = []aim{
		writeOf("Machine created", false, "patch", "machines").answered(201),
		writeOf("join token created", true, "create", "secrets").named("bootstrap-token-"),
		writeOf("user data created", false, "create", "secrets").named("-user-data"),
		writeOf("status of the Machine written", false, "patch", "machines/status"),
		writeOf("VM resource created", false, "patch", "virtualmachines").answered(201),
		writeOf("providerID written", false, "patch", "machines", `"providerID"`),
		writeOf("VM resource pinned", false, "patch", "virtualmachines", `"managementPolicies"`).answered(200),
		writeOf("serving certificate approved", true, "update", "certificatesigningrequests/approval"),
		writeOf("Node patched", true, "patch", "nodes", "!unschedulable"),
		writeOf("join token deleted", true, "delete", "secrets").named("bootstrap-token-"),
	}
	deletionAims = []aim{
		writeOf("Machine deleted", false, "delete", "machines"),
		writeOf("Node cordoned", true, "patch", "nodes", "unschedulable"),
		writeOf("pod evicted", true, "create", "pods/eviction"),
		writeOf("Node deleted", true, "delete", "nodes"),
		writeOf("VM released", false, "patch", "virtualmachines", machinev1alpha1.AnnotationReleased),
		{"VM deleted", func(w kit.Write) bool {
			return !w.Target && w.IsByPackage("provider-local") && w.Path() == "virtualmachines" && !bodyHas(w, []string{`"finalizers":["`})
		}},
		writeOf("finalizer removed from the Machine", false, "patch", "machines", `"finalizers"`, "!"+machinev1alpha1.FinalizerTerminator),
	}
)

// A killer kills provider-drover, and starts it again.
type killer struct {
	journal *kit.Journal
	dice    *rand.Rand
	kills   []kill
	// hit are the aims that were hit.
	hit map[string]bool
}

type kill struct {
	stage, why string
	at         time.Time
}

func newKiller(t *testing.T) *killer {
	t.Helper()
	seed := cmp.Or(*killSeed, rand.Uint64())
	t.Logf("the seed is %d: -kill-seed=%d repeats the choices, and not the moments", seed, seed)
	j, err := plane.Journal(t.Context())
	must(t, err)
	t.Cleanup(j.Close)
	return &killer{journal: j, dice: rand.New(rand.NewPCG(seed, 0)), hit: map[string]bool{}}
}

// during runs a stage of the test. It kills at each aim that was not hit yet, and then more times
// at random, without limit if more is negative.
func (k *killer) during(t *testing.T, stage string, aims []aim, more int, do func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	began, before := time.Now(), len(k.kills)
	go func() { ended <- k.killAt(ctx, stage, aims, more) }()
	end := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", stage, err)
		}
		if err := plane.Launcher(context.Background(), "restart", victim); err != nil {
			t.Error(err)
		}
	})
	defer end()
	do()
	end()
	t.Logf("%s: %d kills in %s", stage, len(k.kills)-before, time.Since(began).Round(100*time.Millisecond))
}

func (k *killer) killAt(ctx context.Context, stage string, aims []aim, more int) error {
	pid, err := plane.PID(ctx, victim)
	if err != nil {
		return err
	}
	ready := closed()
	for {
		left := slices.DeleteFunc(slices.Clone(aims), func(a aim) bool { return k.hit[a.name] })
		if len(left) == 0 && more == 0 {
			return nil
		}
		why := k.await(ctx, left, aims, ready)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // The stage has ended.
		}
		if len(left) == 0 {
			more--
		}
		at := time.Now()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return fmt.Errorf("cannot kill %s, process %d: %w", victim, pid, err)
		}
		k.hit[why] = true
		k.kills = append(k.kills, kill{stage, why, at})
		if pid, ready, err = restarted(ctx); err != nil {
			return err
		}
	}
}

const atRandom = "at random"

// await the time of the next kill, and return the aim that it hits.
func (k *killer) await(ctx context.Context, left, aims []aim, ready <-chan struct{}) string {
	first, _, _ := k.journal.Since(0)
	next := len(first)
	life := earliestKill + time.Duration(k.dice.Int64N(int64(latestKill-earliestKill)))
	switch {
	case len(left) > 0:
		life = aimFor
	case k.dice.IntN(2) == 0:
		left = aims[k.dice.IntN(len(aims)):][:1]
	}
	// Kill right after the write, or near the next writes.
	delay := time.Duration(k.dice.IntN(2)) * time.Duration(k.dice.Int64N(int64(30*time.Millisecond)))
	var over <-chan time.Time
	for {
		writes, more, _ := k.journal.Since(next)
		next += len(writes)
		for _, w := range writes {
			i := slices.IndexFunc(left, func(a aim) bool { return w.IsAccepted() && a.fits(w) })
			if i >= 0 {
				time.Sleep(delay)
				return left[i].name
			}
		}
		select {
		case <-ctx.Done():
			return ""
		case <-ready:
			ready, over = nil, time.After(life)
		case <-over:
			return atRandom
		case <-more:
		}
	}
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// restarted returns the new process of the victim as soon as it exists, and a channel that is
// closed when the process is ready.
func restarted(ctx context.Context) (int, <-chan struct{}, error) {
	ctx = context.WithoutCancel(ctx)
	// The supervisor waits longer after each end, unless the process is stopped and started by
	// command. It may also have started another process already.
	if err := plane.Launcher(ctx, "stop", victim); err != nil {
		return 0, nil, err
	}
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		// If the process is killed before it is ready, the next start reports the error.
		_ = plane.Launcher(ctx, "start", victim)
	}()
	for end := time.Now().Add(patience.Limit()); ; {
		pid, err := plane.PID(ctx, victim)
		if err == nil || time.Now().After(end) {
			return pid, ready, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// report the kills, and the last write of provider-drover before each kill.
func (k *killer) report(t *testing.T) {
	t.Helper()
	all := slices.Concat(creationAims, deletionAims)
	writes, _, err := k.journal.Since(0)
	must(t, err)
	aimed, after := map[string]int{}, map[string]int{}
	for _, x := range k.kills {
		aimed[x.why]++
		last := kit.Write{}
		for _, w := range writes {
			at := w.RequestReceivedTimestamp
			if (w.IsByDrover() || all[len(all)-2].fits(w)) && at.Before(x.at) && at.After(last.RequestReceivedTimestamp) {
				last = w
			}
		}
		name := last.Verb + " " + last.Path()
		if i := slices.IndexFunc(all, func(a aim) bool { return a.fits(last) }); i >= 0 {
			name = all[i].name
		}
		after[name]++
	}
	for _, x := range all {
		t.Logf("%4d kills aimed after %q, %d times it was the last write before a kill", aimed[x.name], x.name, after[x.name])
		if aimed[x.name] == 0 {
			t.Errorf("no kill came after %q", x.name)
		}
		delete(after, x.name)
	}
	t.Logf("%4d kills %s, %d in all; last writes of other kinds: %v", aimed[atRandom], atRandom, len(k.kills), after)
}
