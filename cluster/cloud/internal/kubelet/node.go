package kubelet

import (
	"maps"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// node returns the Node that a kubelet registers. From the start it has the provider ID, zone and
// size that a cloud-controller-manager would add, so it has no taint that waits for one.
func (p *Plan) node(now time.Time) *corev1.Node {
	labels := maps.Clone(p.Labels)
	for k, v := range map[string]string{
		corev1.LabelHostname:           p.NodeName,
		corev1.LabelOSStable:           "linux",
		corev1.LabelArchStable:         runtime.GOARCH,
		corev1.LabelInstanceTypeStable: p.Facts.Size,
		corev1.LabelTopologyZone:       p.Facts.Zone,
		corev1.LabelTopologyRegion:     "local",
	} {
		labels[k] = v
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              p.Facts.CPU,
		corev1.ResourceMemory:           p.Facts.Memory,
		corev1.ResourceEphemeralStorage: resource.MustParse("50Gi"),
		corev1.ResourcePods:             *resource.NewQuantity(p.MaxPods, resource.DecimalSI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        p.NodeName,
			Labels:      labels,
			Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		},
		Spec: corev1.NodeSpec{ProviderID: p.ProviderID, Taints: p.Taints},
		Status: corev1.NodeStatus{
			Capacity:    capacity,
			Allocatable: allocatable(capacity, p.Reserved),
			Conditions:  conditions(now, now),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: p.IP},
				{Type: corev1.NodeHostName, Address: p.NodeName},
			},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: p.Facts.ID, SystemUUID: p.Facts.ID, BootID: p.Facts.BootID,
				KernelVersion:           "6.8.0-local",
				OSImage:                 p.Facts.OSImage,
				ContainerRuntimeVersion: "containerd://2.1.4",
				KubeletVersion:          p.Version,
				OperatingSystem:         "linux",
				Architecture:            runtime.GOARCH,
			},
		},
	}
}

func allocatable(capacity, reserved corev1.ResourceList) corev1.ResourceList {
	out := capacity.DeepCopy()
	for name, q := range reserved {
		left, ok := out[name]
		if !ok {
			continue
		}
		left.Sub(q)
		if left.Sign() < 0 {
			left = resource.Quantity{}
		}
		out[name] = left
	}
	return out
}

// conditions are the conditions of a kubelet that is healthy since a time.
func conditions(now, since time.Time) []corev1.NodeCondition {
	c := func(t corev1.NodeConditionType, s corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: t, Status: s, Reason: reason, Message: message,
			LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(since)}
	}
	return []corev1.NodeCondition{
		c(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
		c(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
		c(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
		c(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"),
	}
}
