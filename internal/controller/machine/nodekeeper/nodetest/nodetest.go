// Package nodetest has Nodes and pods of target clusters, for tests.
package nodetest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// ID is the providerID of a VM.
const ID = "local:///zone-a/vm-1"

// Start is the time at which tests begin.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// New returns the Node of a VM with the ID, which joined with the token of a Machine with the UID w.
func New(name string, ready corev1.ConditionStatus) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-1", Labels: map[string]string{clusterv1alpha1.LabelJoinToken: "w"}}, Spec: corev1.NodeSpec{ProviderID: ID}}
	if ready != "" {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "Because", Message: "of the kubelet"}}
	}
	return n
}

// Joined returns a Ready Node with a token, "" for none.
func Joined(name, uid, token, providerID string) *corev1.Node {
	n := New(name, corev1.ConditionTrue)
	n.SetUID(types.UID(uid))
	n.SetLabels(nil)
	if token != "" {
		n.SetLabels(map[string]string{clusterv1alpha1.LabelJoinToken: token})
	}
	n.Spec.ProviderID = providerID
	return n
}

// PodOn returns a pod on the Node n.
func PodOn(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "p"}, Spec: corev1.PodSpec{NodeName: "n"}}
	for _, c := range changes {
		c(p)
	}
	return p
}

// Writes returns the requests that change a target cluster, each as a verb and a resource.
func Writes(kube *fake.Clientset) []string {
	out := []string{}
	for _, a := range kube.Actions() {
		if v := a.GetVerb(); v != "get" && v != "list" && v != "watch" {
			what := v + " " + a.GetResource().Resource
			if s := a.GetSubresource(); s != "" {
				what += "/" + s
			}
			out = append(out, what)
		}
	}
	return out
}
