package clusterapi

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
)

// keepCluster returns the Cluster of the VMs in a namespace. It creates the Cluster, makes it the owner of the
// InfraCluster, and reports in its status that the InfraCluster is provisioned, as Cluster API's own controller does it.
// Without an InfraCluster, the Cluster is provisioned: it is the target cluster, which exists. A shared Cluster is not written:
// Cluster API's own controllers do all this.
func (a *account) keepCluster(ctx context.Context, c contract, namespace string) (*unstructured.Unstructured, error) {
	var infra *unstructured.Unstructured
	var k kind
	if a.spec.InfraCluster != nil {
		var err error
		if infra, k, err = a.infraCluster(ctx, *a.spec.InfraCluster, namespace); err != nil {
			return nil, err
		}
	}
	cluster, err := a.cluster(ctx, c, k, infra, namespace)
	if err != nil || isShared(cluster) {
		return cluster, err
	}
	if infra != nil {
		if err := a.own(ctx, cluster, infra); err != nil {
			return nil, err
		}
	}
	if (infra == nil || isProvisioned(k.contract, infra)) && !isClusterReady(c, cluster) {
		return cluster, a.writeStatus(ctx, cluster, clusterStatus(c, a.now()))
	}
	return cluster, nil
}

// infraCluster returns the InfraCluster of a namespace.
func (a *account) infraCluster(ctx context.Context, ref v1alpha1.ObjectReference, namespace string) (*unstructured.Unstructured, kind, error) {
	k, err := a.kindOf(ctx, ref.GroupKind.GroupKind())
	if err != nil {
		return nil, kind{}, err
	}
	infra, err := a.get(ctx, k.GroupVersionKind, namespace, ref.Name)
	if err == nil && infra == nil {
		err = refused("spec.infraCluster", fmt.Errorf("namespace %s has no %s %q of %s: create it, as the documentation of its provider describes", namespace, ref.Kind, ref.Name, ref.APIGroup))
	}
	return infra, k, err
}

// cluster returns the Cluster, and creates it if there is none. A Cluster that it did not create is refused unless it is
// shared: Cluster API's own controllers may keep that one.
func (a *account) cluster(ctx context.Context, c contract, k kind, infra *unstructured.Unstructured, namespace string) (*unstructured.Unstructured, error) {
	gvk := c.coreKind("Cluster")
	there, err := a.get(ctx, gvk, namespace, a.spec.ClusterName)
	if err != nil {
		return nil, err
	}
	if there == nil {
		o := clusterOf(c, a.spec, k, namespace, a.endpoint(infra))
		if err := a.kube.Create(ctx, o); err != nil {
			return nil, classify("cannot create Cluster "+namespace+"/"+a.spec.ClusterName, err)
		}
		return o, nil
	}
	if there.GetLabels()[v1alpha1.LabelKept] != "true" && !isShared(there) {
		return nil, refused("spec.clusterName", fmt.Errorf("the Cluster %s/%s exists and has no label %s=true: it is a cluster of Cluster API. Choose another name, or share it: %s", namespace, a.spec.ClusterName, v1alpha1.LabelKept, howToShare))
	}
	return there, nil
}

// endpoint returns the endpoint of the control plane, nil if it is not known.
func (a *account) endpoint(infra *unstructured.Unstructured) *v1alpha1.Endpoint {
	if a.spec.ControlPlaneEndpoint != nil || infra == nil {
		return a.spec.ControlPlaneEndpoint
	}
	host := stringAt(infra, "spec", "controlPlaneEndpoint", "host")
	port, _, _ := unstructured.NestedInt64(infra.Object, "spec", "controlPlaneEndpoint", "port")
	if host == "" || port < 1 || port > 65535 {
		return nil
	}
	return &v1alpha1.Endpoint{Host: host, Port: int32(port)}
}

// own makes the Cluster the owner of the InfraCluster: providers find the Cluster by that. The Cluster is not its
// controller, as the contract has it.
func (a *account) own(ctx context.Context, cluster, infra *unstructured.Unstructured) error {
	for _, ref := range infra.GetOwnerReferences() {
		if ref.UID == cluster.GetUID() {
			return nil
		}
	}
	before := infra.DeepCopy()
	infra.SetOwnerReferences(append(infra.GetOwnerReferences(), belongsTo(cluster)))
	labels := infra.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[labelCluster] = cluster.GetName()
	infra.SetLabels(labels)
	err := a.kube.Patch(ctx, infra, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return classify("cannot set the owner of "+describe(infra), err)
}
