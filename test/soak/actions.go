package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
)

var (
	components = []string{"crossplane", "function-drover", "provider-drover", "provider-local", "local-cloud", "target"}
	versions   = []string{kit.OldVersion, kit.NewVersion, "v1.35.5"}
	refusals   = []string{
		localcloud.CodeCapacityExhausted, localcloud.CodeQuotaExceeded, localcloud.CodeInvalidRequest,
		localcloud.CodePermissionDenied, localcloud.CodeThrottled, localcloud.CodeInternal,
	}
)

// act executes an action, and returns a description of its target, empty if there was no target.
func (s *soak) act(ctx context.Context, a action) (string, error) {
	switch a.kind {
	case vmVanishes:
		return s.strikeVMs(ctx, a, localcloud.FaultVanish)
	case kubeletStops:
		return s.strikeVMs(ctx, a, localcloud.FaultKubeletStops)
	case vmNeverBoots:
		return s.fault(ctx, a, localcloud.Fault{Kind: localcloud.FaultNeverBoots})
	case vmBootsSlowly:
		return s.fault(ctx, a, localcloud.Fault{Kind: localcloud.FaultSlowBoot, Delay: localcloud.Duration(a.lasts)})
	case createRefused:
		return s.fault(ctx, a, localcloud.Fault{Kind: localcloud.FaultCreateFails, Code: choose(a.pick, refusals)})
	case createFails:
		// Invalid or unauthorized creations would only be retried after ten minutes.
		return s.fault(ctx, a, localcloud.Fault{Kind: localcloud.FaultCreateFails, Delay: localcloud.Duration(2 * time.Second),
			Code: choose(a.pick, []string{localcloud.CodeInternal, localcloud.CodeCapacityExhausted})})
	case createUnavailable:
		return s.fault(ctx, a, localcloud.Fault{Kind: localcloud.FaultUnavailable, Delay: localcloud.Duration(time.Second)})
	case answerLost:
		return s.fault(ctx, a, localcloud.Fault{Kind: localcloud.FaultCreateAnswerLost, Delay: localcloud.Duration(a.pick % 3 * uint64(time.Second))})
	case listFails:
		return s.faultOfLists(ctx, a, localcloud.FaultListFails)
	case listIncomplete:
		return s.faultOfLists(ctx, a, localcloud.FaultListIncomplete)
	case quotaReached:
		return s.quota(ctx, a)
	case cloudThrottles:
		slower := settings
		slower.RateLimit = 2
		return s.set(ctx, a, slower)
	case cloudSlow:
		slower := settings
		slower.CreateTime, slower.BootTime, slower.ShutdownTime = localcloud.Duration(5*time.Second), localcloud.Duration(15*time.Second), localcloud.Duration(10*time.Second)
		return s.set(ctx, a, slower)
	case targetCut:
		return s.cut(ctx, a)
	case nodeDeleted:
		return s.eachMachine(ctx, a, runs, func(m *machinev1alpha1.Machine) error {
			return s.Cluster.Client.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Status.NodeRef.Name}})
		})
	case machineDelete:
		return s.eachMachine(ctx, a, stays, func(m *machinev1alpha1.Machine) error { return s.Client.Delete(ctx, m.DeepCopy()) })
	case replaceAsked:
		return s.eachMachine(ctx, a, runs, func(m *machinev1alpha1.Machine) error {
			return s.patch(ctx, m.DeepCopy(), fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, machinev1alpha1.AnnotationReplace))
		})
	case orphanTorn:
		a.count = 1
		return s.eachMachine(ctx, a, runs, func(m *machinev1alpha1.Machine) error { return s.tearOut(ctx, m) })
	case restartOne:
		return s.restart(ctx, choose(a.pick, components))
	case restartTwo:
		i := int(a.pick % uint64(len(components)))
		return s.restart(ctx, components[i], components[(i+1+int(a.other%uint64(len(components)-1)))%len(components)])
	default:
		return s.actOfUser(ctx, a)
	}
}

func (s *soak) actOfUser(ctx context.Context, a action) (string, error) {
	name := choose(a.pick, s.deployments)
	switch a.kind {
	case rollout:
		version := versions[0]
		s.judge(func(time.Time) {
			is := s.ledger.of(name).version
			version = choose(a.other, slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return v == is }))
		})
		return name + " to " + version, s.user(ctx, name, fmt.Sprintf(`{"spec":{"template":{"spec":{"version":%q}}}}`, version))
	case scale:
		most := s.share[name]
		replicas := most - int32(a.other%uint64(most/2+1))
		return fmt.Sprintf("%s to %d", name, replicas), s.user(ctx, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
	case pause:
		return s.userFor(ctx, a, name, `{"spec":{"paused":true}}`, `{"spec":{"paused":false}}`)
	case freeze:
		label := `{"metadata":{"labels":{%q:%s}}}`
		return s.userFor(ctx, a, name, fmt.Sprintf(label, machinev1alpha1.LabelFreeze, `"true"`), fmt.Sprintf(label, machinev1alpha1.LabelFreeze, "null"))
	}
	return "", fmt.Errorf("nobody knows how to do %q", a.kind)
}

// user changes a deployment.
func (s *soak) user(ctx context.Context, name, patch string) error {
	md := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
	if err := s.patch(ctx, md, patch); err != nil {
		return err
	}
	s.judge(func(now time.Time) { s.ledger.onDeployment(now, md) })
	return nil
}

func (s *soak) patch(ctx context.Context, o client.Object, patch string) error {
	return s.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// userFor changes a deployment, and reverts the change after a while.
func (s *soak) userFor(ctx context.Context, a action, name, do, undo string) (string, error) {
	s.forAWhile(ctx, a, func() error { return s.user(ctx, name, undo) })
	return fmt.Sprintf("%s for %s", name, a.lasts), s.user(ctx, name, do)
}

// forAWhile undoes an action after its duration.
func (s *soak) forAWhile(ctx context.Context, a action, undo func() error) {
	s.lasting.Go(func() {
		if !s.sleep(ctx, a.lasts) {
			return
		}
		for {
			err := undo()
			if err == nil {
				s.logf("no more: %s", a.kind)
				return
			}
			s.logf("cannot end %q: %v", a.kind, err)
			if !s.sleep(ctx, time.Second) {
				return
			}
		}
	})
}

// runs reports whether a Machine is Running with a Node, and is not being deleted.
func runs(m *machinev1alpha1.Machine) bool {
	return stays(m) && m.Status.Phase == machinev1alpha1.MachineRunning && m.Status.NodeRef != nil
}

func stays(m *machinev1alpha1.Machine) bool { return m.DeletionTimestamp == nil }

func hasVM(m *machinev1alpha1.Machine) bool { return stays(m) && m.Status.ProviderID != "" }

// eachMachine does something to the number of Machines that the action has.
func (s *soak) eachMachine(ctx context.Context, a action, fits func(*machinev1alpha1.Machine) bool, do func(*machinev1alpha1.Machine) error) (string, error) {
	var hit []string
	for i := range a.count {
		var m *machinev1alpha1.Machine
		s.judge(func(now time.Time) {
			of := s.ledger.candidates(fits)
			if len(of) > 0 {
				m = choose(a.pick+uint64(i)*a.other, of)
				s.ledger.strike(now, a.kind, m.Labels[machinev1alpha1.LabelDeployment], m.Name)
			}
		})
		if m == nil {
			break
		}
		if err := client.IgnoreNotFound(do(m)); err != nil {
			return "", err
		}
		hit = append(hit, m.Name)
	}
	return strings.Join(hit, ", "), nil
}

func (s *soak) strikeVMs(ctx context.Context, a action, k localcloud.FaultKind) (string, error) {
	return s.eachMachine(ctx, a, hasVM, func(m *machinev1alpha1.Machine) error {
		return s.atCloud(ctx, func() error {
			_, err := s.Cloud.CreateFault(ctx, localcloud.Fault{Kind: k, Match: localcloud.FaultMatch{Tags: map[string]string{
				machinev1alpha1.TagNamespace: s.Namespace, machinev1alpha1.TagMachine: m.Name,
			}}})
			return err
		})
	})
}

// atCloud retries while the cloud restarts.
func (s *soak) atCloud(ctx context.Context, do func() error) error {
	var err error
	for range 30 {
		if err = do(); err == nil || !s.sleep(ctx, time.Second) {
			return err
		}
	}
	return err
}

// fault of the next creations.
func (s *soak) fault(ctx context.Context, a action, f localcloud.Fault) (string, error) {
	f.Count, f.Match.Tags = a.count, map[string]string{machinev1alpha1.TagNamespace: s.Namespace}
	s.judge(func(now time.Time) { s.ledger.do(now, a.kind) })
	what := fmt.Sprintf("the next %d", a.count)
	if f.Code != "" {
		what += ", " + f.Code
	}
	if err := s.atCloud(ctx, func() error { _, err := s.Cloud.CreateFault(ctx, f); return err }); err != nil {
		return "", err
	}
	// Delete a Machine, so that there is a creation.
	gone, err := s.act(ctx, action{kind: machineDelete, pick: a.pick, other: a.other, count: 1})
	return what + " after " + gone + " is deleted", err
}

// faultOfLists affects the lists for the inventory.
func (s *soak) faultOfLists(ctx context.Context, a action, k localcloud.FaultKind) (string, error) {
	o := &machinev1alpha1.OrphanCollector{}
	if err := s.Client.Get(ctx, client.ObjectKey{Name: collector}, o); err != nil {
		return "", err
	}
	f := localcloud.Fault{Kind: k, Count: a.count, Match: localcloud.FaultMatch{Tags: map[string]string{machinev1alpha1.TagInstallation: o.Status.Installation}}}
	return fmt.Sprintf("the next %d", a.count), s.atCloud(ctx, func() error { _, err := s.Cloud.CreateFault(ctx, f); return err })
}

func (s *soak) quota(ctx context.Context, a action) (string, error) {
	vms, err := s.VMs(ctx)
	if err != nil || len(vms) == 0 {
		return "", nil //nolint:nilerr // The cloud may be restarting.
	}
	s.forAWhile(ctx, a, func() error { return s.setQuota(ctx, 0) })
	return fmt.Sprintf("%d VMs, for %s", len(vms), a.lasts), s.atCloud(ctx, func() error { return s.setQuota(ctx, len(vms)) })
}

func (s *soak) setQuota(ctx context.Context, n int) error {
	_, err := s.Cloud.SetQuota(ctx, localcloud.Quota{VMs: n})
	return err
}

func (s *soak) set(ctx context.Context, a action, to localcloud.Settings) (string, error) {
	s.judge(func(now time.Time) { s.ledger.do(now, a.kind) })
	put := func(to localcloud.Settings) error { _, err := s.Cloud.SetSettings(ctx, to); return err }
	s.forAWhile(ctx, a, func() error { return put(settings) })
	return fmt.Sprintf("for %s", a.lasts), s.atCloud(ctx, func() error { return put(to) })
}

// cut the target API server off, for longer than other temporary actions last.
func (s *soak) cut(ctx context.Context, a action) (string, error) {
	isCut := false
	s.judge(func(now time.Time) {
		if isCut = !s.ledger.cut.IsZero(); !isCut {
			s.ledger.do(now, a.kind)
			s.ledger.cut = now
		}
	})
	if isCut {
		return "", nil
	}
	a.lasts = shortestCut + time.Duration(a.other%uint64(longestCut-shortestCut)).Round(time.Second)
	s.proxy.Cut()
	s.forAWhile(ctx, a, func() error {
		s.judge(func(time.Time) { s.ledger.cut = time.Time{} })
		s.proxy.Mend()
		return nil
	})
	return fmt.Sprintf("for %s", a.lasts), nil
}

func (s *soak) restart(ctx context.Context, which ...string) (string, error) {
	k := restartOne
	if len(which) > 1 {
		k = restartTwo
	}
	s.judge(func(now time.Time) { s.ledger.do(now, k) })
	errs := make([]error, len(which))
	var all sync.WaitGroup
	for i, c := range which {
		all.Go(func() { errs[i] = s.Launcher(ctx, "restart", c) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return "", err
		}
	}
	return strings.Join(which, ", "), nil
}

// tearOut removes a Machine by removing the finalizers of its VM resource, so that the VM is
// orphaned.
func (s *soak) tearOut(ctx context.Context, m *machinev1alpha1.Machine) error {
	l := virtualMachines()
	if err := s.Client.List(ctx, l, client.InNamespace(s.Namespace), client.MatchingLabels{machinev1alpha1.LabelMachine: m.Name}); err != nil {
		return err
	}
	if len(l.Items) != 1 {
		return nil
	}
	vm := &l.Items[0]
	if err := s.patchJSON(ctx, vm, `[{"op":"add","path":"/metadata/finalizers/-","value":"example.org/stuck"}]`); err != nil {
		return err
	}
	if err := s.Client.Delete(ctx, m.DeepCopy()); err != nil {
		return err
	}
	s.lasting.Go(func() {
		for s.sleep(ctx, time.Second) {
			now := &machinev1alpha1.Machine{}
			if err := s.Client.Get(ctx, client.ObjectKeyFromObject(m), now); client.IgnoreNotFound(err) != nil {
				continue
			} else if err != nil {
				return
			}
			if d := now.Status.Deletion; d == nil || d.Stage != machinev1alpha1.DeletionDeletingVM {
				continue
			}
			if err := client.IgnoreNotFound(s.patch(ctx, vm.DeepCopy(), `{"metadata":{"finalizers":null}}`)); err == nil {
				s.logf("torn out: %s", m.Name)
				return
			}
		}
	})
	return nil
}

func (s *soak) patchJSON(ctx context.Context, o *unstructured.Unstructured, patch string) error {
	return s.Client.Patch(ctx, o, client.RawPatch(types.JSONPatchType, []byte(patch)))
}

// End all faults of the cloud.
func (s *soak) mend(ctx context.Context) error {
	if err := s.atCloud(ctx, func() error { return s.setQuota(ctx, 0) }); err != nil {
		return err
	}
	if err := s.atCloud(ctx, func() error { _, err := s.Cloud.SetSettings(ctx, settings); return err }); err != nil {
		return err
	}
	return s.atCloud(ctx, func() error {
		faults, err := s.Cloud.ListFaults(ctx)
		for _, f := range faults {
			if err == nil {
				err = s.Cloud.DeleteFault(ctx, f.ID)
			}
		}
		return err
	})
}
