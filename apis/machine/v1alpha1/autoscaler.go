package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The annotations that make a MachineDeployment or a MachineSet a node group of the
// cluster-autoscaler. It takes their group from its environment variable CAPI_GROUP.
const (
	// AnnotationNodeGroupMinSize and AnnotationNodeGroupMaxSize make a MachineDeployment or MachineSet
	// a node group, and are the bounds of its replicas.
	AnnotationNodeGroupMinSize = Group + nodeGroupMinSize
	AnnotationNodeGroupMaxSize = Group + nodeGroupMaxSize

	// AnnotationClusterAPINodeGroupMinSize and AnnotationClusterAPINodeGroupMaxSize are the same for a
	// cluster-autoscaler without CAPI_GROUP.
	AnnotationClusterAPINodeGroupMinSize = clusterAPIGroup + nodeGroupMinSize
	AnnotationClusterAPINodeGroupMaxSize = clusterAPIGroup + nodeGroupMaxSize

	// AnnotationCapacityLabels has the labels of Nodes that do not exist yet.
	AnnotationCapacityLabels = "capacity.cluster-autoscaler.kubernetes.io/labels"

	clusterAPIGroup  = "cluster.x-k8s.io"
	nodeGroupMinSize = "/cluster-api-autoscaler-node-group-min-size"
	nodeGroupMaxSize = "/cluster-api-autoscaler-node-group-max-size"
)

// IsNodeGroup reports whether a MachineDeployment or MachineSet has the annotations of a node
// group of the cluster-autoscaler.
func IsNodeGroup(o metav1.Object) bool {
	a := o.GetAnnotations()
	for _, key := range []string{
		AnnotationNodeGroupMinSize, AnnotationNodeGroupMaxSize, AnnotationClusterAPINodeGroupMinSize, AnnotationClusterAPINodeGroupMaxSize,
	} {
		if _, ok := a[key]; ok {
			return true
		}
	}
	return false
}

// CapacityTimeoutOf the Machines of a MachineDeployment or MachineSet: that of its template or,
// in a node group, the default. It is nil if Machines wait for room.
func CapacityTimeoutOf(o metav1.Object, template MachineSpec) *metav1.Duration {
	if template.CapacityTimeout == nil && IsNodeGroup(o) {
		return &metav1.Duration{Duration: DefaultCapacityTimeout}
	}
	return template.CapacityTimeout
}
