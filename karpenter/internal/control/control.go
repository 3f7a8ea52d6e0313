// Package control reads and writes the control cluster: the Machines of one namespace, the classes and Compositions that they
// are made from, and the configurations of the clusters that they join.
package control

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/drover-dev/drover/karpenter/internal/drover"
	"github.com/drover-dev/drover/karpenter/internal/machine"
	"github.com/drover-dev/drover/karpenter/internal/offer"
)

// A Cluster is the control cluster.
type Cluster struct {
	// Client reads from a cache.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Namespace of the Machines.
	Namespace string
	// Target identifies the target cluster on Machines.
	Target string

	known memo
}

// New returns the connection to the control cluster. Its cache starts with the manager that it is added to.
func New(config *rest.Config, namespace, target string) (*Cluster, cluster.Cluster, error) {
	scheme := runtime.NewScheme()
	if err := drover.AddToScheme(scheme); err != nil {
		return nil, nil, err
	}
	here := map[string]cache.Config{namespace: {}}
	c, err := cluster.New(config, func(o *cluster.Options) {
		o.Scheme = scheme
		// An object is read far more often than it changes.
		o.Cache.DefaultTransform = cache.TransformStripManagedFields()
		o.Cache.ByObject = map[client.Object]cache.ByObject{&drover.Machine{}: {Namespaces: here}, &drover.MachineClass{}: {Namespaces: here}, &drover.ProviderConfig{}: {Namespaces: here}}
	})
	if err != nil {
		return nil, nil, fmt.Errorf("cannot connect to the control cluster: %w", err)
	}
	return &Cluster{Client: c.GetClient(), Live: c.GetAPIReader(), Namespace: namespace, Target: target}, c, nil
}

// Machine of a NodeClaim, from the cache.
func (c *Cluster) Machine(ctx context.Context, claim types.UID) (*drover.Machine, error) {
	m := &drover.Machine{}
	return m, c.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: machine.NameOf(claim)}, m)
}

// Machines of NodeClaims of the target cluster, from the cache.
func (c *Cluster) Machines(ctx context.Context) ([]drover.Machine, error) {
	l := &drover.MachineList{}
	err := c.Client.List(ctx, l, client.InNamespace(c.Namespace), client.MatchingLabels{drover.LabelCluster: c.Target})
	return l.Items, err
}

// Remove a Machine: its drain waits for Karpenter no longer. With drained, Karpenter has drained its Node, and
// Drover does not do it again.
func (c *Cluster) Remove(ctx context.Context, m *drover.Machine, drained bool) error {
	annotations := map[string]any{drover.HookDrain: nil}
	if drained {
		annotations[drover.AnnotationSkipDrain] = "true"
	}
	if m.Annotations[drover.HookDrain] != "" || drained && m.Annotations[drover.AnnotationSkipDrain] != "true" {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": m.UID, "annotations": annotations}})
		if err != nil {
			return err
		}
		if err := c.Client.Patch(ctx, m.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	if m.DeletionTimestamp != nil {
		return nil
	}
	return client.IgnoreNotFound(c.Client.Delete(ctx, m, client.Preconditions{UID: &m.UID}))
}

// Known returns the objects of the control cluster that the offer of a DroverNodeClass is made of.
func (c *Cluster) Known(ctx context.Context) (offer.Known, error) {
	classes, err := c.classes(ctx)
	if err != nil {
		return offer.Known{}, err
	}
	clusters, err := c.clusters(ctx)
	return offer.Known{Classes: classes, Clusters: clusters}, err
}

// clusters returns the ProviderConfigs in the namespace of the Machines, and all ClusterProviderConfigs.
func (c *Cluster) clusters(ctx context.Context) ([]offer.Cluster, error) {
	own, shared := &drover.ProviderConfigList{}, &drover.ClusterProviderConfigList{}
	if err := c.Client.List(ctx, own, client.InNamespace(c.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list ProviderConfigs: %w", err)
	}
	if err := c.Client.List(ctx, shared, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list ClusterProviderConfigs: %w", err)
	}
	var out []offer.Cluster
	for i := range own.Items {
		out = append(out, offer.Cluster{Kind: drover.KindProviderConfig, Name: own.Items[i].Name})
	}
	for i := range shared.Items {
		m := &shared.Items[i]
		out = append(out, offer.Cluster{Kind: drover.KindClusterProviderConfig, Name: m.Name, Refused: c.refused(m.Spec.AllowedNamespaces)})
	}
	return out, nil
}

// refused returns why an object does not allow the namespace of the Machines, "" if it does.
func (c *Cluster) refused(allowed []string) string {
	if slices.ContainsFunc(allowed, func(pattern string) bool { return matches(pattern, c.Namespace) }) {
		return ""
	}
	return fmt.Sprintf("its spec.allowedNamespaces has no pattern for the namespace %q: add it there", c.Namespace)
}

// classes returns all MachineClasses in the namespace of the Machines, and all ClusterMachineClasses.
func (c *Cluster) classes(ctx context.Context) ([]offer.Class, error) {
	own, shared, compositions := &drover.MachineClassList{}, &drover.ClusterMachineClassList{}, &drover.CompositionList{}
	// The objects of the cache itself: they are only read.
	if err := c.Client.List(ctx, own, client.InNamespace(c.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list MachineClasses: %w", err)
	}
	if err := c.Client.List(ctx, shared, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list ClusterMachineClasses: %w", err)
	}
	if err := c.Client.List(ctx, compositions, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list Compositions: %w", err)
	}
	derive := c.known.expressions(compositions.Items)
	var out []offer.Class
	for i := range own.Items {
		m := &own.Items[i]
		out = append(out, c.known.class(drover.KindMachineClass, m, m.Spec, derive))
	}
	for i := range shared.Items {
		m := &shared.Items[i]
		class := c.known.class(drover.KindClusterMachineClass, m, m.Spec, derive)
		if refused := c.refused(m.Spec.AllowedNamespaces); refused != "" {
			class.Refused = refused
		}
		out = append(out, class)
	}
	return out, nil
}

// failureDomains returns the names in forProvider.failureDomains, which some clouds have.
func failureDomains(spec drover.MachineClassSpec) []string {
	if spec.ForProvider == nil {
		return nil
	}
	in := struct {
		FailureDomains []struct {
			Name string `json:"name"`
		} `json:"failureDomains"`
	}{}
	if err := json.Unmarshal(spec.ForProvider.Raw, &in); err != nil {
		return nil // It means something else at this cloud.
	}
	var out []string
	for _, d := range in.FailureDomains {
		if d.Name != "" {
			out = append(out, d.Name)
		}
	}
	return out
}

// matches reports whether a pattern, in which each * stands for any number of characters, matches a namespace.
func matches(pattern, namespace string) bool {
	re, err := regexp.Compile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$")
	return err == nil && re.MatchString(namespace)
}
