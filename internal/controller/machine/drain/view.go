package drain

import (
	corev1 "k8s.io/api/core/v1"
)

// A view of a Node during a pass.
type view struct {
	node string
	pass pass
	// list has the pods as the API server returned them, pods their summary in the same order.
	list []corev1.Pod
	pods []pod
}

// mustLeave reports whether a pod still has to leave the Node.
func (v view) mustLeave() bool {
	for _, p := range v.pods {
		if v.pass.decide(p) != ignore {
			return true
		}
	}
	return false
}

// hasClaims reports whether a pod has a claim of a volume.
func (v view) hasClaims() bool {
	for i := range v.list {
		if len(claimsOf(&v.list[i])) > 0 {
			return true
		}
	}
	return false
}
