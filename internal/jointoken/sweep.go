package jointoken

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/identity"
	"github.com/drover-dev/drover/internal/target"
)

// SetupSweeper adds a sweeper to the manager. It sweeps at the start, and then at the given interval. The
// cached reader lists Machines. Before a deletion, the live reader lists their metadata from the API server.
// Events are recorded at the configurations, which the client of the manager lists.
func SetupSweeper(mgr ctrl.Manager, every time.Duration, connect Connect, cached, live client.Reader, record event.Recorder, log logging.Logger) error {
	return mgr.Add(&sweeper{every: every, connect: connect, configs: mgr.GetClient(), cached: cached, live: live, record: record, log: log})
}

// A sweeper deletes objects in target clusters whose Machine no longer exists: tokens, which would expire, but
// are keys to the cluster, and Nodes that joined too late. It deletes an object only after two consecutive
// sweeps found it.
type sweeper struct {
	every        time.Duration
	connect      Connect
	configs      client.Reader
	cached, live client.Reader
	record       event.Recorder
	log          logging.Logger

	// seen are the UIDs of the tokens and Nodes that the last sweep found.
	seen map[types.UID]bool
}

// Start sweeps until the end of the context.
func (s *sweeper) Start(ctx context.Context) error {
	t := time.NewTicker(s.every)
	defer t.Stop()
	for {
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.log.Info("Cannot sweep join tokens", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// A pass is one sweep over all target clusters.
type pass struct {
	*sweeper
	// alive are the UIDs of Machines in the cache, confirmed those in the API server,
	// read when first needed. The last sweep found the token or Node already: if its
	// Machine exists, it was created before that, and this list has it.
	alive, confirmed map[types.UID]bool
	found            map[types.UID]bool
}

// sweep sweeps all target clusters once.
func (s *sweeper) sweep(ctx context.Context) error {
	configs, err := listConfigs(ctx, s.configs)
	if err != nil {
		return err
	}
	machines := &machinev1alpha1.MachineList{}
	if err := s.cached.List(ctx, machines, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	p := &pass{sweeper: s, alive: map[types.UID]bool{}, found: map[types.UID]bool{}}
	for i := range machines.Items {
		p.alive[machines.Items[i].GetUID()], p.alive[identity.UID(&machines.Items[i])] = true, true
	}
	for _, config := range configs {
		c, err := s.connect(ctx, config.ref)
		if err != nil {
			continue // A condition of the configuration reports it.
		}
		p.sweepTokens(ctx, c, config)
		p.sweepNodes(ctx, c, config)
	}
	s.seen = p.found
	return nil
}

// sweepTokens sweeps the tokens of one cluster.
func (p *pass) sweepTokens(ctx context.Context, c Cluster, config config) {
	tokens, err := c.Kube.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx, mintedThrough(c))
	if err != nil {
		return // A condition of the configuration reports it.
	}
	for i := range tokens.Items {
		t := &tokens.Items[i]
		if !isLeftOver(t, p.alive) || !p.isDue(t.GetUID()) {
			continue
		}
		if err := p.deleteToken(ctx, c, config, t); err != nil {
			p.found[t.GetUID()] = true
			p.log.Info("Cannot delete a bootstrap token whose Machine no longer exists", "error", err)
		}
	}
}

func (p *pass) deleteToken(ctx context.Context, c Cluster, config config, t *corev1.Secret) error {
	alive, err := p.confirm(ctx)
	if err != nil || !isLeftOver(t, alive) {
		return err
	}
	if err := c.deleteToken(ctx, t.GetName(), t.GetUID()); err != nil {
		return err
	}
	p.record.Event(config.Object, event.Normal(machinev1alpha1.EventTokenSwept, fmt.Sprintf("Deleted bootstrap token %s: its Machine no longer exists", t.Data[bootstrapapi.BootstrapTokenIDKey])))
	return nil
}

// isDue reports whether the last sweep found the object already. If not, it records the object for the next
// one.
func (p *pass) isDue(uid types.UID) bool {
	if p.seen[uid] {
		return true
	}
	p.found[uid] = true
	return false
}

// confirm returns the UIDs of the Machines in the API server.
func (p *pass) confirm(ctx context.Context) (map[types.UID]bool, error) {
	if p.confirmed != nil {
		return p.confirmed, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(machinev1alpha1.SchemeGroupVersion.WithKind(machinev1alpha1.MachineGroupVersionKind.Kind + "List"))
	if err := p.live.List(ctx, list); err != nil {
		return nil, err
	}
	p.confirmed = make(map[types.UID]bool, len(list.Items))
	for i := range list.Items {
		p.confirmed[list.Items[i].GetUID()] = true
	}
	return p.confirmed, nil
}

// isLeftOver reports whether a token was minted for a Machine that is not alive.
func isLeftOver(t *corev1.Secret, alive map[types.UID]bool) bool {
	uid := types.UID(t.GetLabels()[clusterv1alpha1.LabelJoinToken])
	return t.Type == bootstrapapi.SecretTypeBootstrapToken && uid != "" && !alive[uid]
}

// mintedThrough selects the tokens and Nodes of a configuration.
func mintedThrough(c Cluster) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: labels.Set{clusterv1alpha1.LabelConfig: string(c.ConfigUID)}.String()}
}

// A config is a ProviderConfig or ClusterProviderConfig.
type config struct {
	client.Object
	ref target.Ref
}

func listConfigs(ctx context.Context, reader client.Reader) ([]config, error) {
	var cluster clusterv1alpha1.ClusterProviderConfigList
	var namespaced clusterv1alpha1.ProviderConfigList
	for _, l := range []client.ObjectList{&cluster, &namespaced} {
		if err := reader.List(ctx, l); err != nil {
			return nil, err
		}
	}
	var out []config
	for i := range cluster.Items {
		c := &cluster.Items[i]
		out = append(out, config{Object: c, ref: target.ClusterRef(c.GetName())})
	}
	for i := range namespaced.Items {
		c := &namespaced.Items[i]
		out = append(out, config{Object: c, ref: target.NamespacedRef(c.GetNamespace(), c.GetName())})
	}
	return out, nil
}
