package step

import (
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const requirementCluster = "cluster"

// RequireCluster asks for the configuration of the cluster that Machines of a namespace
// join. Crossplane does not watch it.
func (r Response) RequireCluster(namespace string, ref machinev1alpha1.ClusterReference) {
	if ref.Kind != clusterv1alpha1.ProviderConfigGroupVersionKind.Kind {
		namespace = ""
	}
	r.RequireByName(requirementCluster, clusterv1alpha1.SchemeGroupVersion.String(), ref.Kind, namespace, ref.Name)
}

// Cluster returns that configuration, whichever of the two kinds it is of, and nil if
// there is none that can be read. It is false while Crossplane has not looked for it yet.
func Cluster(req *fnv1.RunFunctionRequest) (*clusterv1alpha1.ClusterProviderConfig, bool) {
	found, ok := Required(req, requirementCluster)
	if !ok || len(found) == 0 {
		return nil, ok
	}
	c, err := As[clusterv1alpha1.ClusterProviderConfig](found[0])
	if err != nil {
		return nil, true
	}
	return c, true
}
