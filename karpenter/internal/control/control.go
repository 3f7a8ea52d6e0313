// Package control reads and writes the control cluster: the Machines of one namespace, and the classes and Compositions that
// they are made from.
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

	"github.com/drover-dev/drover/karpenter/internal/capacity"
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
		o.Cache.ByObject = map[client.Object]cache.ByObject{&drover.Machine{}: {Namespaces: here}, &drover.MachineClass{}: {Namespaces: here}}
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

// Classes returns all MachineClasses in the namespace of the Machines, and all ClusterMachineClasses.
func (c *Cluster) Classes(ctx context.Context) ([]offer.Class, error) {
	own, shared, compositions := &drover.MachineClassList{}, &drover.ClusterMachineClassList{}, &drover.CompositionList{}
	if err := c.Client.List(ctx, own, client.InNamespace(c.Namespace)); err != nil {
		return nil, fmt.Errorf("cannot list MachineClasses: %w", err)
	}
	if err := c.Client.List(ctx, shared); err != nil {
		return nil, fmt.Errorf("cannot list ClusterMachineClasses: %w", err)
	}
	if err := c.Client.List(ctx, compositions); err != nil {
		return nil, fmt.Errorf("cannot list Compositions: %w", err)
	}
	derive := expressions(compositions.Items)
	var out []offer.Class
	for _, m := range own.Items {
		out = append(out, newClass(drover.KindMachineClass, m.Name, m.Labels, m.Spec, derive))
	}
	for _, m := range shared.Items {
		class := newClass(drover.KindClusterMachineClass, m.Name, m.Labels, m.Spec, derive)
		if !slices.ContainsFunc(m.Spec.AllowedNamespaces, func(pattern string) bool { return matches(pattern, c.Namespace) }) {
			class.Refused = fmt.Sprintf("its spec.allowedNamespaces has no pattern for the namespace %q: add it there", c.Namespace)
		}
		out = append(out, class)
	}
	return out, nil
}

// expressions by provider. A provider with several Compositions has that of the first one, as its Machines would get.
func expressions(compositions []drover.Composition) map[string]capacity.Expression {
	out := map[string]capacity.Expression{}
	slices.SortFunc(compositions, func(a, b drover.Composition) int { return strings.Compare(a.Name, b.Name) })
	for i := range compositions {
		composition := &compositions[i]
		provider := composition.Labels["provider"]
		if _, ok := out[provider]; !ok && composition.Spec.CompositeTypeRef.Kind == "Machine" {
			if e := capacity.ExpressionOf(composition); e != "" {
				out[provider] = e
			}
		}
	}
	return out
}

func newClass(kind, name string, labels map[string]string, spec drover.MachineClassSpec, derive map[string]capacity.Expression) offer.Class {
	class := offer.Class{Kind: kind, Name: name, Labels: labels, FailureDomains: failureDomains(spec)}
	if len(spec.InstanceTypes) > 0 {
		class.Refused = "its spec.instanceTypes lists several instance types, and Karpenter must know which one a Node gets: create a class for each, and name those here"
	}
	var err error
	if class.Node, err = capacity.Of(spec, derive[spec.Provider]); err != nil {
		class.NotDerived = err.Error()
	}
	return class
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
