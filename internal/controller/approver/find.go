package approver

import (
	"cmp"
	"context"
	"fmt"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/target"
)

// Indexes of WorkerNodes by configuration and name, and of JoinTokens by configuration
// and the ID of their token.
const (
	byName  = "drover.name"
	byToken = "drover.token"
)

func index(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &v1alpha1.WorkerNode{}, byName, nameOf); err != nil {
		return err
	}
	return indexer.IndexField(ctx, &v1alpha1.JoinToken{}, byToken, tokenOf)
}

func nameOf(obj client.Object) []string {
	wn, ok := obj.(*v1alpha1.WorkerNode)
	if !ok {
		return nil
	}
	return []string{key(target.RefOf(wn), wn.GetName())}
}

func tokenOf(obj client.Object) []string {
	jt, ok := obj.(*v1alpha1.JoinToken)
	if !ok {
		return nil
	}
	return []string{key(target.RefOf(jt), cmp.Or(xpmeta.GetExternalName(jt), names.TokenID(jt.GetUID())))}
}

func key(ref target.Ref, what string) string { return ref.String() + " " + what }

// A found Machine, and the object that tells of it.
type found struct {
	*machine
	object client.Object
}

// node finds the Machine whose Node may have a name. A WorkerNode is called as the
// Node that its VM was told to become, which has part of the Machine's UID in it.
func node(ctx context.Context, reader client.Reader, ref target.Ref, name string) (found, error) {
	if name == "" {
		return found{}, nil
	}
	list := &v1alpha1.WorkerNodeList{}
	if err := reader.List(ctx, list, client.MatchingFields{byName: key(ref, name)}); err != nil {
		return found{}, err
	}
	switch len(list.Items) {
	case 0:
		return found{}, nil
	case 1:
		return foundNode(&list.Items[0]), nil
	}
	return found{}, fmt.Errorf("%d WorkerNodes of %s have the name %s: no certificate is approved for it", len(list.Items), ref, name)
}

func foundNode(wn *v1alpha1.WorkerNode) found {
	return found{object: wn, machine: &machine{
		node: wn.GetName(), joined: wn.Status.AtProvider.NodeName, addresses: wn.Spec.ForProvider.Addresses,
	}}
}

// token finds the Machine that a bootstrap token was made for. A JoinToken that was
// made for something else is its maker's business.
func token(ctx context.Context, reader client.Reader, ref target.Ref, id string) (found, error) {
	if id == "" {
		return found{}, nil
	}
	list := &v1alpha1.JoinTokenList{}
	if err := reader.List(ctx, list, client.MatchingFields{byToken: key(ref, id)}); err != nil {
		return found{}, err
	}
	for i := range list.Items {
		jt := &list.Items[i]
		if !ofMachine(jt) {
			continue
		}
		f := found{object: jt, machine: &machine{node: jt.GetName()}}
		wn := &v1alpha1.WorkerNode{}
		err := reader.Get(ctx, types.NamespacedName{Namespace: jt.GetNamespace(), Name: jt.GetName()}, wn)
		if err == nil {
			f.joined, f.addresses = wn.Status.AtProvider.NodeName, wn.Spec.ForProvider.Addresses
		}
		return f, client.IgnoreNotFound(err)
	}
	return found{}, nil
}

func ofMachine(jt *v1alpha1.JoinToken) bool {
	for _, o := range jt.GetOwnerReferences() {
		if o.Kind == machinev1alpha1.MachineGroupVersionKind.Kind {
			return true
		}
	}
	return false
}
