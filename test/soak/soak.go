package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
)

const (
	// healthTimeout starts after the minute that a cluster needs to detect a silent kubelet.
	healthTimeout = 15 * time.Second
	// creationTimeout of a Machine, long enough for a busy computer.
	creationTimeout = 2 * time.Minute
	// drainTimeout is longer than any time for which the target cluster is cut off.
	drainTimeout = 10 * time.Minute
	// shortestCut and longestCut of the connection to the target cluster.
	shortestCut, longestCut = 10 * time.Second, 2 * time.Minute
	// collector of orphans.
	collector = "soak"
	// workload is the name of the Deployment whose pods are drained.
	workload = "workload"
)

// settings of the cloud without faults. The shutdown of a VM is long enough to be observed.
var settings = localcloud.Settings{BootTime: localcloud.Duration(2 * time.Second), ShutdownTime: localcloud.Duration(2 * time.Second)}

// A soak is a fleet of several MachineDeployments, into which faults are injected.
type soak struct {
	kit.Fleet
	cli   *cli
	plane *kit.Plane
	proxy *kit.Proxy
	stop  context.CancelFunc

	// deployments by name, and the maximum number of Machines of each.
	deployments []string
	share       map[string]int32

	// lasting are the temporary actions.
	lasting sync.WaitGroup

	mu     sync.Mutex
	ledger *ledger
	// story of the round, and the actions and results of all rounds.
	story  []string
	did    map[kind]int
	passed map[kind]int
	rounds int
	began  time.Time
	well   []time.Duration
}

// start a fleet, and wait until it is settled.
func start(ctx context.Context, plane *kit.Plane, c *cli) (*soak, error) {
	s := &soak{cli: c, plane: plane, ledger: newLedger(), share: map[string]int32{}, did: map[kind]int{}, passed: map[kind]int{}, began: time.Now(), stop: func() {}}
	var err error
	if s.Fleet, s.proxy, err = plane.MakeProxiedFleet(ctx); err != nil {
		return s, err
	}
	log.SetLogger(logr.Discard())
	watching, stop := context.WithCancel(ctx)
	s.stop = func() { stop(); s.proxy.Close() }
	if _, err := s.Cloud.SetSettings(ctx, settings); err != nil {
		return s, err
	}
	o := &machinev1alpha1.OrphanCollector{ObjectMeta: metav1.ObjectMeta{Name: collector}}
	o.Spec.Namespace = s.Namespace
	o.Spec.Policy = machinev1alpha1.OrphanDelete
	o.Spec.GracePeriod.Duration = 10 * time.Minute
	o.Spec.Interval.Duration = 5 * time.Second
	if err := s.Make(ctx, o); err != nil {
		return s, err
	}
	// For the inventory, ten minutes pass within ten seconds.
	go plane.Age(watching, "local.drover.dev", s.Namespace, o.Spec.GracePeriod.Duration-10*time.Second)
	if err := s.watch(watching); err != nil {
		return s, err
	}
	if err := s.makeDeployments(ctx); err != nil {
		return s, err
	}
	if err := s.MakeWorkload(ctx, workload, int32(s.cli.Machines), intstr.FromString("40%")); err != nil {
		return s, err
	}
	return s, s.settle(ctx)
}

// makeDeployments creates deployments with different bounds and budgets.
func (s *soak) makeDeployments(ctx context.Context) error {
	half, rest := int32(s.cli.Machines/2), int32(s.cli.Machines-s.cli.Machines/2)
	for name, d := range map[string]struct {
		share              int32
		surge, unavailable intstr.IntOrString
		remediation        machinev1alpha1.Remediation
	}{
		"large": {half, intstr.FromString("20%"), intstr.FromInt32(1), machinev1alpha1.Remediation{
			MaxInFlight: ptr.To(intstr.FromString("20%")), MaxUnhealthy: ptr.To(intstr.FromString("60%")),
		}},
		"spare": {rest / 2, intstr.FromInt32(1), intstr.FromInt32(0), machinev1alpha1.Remediation{
			MaxInFlight: ptr.To(intstr.FromInt32(2)), Order: machinev1alpha1.CreateFirst,
		}},
		"tight": {rest - rest/2, intstr.FromInt32(0), intstr.FromInt32(2), machinev1alpha1.Remediation{
			MaxInFlight: ptr.To(intstr.FromInt32(1)),
		}},
	} {
		md := s.Deployment(name, d.share, 0, 0)
		md.Spec.Strategy.RollingUpdate = machinev1alpha1.RollingUpdateBounds{MaxSurge: &d.surge, MaxUnavailable: &d.unavailable}
		md.Spec.Remediation = d.remediation
		md.Spec.Template.Spec.Health.Timeout = metav1.Duration{Duration: healthTimeout}
		md.Spec.Template.Spec.CreationTimeout = metav1.Duration{Duration: creationTimeout}
		md.Spec.Template.Spec.Drain.Timeout = metav1.Duration{Duration: drainTimeout}
		if err := s.Make(ctx, md); err != nil {
			return err
		}
		s.deployments, s.share[name] = append(s.deployments, name), d.share
	}
	slices.Sort(s.deployments)
	return nil
}

// run rounds until the duration is over, and check at the end that no objects are left.
func (s *soak) run(ctx context.Context) error {
	for n := 1; time.Since(s.began) < s.cli.Duration; n++ {
		if err := s.round(ctx, n); err != nil {
			return err
		}
	}
	return s.end(ctx)
}

func (s *soak) round(ctx context.Context, n int) error {
	s.mu.Lock()
	s.story = nil
	s.rounds = n
	s.mu.Unlock()
	s.logf("round %d of seed %d", n, s.cli.Seed)
	for _, a := range round(s.cli.Seed, n, s.cli.Actions) {
		if !s.sleep(ctx, a.after) {
			return ctx.Err()
		}
		what, err := s.act(ctx, a)
		if err != nil {
			return fmt.Errorf("cannot do %q: %w", a.kind, err)
		}
		s.mu.Lock()
		if what == "" {
			s.passed[a.kind]++
		} else {
			s.did[a.kind]++
		}
		s.mu.Unlock()
		if what != "" {
			s.logf("%s: %s", a.kind, what)
		}
	}
	s.lasting.Wait()
	if err := s.mend(ctx); err != nil {
		return err
	}
	s.logf("all is mended")
	mended := time.Now()
	if err := s.settle(ctx); err != nil {
		return err
	}
	took := time.Since(mended).Round(time.Second)
	s.logf("all is well again after %s", took)
	s.mu.Lock()
	s.well = append(s.well, took)
	s.mu.Unlock()
	return nil
}

// settle waits until the fleet matches its spec, and checks for broken guarantees meanwhile.
func (s *soak) settle(ctx context.Context) error {
	said, logged := "nothing was looked at", time.Now()
	for end := time.Now().Add(s.cli.Patience); said != ""; {
		if !s.sleep(ctx, time.Second) {
			return ctx.Err()
		}
		said = s.unwell(ctx)
		if err := s.broken(); err != nil {
			return err
		}
		if said != "" && time.Since(logged) > time.Minute {
			s.logf("not well yet: %.300s", said)
			logged = time.Now()
		}
		if said != "" && time.Now().After(end) {
			s.judge(func(time.Time) { s.ledger.breaks("the fleet is not well within %s: %s", s.cli.Patience, said) })
			fmt.Fprintln(os.Stderr, s.Describe(ctx))
			return errors.New("the fleet is not well in time")
		}
	}
	s.judge(func(time.Time) { s.ledger.settled() })
	return nil
}

// broken returns an error if guarantees were broken, unless --go-on is set.
func (s *soak) broken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.ledger.broken); n > 0 && !s.cli.GoOn {
		return fmt.Errorf("%d promises were broken", n)
	}
	return nil
}

// end deletes the fleet, and checks that no objects are left.
func (s *soak) end(ctx context.Context) error {
	s.logf("the fleet is deleted")
	// All Nodes may be drained, also the last one of the workload.
	if err := s.DeleteBudget(ctx, workload); err != nil {
		return err
	}
	for _, name := range s.deployments {
		md := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
		s.judge(func(time.Time) { delete(s.ledger.deployments, name) })
		if err := s.Client.Delete(ctx, md, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return err
		}
	}
	for end := time.Now().Add(s.cli.Patience); ; {
		left := s.Left(ctx)
		vms, err := s.Cloud.ListVMs(ctx, localcloud.ListVMsOptions{})
		if err != nil {
			left = append(left, err.Error())
		}
		if len(left)+len(vms) == 0 {
			break
		}
		if !s.sleep(ctx, time.Second) {
			return ctx.Err()
		}
		if time.Now().After(end) {
			fmt.Fprintln(os.Stderr, s.Describe(ctx))
			return fmt.Errorf("after all was deleted %d VMs are left, and %s", len(vms), strings.Join(left, ", "))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.ledger.broken); n > 0 {
		return fmt.Errorf("%d promises were broken", n)
	}
	return nil
}

// Add a line to the story of the round, and print it.
func (s *soak) logf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.say(format, args...)
}

func (s *soak) say(format string, args ...any) {
	line := fmt.Sprintf("%8s  ", time.Since(s.began).Round(100*time.Millisecond)) + fmt.Sprintf(format, args...)
	s.story = append(s.story, line)
	fmt.Fprintln(os.Stderr, line)
}

// report the actions and their results, and the story of a failed round.
func (s *soak) report(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	p("\n%d Machines, seed %d: %d rounds in %s", s.cli.Machines, s.cli.Seed, s.rounds, time.Since(s.began).Round(time.Second))
	for _, x := range weights {
		if s.did[x.kind]+s.passed[x.kind] > 0 {
			p("  %4d  %s", s.did[x.kind], x.kind)
		}
	}
	p("and")
	for _, what := range slices.Sorted(maps.Keys(s.ledger.counts)) {
		p("  %4d  %s", s.ledger.counts[what], what)
	}
	if len(s.well) > 0 {
		p("after which all was well again within %s, at the latest", slices.Max(s.well))
	}
	if len(s.ledger.broken) == 0 {
		p("No promise was broken.")
		return
	}
	p("%d promises were broken:", len(s.ledger.broken))
	for _, b := range s.ledger.broken {
		p("  %s", b)
	}
	p("The story of the round:")
	for _, line := range s.story {
		p("%s", line)
	}
}

// sleep reports whether the soak continues.
func (s *soak) sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func virtualMachines() *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.GroupVersionKind{Group: "local.drover.dev", Version: "v1alpha1", Kind: "VirtualMachineList"})
	return l
}

func count(l client.ObjectList) int { return meta.LenList(l) }
