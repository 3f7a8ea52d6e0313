// Package provider is Drover's cloud provider for Karpenter: it carries out the decisions of the packages offer and machine.
package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/drover-dev/drover/karpenter/apis/v1alpha1"
	"github.com/drover-dev/drover/karpenter/internal/control"
	"github.com/drover-dev/drover/karpenter/internal/drover"
	"github.com/drover-dev/drover/karpenter/internal/machine"
	"github.com/drover-dev/drover/karpenter/internal/offer"
)

const (
	// pollEvery is the interval at which a creation looks at its Machine, in the cache.
	pollEvery = 250 * time.Millisecond

	// repairAfter is how long Karpenter's node repair tolerates an unhealthy Node: the default of Drover's spec.health.
	repairAfter = 10 * time.Minute
)

// Provider implements Karpenter's CloudProvider with Machines.
type Provider struct {
	// target is the cluster of the NodeClaims and Nodes, by a cache.
	target      client.Client
	control     *control.Cluster
	unavailable *offer.Unavailable
	// launchTimeout is how long a creation waits for its VM.
	launchTimeout time.Duration
}

var _ cloudprovider.CloudProvider = &Provider{}

// New returns the provider.
func New(target client.Client, c *control.Cluster, u *offer.Unavailable, launchTimeout time.Duration) *Provider {
	return &Provider{target: target, control: c, unavailable: u, launchTimeout: launchTimeout}
}

// Name of the provider.
func (p *Provider) Name() string { return "drover" }

// GetSupportedNodeClasses returns the kind of NodeClass.
func (p *Provider) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&v1alpha1.DroverNodeClass{}}
}

// RepairPolicies are the conditions that Drover considers as unhealthy by default. Drover does not replace a Machine that
// no MachineSet controls, so nothing else acts on them.
func (p *Provider) RepairPolicies() []cloudprovider.RepairPolicy {
	policy := func(t corev1.NodeConditionType, s corev1.ConditionStatus) cloudprovider.RepairPolicy {
		return cloudprovider.RepairPolicy{ConditionType: t, ConditionStatus: s, TolerationDuration: repairAfter}
	}
	return []cloudprovider.RepairPolicy{
		policy(corev1.NodeReady, corev1.ConditionFalse), policy(corev1.NodeReady, corev1.ConditionUnknown),
		policy("KernelDeadlock", corev1.ConditionTrue), policy("ReadonlyFilesystem", corev1.ConditionTrue),
		policy(corev1.NodeDiskPressure, corev1.ConditionTrue), policy(corev1.NodeNetworkUnavailable, corev1.ConditionTrue),
	}
}

// offerOf reads a DroverNodeClass and its current offer.
func (p *Provider) offerOf(ctx context.Context, name string) (*v1alpha1.DroverNodeClass, offer.Offer, error) {
	class := &v1alpha1.DroverNodeClass{}
	if err := p.target.Get(ctx, client.ObjectKey{Name: name}, class); err != nil {
		return nil, offer.Offer{}, fmt.Errorf("cannot read the DroverNodeClass %q: %w", name, err)
	}
	known, err := p.control.Known(ctx)
	if err != nil {
		return nil, offer.Offer{}, err
	}
	return class, offer.Of(class.Spec, known), nil
}

// GetInstanceTypes returns the offer of the NodeClass of a NodePool, without offerings whose price is invalid.
func (p *Provider) GetInstanceTypes(ctx context.Context, pool *karpenterv1.NodePool) ([]*cloudprovider.InstanceType, error) {
	_, o, err := p.offerOf(ctx, pool.Spec.Template.Spec.NodeClassRef.Name)
	if err != nil {
		return nil, err
	}
	return o.Types(p.unavailable.Is), nil
}

// Create makes the Machine of a NodeClaim, or finds it, and returns when its VM is known or will not be.
func (p *Provider) Create(ctx context.Context, claim *karpenterv1.NodeClaim) (*karpenterv1.NodeClaim, error) {
	class, o, err := p.offerOf(ctx, claim.Spec.NodeClassRef.Name)
	if apierrors.IsNotFound(err) {
		return nil, cloudprovider.NewNodeClassNotReadyError(err)
	}
	if err != nil {
		return nil, err
	}
	m, err := p.ensure(ctx, claim, class, o)
	if err != nil {
		return nil, err
	}
	if m, err = p.await(ctx, claim, m); err != nil {
		return nil, err
	}
	switch v := machine.Judge(m); v.Progress {
	case machine.Created:
		return machine.Claim(m, o), nil
	case machine.Exhausted:
		p.unavailable.Mark(machine.KeyOf(m))
		if err := p.control.Remove(ctx, m, false); err != nil {
			return nil, err
		}
		return nil, cloudprovider.NewInsufficientCapacityError(fmt.Errorf("%s %s: %s: %s", m.Spec.ClassRef.Kind, m.Spec.ClassRef.Name, v.Reason, v.Message))
	case machine.Refused, machine.Failed:
		return nil, cloudprovider.NewCreateError(fmt.Errorf("%s: %s", v.Reason, v.Message), v.Reason, v.Message)
	default:
		return nil, cloudprovider.NewCreateError(fmt.Errorf("the Machine %s has no VM yet", m.Name), "Creating", v.Message)
	}
}

// ensure returns the Machine of a NodeClaim. It is created if the API server has none, whatever the cache has.
func (p *Provider) ensure(ctx context.Context, claim *karpenterv1.NodeClaim, class *v1alpha1.DroverNodeClass, o offer.Offer) (*drover.Machine, error) {
	m := &drover.Machine{}
	key := client.ObjectKey{Namespace: p.control.Namespace, Name: machine.NameOf(claim.UID)}
	if err := p.control.Live.Get(ctx, key, m); !apierrors.IsNotFound(err) {
		return m, err
	}
	if ready := class.StatusConditions().Get(status.ConditionReady); ready.IsFalse() || !o.IsReady() {
		return nil, cloudprovider.NewNodeClassNotReadyError(errors.New(ready.Message))
	}
	fitting := o.Fitting(claim, p.unavailable.Is)
	if len(fitting) == 0 {
		return nil, cloudprovider.NewInsufficientCapacityError(errors.New("no class that meets the requirements of the NodeClaim is available"))
	}
	m = machine.New(p.control.Namespace, p.control.Target, claim, class.Spec, fitting[0])
	err := p.control.Client.Create(ctx, m)
	if apierrors.IsAlreadyExists(err) {
		err = p.control.Live.Get(ctx, key, m)
	}
	return m, err
}

// await returns the Machine when its creation is decided, or the launch took too long.
func (p *Provider) await(ctx context.Context, claim *karpenterv1.NodeClaim, m *drover.Machine) (*drover.Machine, error) {
	err := wait.PollUntilContextTimeout(ctx, pollEvery, p.launchTimeout, true, func(ctx context.Context) (bool, error) {
		now, err := p.control.Machine(ctx, claim.UID)
		switch {
		case err == nil && now.UID == m.UID:
			m = now
		case err != nil && !apierrors.IsNotFound(err):
			return false, err
		}
		if machine.Judge(m).Progress != machine.Creating {
			return true, nil
		}
		return false, p.isWanted(ctx, claim)
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return m, nil
	}
	return m, err
}

// isWanted ends the wait for a NodeClaim that is deleted meanwhile: Karpenter does nothing else with it until Create returns.
func (p *Provider) isWanted(ctx context.Context, claim *karpenterv1.NodeClaim) error {
	now := &karpenterv1.NodeClaim{}
	err := p.target.Get(ctx, client.ObjectKeyFromObject(claim), now)
	if apierrors.IsNotFound(err) || err == nil && (now.UID != claim.UID || now.DeletionTimestamp != nil) {
		return cloudprovider.NewNodeClaimNotFoundError(errors.New("it was deleted before it had a VM"))
	}
	return err
}

// Delete the Machine of a NodeClaim. Karpenter has drained its Node. Karpenter repeats the call until the answer is that the
// Machine does not exist. While Drover waits for Karpenter's finalizer on the Node, this is the answer too: see LetsNodeGo.
func (p *Provider) Delete(ctx context.Context, claim *karpenterv1.NodeClaim) error {
	m := &drover.Machine{}
	err := p.control.Live.Get(ctx, client.ObjectKey{Namespace: p.control.Namespace, Name: machine.NameOf(claim.UID)}, m)
	if apierrors.IsNotFound(err) {
		return cloudprovider.NewNodeClaimNotFoundError(err)
	}
	if err != nil {
		return err
	}
	if err := p.control.Remove(ctx, m, true); err != nil {
		return err
	}
	if !machine.LetsNodeGo(m) {
		return nil
	}
	held, err := p.isNodeHeld(ctx, m.Observed().ProviderID)
	if err != nil || !held {
		return err
	}
	return cloudprovider.NewNodeClaimNotFoundError(fmt.Errorf("the Machine %s needs its Node no longer", m.Name))
}

// isNodeHeld reports whether Karpenter's finalizer alone keeps the Node of a VM.
func (p *Provider) isNodeHeld(ctx context.Context, providerID string) (bool, error) {
	l := &corev1.NodeList{}
	if err := p.target.List(ctx, l, client.MatchingFields{"spec.providerID": providerID}); err != nil {
		return false, err
	}
	return slices.ContainsFunc(l.Items, func(n corev1.Node) bool {
		return n.DeletionTimestamp != nil && slices.Contains(n.Finalizers, karpenterv1.TerminationFinalizer)
	}), nil
}

// Get the NodeClaim of a VM.
func (p *Provider) Get(ctx context.Context, providerID string) (*karpenterv1.NodeClaim, error) {
	machines, err := p.control.Machines(ctx)
	if err != nil {
		return nil, err
	}
	for i := range machines {
		if m := &machines[i]; isThere(m) && m.Observed().ProviderID == providerID {
			o, err := p.everything(ctx)
			if err != nil {
				return nil, err
			}
			return machine.Claim(m, o), nil
		}
	}
	return nil, cloudprovider.NewNodeClaimNotFoundError(fmt.Errorf("no Machine has the providerID %q", providerID))
}

// List the NodeClaims of all VMs but those that are known not to exist.
func (p *Provider) List(ctx context.Context) ([]*karpenterv1.NodeClaim, error) {
	machines, err := p.control.Machines(ctx)
	if err != nil {
		return nil, err
	}
	o, err := p.everything(ctx)
	if err != nil {
		return nil, err
	}
	var out []*karpenterv1.NodeClaim
	for i := range machines {
		if m := &machines[i]; isThere(m) {
			out = append(out, machine.Claim(m, o))
		}
	}
	return out, nil
}

// isThere reports whether a Machine has a VM, as far as is known.
func isThere(m *drover.Machine) bool { return m.Observed().ProviderID != "" && !machine.IsGone(m) }

// everything that is offered by any DroverNodeClass, for the capacity of Machines.
func (p *Provider) everything(ctx context.Context) (offer.Offer, error) {
	l := &v1alpha1.DroverNodeClassList{}
	if err := p.target.List(ctx, l); err != nil {
		return offer.Offer{}, err
	}
	known, err := p.control.Known(ctx)
	if err != nil {
		return offer.Offer{}, err
	}
	all := offer.Offer{}
	for _, c := range l.Items {
		all.Offerings = append(all.Offerings, offer.Of(c.Spec, known).Offerings...)
	}
	return all, nil
}

// IsDrifted compares the Machine of a NodeClaim with its NodeClass.
func (p *Provider) IsDrifted(ctx context.Context, claim *karpenterv1.NodeClaim) (cloudprovider.DriftReason, error) {
	m, err := p.control.Machine(ctx, claim.UID)
	if apierrors.IsNotFound(err) {
		return "", cloudprovider.NewNodeClaimNotFoundError(err)
	}
	if err != nil {
		return "", err
	}
	class, o, err := p.offerOf(ctx, claim.Spec.NodeClassRef.Name)
	if err != nil {
		return "", client.IgnoreNotFound(err)
	}
	return machine.Drift(m, class.Spec, o), nil
}
