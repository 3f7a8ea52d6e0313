package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/offer"
)

func (a *app) offer() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "offer",
		Short: "Show the classes, failure domains, versions and limits that NodePools of the namespace may select",
		Long: "Show what NodePools of the namespace may select: the classes with their sizes and failure domains, the versions of the kubelet and the limits, as the Compositions of NodePools offer them. " +
			"Classes that the namespace may not use are left out.\n\nCompositions have no namespace. A user that may not read them sees the offer in the status of the NodePools of the namespace, without labels and taints. In a namespace without NodePools the user needs the ClusterRole drover:offer, by a ClusterRoleBinding.",
		Example: "  kubectl drover offer -n team-a\n\n  # For a script\n  kubectl drover offer -n team-a -o json",
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			ns, err := a.namespace()
			if err != nil {
				return err
			}
			all, err := offers(cmd.Context(), c, ns)
			if apierrors.IsForbidden(err) {
				all, err = offersInStatus(cmd.Context(), c, ns, err)
			}
			if err != nil {
				return err
			}
			return o.write(a.Out, all, func() string { return a.screen(o.format == "wide").Offers(all) })
		},
	}
	o.add(cmd)
	return cmd
}

// offers of all Compositions of NodePools to a namespace.
func offers(ctx context.Context, c client.Client, namespace string) ([]offer.Offer, error) {
	compositions, err := poolCompositions(ctx, c)
	if err != nil {
		return nil, err
	}
	out := []offer.Offer{}
	for i := range compositions {
		pool, err := offerIn(&compositions[i])
		if err != nil {
			return nil, err
		}
		specs := map[string]offer.Spec{}
		for _, class := range pool.Classes {
			spec, exists, err := specOf(ctx, c, namespace, class.ClassRef)
			if err != nil {
				return nil, err
			}
			if exists {
				specs[class.ClassRef.Key()] = spec
			}
		}
		out = append(out, offer.Of(compositions[i].GetName(), namespace, pool, specs))
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no Composition of NodePools: the platform offers none")
	}
	return out, nil
}

// offersInStatus returns the offers that the NodePools of a namespace report. If there are none, it returns the error of the
// user's rights.
func offersInStatus(ctx context.Context, c client.Client, namespace string, denied error) ([]offer.Offer, error) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(machinev1alpha1.SchemeGroupVersion.WithKind(machinev1alpha1.NodePoolGroupVersionKind.Kind + "List"))
	if err := c.List(ctx, l, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	out, seen := []offer.Offer{}, map[string]bool{}
	for _, o := range l.Items {
		pool := &machinev1alpha1.NodePool{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, pool); err != nil || pool.Status.Offer == nil {
			continue // An object that does not decode has no status that counts.
		}
		composition, _, _ := unstructured.NestedString(o.Object, "spec", "crossplane", "compositionRef", "name")
		if !seen[composition] {
			seen[composition] = true
			out = append(out, offer.FromStatus(composition, *pool.Status.Offer))
		}
	}
	if len(out) == 0 {
		return nil, denied
	}
	slices.SortFunc(out, func(a, b offer.Offer) int { return cmp.Compare(a.Composition, b.Composition) })
	return out, nil
}

// poolCompositions returns the Compositions of NodePools.
func poolCompositions(ctx context.Context, c client.Client) ([]unstructured.Unstructured, error) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(crossplane.WithKind("CompositionList"))
	if err := c.List(ctx, l); err != nil {
		return nil, mayNotRead(err)
	}
	var found []unstructured.Unstructured
	for _, o := range l.Items {
		if kind, _, _ := unstructured.NestedString(o.Object, "spec", "compositeTypeRef", "kind"); kind == machinev1alpha1.NodePoolGroupVersionKind.Kind {
			found = append(found, o)
		}
	}
	return found, nil
}

// mayNotRead adds the cure to the error of a user that may not read Compositions.
func mayNotRead(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%w; Compositions have no namespace: let a platform operator bind the ClusterRole drover:offer to you or your group, by kubectl create clusterrolebinding drover-offer --clusterrole=drover:offer --group=GROUP", err)
}

// offerIn returns the offer of a Composition, or of a CompositionRevision: the input of its step Pool.
func offerIn(pipeline *unstructured.Unstructured) (fn.Pool, error) {
	offer := fn.Pool{}
	steps, _, _ := unstructured.NestedSlice(pipeline.Object, "spec", "pipeline")
	for _, s := range steps {
		step, _ := s.(map[string]any)
		input, _ := step["input"].(map[string]any)
		if input["kind"] == "Pool" && input["apiVersion"] == inputVersion {
			return offer, runtime.DefaultUnstructuredConverter.FromUnstructured(input, &offer)
		}
	}
	return offer, fmt.Errorf("%s %q has no step with an input of the kind Pool of %s", pipeline.GetKind(), pipeline.GetName(), inputVersion)
}

// specOf the class that a reference of an offer names. It is false if the class does not exist.
func specOf(ctx context.Context, c client.Client, namespace string, ref machinev1alpha1.ClassReference) (offer.Spec, bool, error) {
	if !ref.IsCluster() {
		class := &machinev1alpha1.MachineClass{}
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, class)
		return offer.Spec{MachineClassSpec: class.Spec}, err == nil, client.IgnoreNotFound(err)
	}
	class := &machinev1alpha1.ClusterMachineClass{}
	err := c.Get(ctx, client.ObjectKey{Name: ref.Name}, class)
	if err != nil {
		return offer.Spec{}, false, mayNotRead(client.IgnoreNotFound(err))
	}
	return offer.OfCluster(class), true, nil
}
