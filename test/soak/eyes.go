package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
)

// poll is the interval of polling VMs. It is much shorter than a shutdown.
const poll = 500 * time.Millisecond

// watch passes all changes to the ledger until the context ends.
func (s *soak) watch(ctx context.Context) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", s.plane.Kubeconfig)
	if err != nil {
		return err
	}
	c, err := cache.New(cfg, cache.Options{Scheme: s.Client.Scheme(), DefaultNamespaces: map[string]cache.Config{s.Namespace: {}}})
	if err != nil {
		return err
	}
	for _, err := range []error{
		see(ctx, s, c, &machinev1alpha1.MachineDeployment{}, s.ledger.onDeployment, nil),
		see(ctx, s, c, &machinev1alpha1.MachineSet{}, s.ledger.onSet, s.ledger.onSetGone),
		see(ctx, s, c, &machinev1alpha1.Machine{}, s.ledger.onMachine, s.ledger.onGone),
	} {
		if err != nil {
			return err
		}
	}
	go func() { _ = c.Start(ctx) }()
	if !c.WaitForCacheSync(ctx) {
		return ctx.Err()
	}
	go s.watchVMs(ctx)
	return nil
}

// see every version of the objects of a kind, in order.
func see[T client.Object](ctx context.Context, s *soak, c cache.Cache, of T, is, gone func(time.Time, T)) error {
	informer, err := c.GetInformer(ctx, of)
	if err != nil {
		return err
	}
	observe := func(o any, do func(time.Time, T)) {
		if t, ok := o.(T); ok && do != nil {
			s.judge(func(now time.Time) { do(now, t) })
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { observe(o, is) },
		UpdateFunc: func(_, o any) { observe(o, is) },
		DeleteFunc: func(o any) {
			if unknown, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			observe(o, gone)
		},
	})
	return err
}

// Pass facts to the ledger, and add newly broken guarantees to the story.
func (s *soak) judge(observe func(now time.Time)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.ledger.broken)
	observe(time.Now())
	for _, b := range s.ledger.broken[before:] {
		s.say("BROKEN: %s", b)
	}
}

// watchVMs records all VMs, and checks each VM whose deletion starts.
func (s *soak) watchVMs(ctx context.Context) {
	there := map[string]localcloud.VM{}
	for s.sleep(ctx, poll) {
		vms, err := s.VMs(ctx)
		if err != nil {
			continue // The cloud may be restarting, or have a fault.
		}
		now := map[string]localcloud.VM{}
		for _, vm := range vms {
			now[vm.ID] = vm
			s.judge(func(time.Time) { s.ledger.onVM(vm.Tags[machinev1alpha1.TagMachineUID], vm.ID) })
			if was, ok := there[vm.ID]; ok && was.State != vm.State && vm.State == localcloud.StateTerminating {
				s.drained(ctx, vm)
			}
		}
		there = now
	}
}

// drained checks that the Node of a VM was drained and deleted before the deletion of the VM
// started.
func (s *soak) drained(ctx context.Context, vm localcloud.VM) {
	name := vm.Tags[machinev1alpha1.TagMachine]
	m := &machinev1alpha1.Machine{}
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, m); err != nil || string(m.UID) != vm.Tags[machinev1alpha1.TagMachineUID] {
		return // The VM is an orphan. Orphans are not drained.
	}
	var struck, unwell bool
	s.judge(func(time.Time) {
		if e := s.ledger.of(m.Labels[machinev1alpha1.LabelDeployment]).machines[name]; e != nil {
			struck, unwell = len(e.struck) > 0 && !e.struck[machineDelete] && !e.struck[replaceAsked], e.unwell
		}
		s.ledger.counts["drains looked at"]++
	})
	l := &corev1.NodeList{}
	if err := s.Cluster.Client.List(ctx, l, client.MatchingLabels{clusterv1alpha1.LabelJoinToken: string(m.UID)}); err != nil {
		return
	}
	for _, n := range l.Items {
		s.judge(func(time.Time) {
			s.ledger.breaks("the VM %s of Machine %s is deleted, and its Node %s is still there", vm.ID, name, n.Name)
		})
	}
	// A drain does not wait for the pods of a silent kubelet.
	if m.Status.NodeRef == nil || struck || unwell {
		return
	}
	pods := &corev1.PodList{}
	if err := s.Cluster.Client.List(ctx, pods, client.InNamespace(s.Namespace)); err != nil {
		return
	}
	var left []string
	for _, p := range pods.Items {
		if p.Spec.NodeName == m.Status.NodeRef.Name && p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning {
			left = append(left, p.Name)
		}
	}
	if len(left) > 0 {
		s.judge(func(time.Time) {
			s.ledger.breaks("the VM %s of Machine %s is deleted, and the pods %v run on its Node %s", vm.ID, name, left, m.Status.NodeRef.Name)
		})
	}
}

// unwell returns how the fleet differs from its spec, "" if it does not.
func (s *soak) unwell(ctx context.Context) string {
	for _, d := range s.deployments {
		if said := s.Unsettled(ctx, d); said != "" {
			return said
		}
	}
	machines, err := s.Machines(ctx)
	if err != nil {
		return err.Error()
	}
	ofUID, ofID := map[string]bool{}, map[string]bool{}
	for _, m := range machines {
		ofUID[string(m.UID)], ofID[m.Status.ProviderID] = true, true
	}
	var wrong []string
	want := func(what string, n int) {
		if n != len(machines) {
			wrong = append(wrong, fmt.Sprintf("there are %d %s", n, what))
		}
	}
	vms, err := s.Cloud.ListVMs(ctx, localcloud.ListVMsOptions{})
	if err != nil {
		return err.Error()
	}
	want("VMs", len(vms))
	for _, vm := range vms {
		if !ofUID[vm.Tags[machinev1alpha1.TagMachineUID]] {
			wrong = append(wrong, fmt.Sprintf("the VM %s (%s) is that of no Machine: it was that of %s", vm.ID, vm.State, vm.Tags[machinev1alpha1.TagMachine]))
		}
	}
	nodes := &corev1.NodeList{}
	if err := s.Cluster.Client.List(ctx, nodes); err != nil {
		return err.Error()
	}
	want("Nodes", len(nodes.Items))
	for _, n := range nodes.Items {
		if !ofID[n.Spec.ProviderID] {
			wrong = append(wrong, fmt.Sprintf("the Node %s with the providerID %s is that of no Machine: it says %s", n.Name, n.Spec.ProviderID, n.Annotations[machinev1alpha1.AnnotationMachine]))
		}
	}
	vmResources := virtualMachines()
	if err := s.Client.List(ctx, vmResources, client.InNamespace(s.Namespace)); err != nil {
		return err.Error()
	}
	want("VirtualMachines", count(vmResources))
	left, err := s.BootstrapTokens(ctx)
	if err != nil {
		return err.Error()
	}
	for _, t := range left {
		wrong = append(wrong, "the bootstrap token "+t+" is left")
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Sprintf("of %d Machines %s", len(machines), strings.Join(wrong, ", "))
	}
	return ""
}
