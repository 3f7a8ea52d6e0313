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
	"k8s.io/client-go/kubernetes"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

// Reasons of events.
const (
	reasonSwept     event.Reason = "TokenSwept"
	reasonNodeSwept event.Reason = "NodeSwept"
)

// A sweeper deletes what is left in target clusters although its JoinToken is gone:
// tokens, such as those of a cluster that could not be reached meanwhile, which would die
// by themselves, but are keys to the cluster; and Nodes that joined too late.
type sweeper struct {
	connect func(context.Context, target.Ref) (sweepable, error)
	// cached reads configurations, JoinTokens and WorkerNodes, live the last two once more
	// before anything is deleted.
	cached, live client.Reader
	record       event.Recorder
	log          logging.Logger
	every        time.Duration

	// seen are the tokens and Nodes without JoinToken of the sweep before.
	seen map[types.UID]bool
}

// sweepable is what is needed of a target.Conn.
type sweepable struct {
	kube     kubernetes.Interface
	classify func(error) error
	// config is the UID of the configuration.
	config types.UID
}

// Start sweeps until the end of the context.
func (s *sweeper) Start(ctx context.Context) error {
	for t := time.NewTicker(s.every); ; {
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

// sweep all target clusters once.
func (s *sweeper) sweep(ctx context.Context) error {
	configs, err := s.configs(ctx)
	if err != nil {
		return err
	}
	by, err := awaitedBy(ctx, s.cached)
	if err != nil {
		return err
	}
	seen := map[types.UID]bool{}
	for _, config := range configs {
		c, err := s.connect(ctx, config.ref)
		if err != nil {
			continue // The configuration tells of it.
		}
		tokens, err := c.kube.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
			LabelSelector: labels.Set{v1alpha1.LabelConfig: string(c.config)}.String(),
		})
		if err != nil {
			continue
		}
		for _, t := range leftOver(tokens.Items, by.tokens) {
			if !s.seen[t.GetUID()] {
				seen[t.GetUID()] = true
				continue
			}
			if err := s.delete(ctx, c, config, t); err != nil {
				seen[t.GetUID()] = true
				s.log.Info("Cannot delete a join token that is left over", "error", err)
			}
		}
		s.sweepNodes(ctx, c, config, by, seen)
	}
	s.seen = seen
	return nil
}

func (s *sweeper) delete(ctx context.Context, c sweepable, config config, t corev1.Secret) error {
	alive, err := joinTokens(ctx, s.live)
	if err != nil || len(leftOver([]corev1.Secret{t}, alive)) == 0 {
		return err
	}
	err = c.kube.CoreV1().Secrets(t.GetNamespace()).Delete(ctx, t.GetName(), metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(t.GetUID()))})
	if client.IgnoreNotFound(err) != nil {
		return c.classify(err)
	}
	s.record.Event(config.Object, event.Normal(reasonSwept, fmt.Sprintf("Deleted the token %s, whose JoinToken is gone", t.Data[bootstrapapi.BootstrapTokenIDKey])))
	return nil
}

// leftOver are the tokens that a JoinToken made that is not alive.
func leftOver(tokens []corev1.Secret, alive map[types.UID]bool) []corev1.Secret {
	var out []corev1.Secret
	for _, t := range tokens {
		uid := t.GetLabels()[v1alpha1.LabelJoinToken]
		if t.Type == bootstrapapi.SecretTypeBootstrapToken && uid != "" && !alive[types.UID(uid)] {
			out = append(out, t)
		}
	}
	return out
}

func joinTokens(ctx context.Context, reader client.Reader) (map[types.UID]bool, error) {
	list := &v1alpha1.JoinTokenList{}
	if err := reader.List(ctx, list); err != nil {
		return nil, err
	}
	out := make(map[types.UID]bool, len(list.Items))
	for i := range list.Items {
		out[list.Items[i].GetUID()] = true
	}
	return out, nil
}

// A config is a ProviderConfig or ClusterProviderConfig.
type config struct {
	client.Object
	ref target.Ref
}

func (s *sweeper) configs(ctx context.Context) ([]config, error) {
	var cluster v1alpha1.ClusterProviderConfigList
	var namespaced v1alpha1.ProviderConfigList
	for _, l := range []client.ObjectList{&cluster, &namespaced} {
		if err := s.cached.List(ctx, l); err != nil {
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
