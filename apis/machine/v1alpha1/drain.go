package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Drain configures how a Node is emptied.
type Drain struct {
	// Timeout of the whole drain. After it, pods that are left are deleted without
	// regard to their PodDisruptionBudgets, with 30 s to end.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:default="2h"
	Timeout metav1.Duration `json:"timeout,omitempty,omitzero"`

	// MaxEvictRetries is how often the eviction of a pod may be refused. After that, the pod is
	// deleted without regard to its PodDisruptionBudgets. An eviction is tried every 5 s. Without
	// this field, only the timeout limits the evictions. A restart of provider-drover resets the
	// count to 0, but not the timeout.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxEvictRetries *int32 `json:"maxEvictRetries,omitempty"`

	// GracePeriod is the longest time that a pod gets to end, in whole seconds. Without it, a pod
	// has its own grace period, until the timeout.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	GracePeriod *metav1.Duration `json:"gracePeriod,omitempty"`

	// VolumeDetachTimeout is how long a volume may take to be detached from the Node once no pod
	// there uses it. After that, the drain continues without waiting for the volume.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:default="2m"
	VolumeDetachTimeout metav1.Duration `json:"volumeDetachTimeout,omitempty,omitzero"`

	// VolumeReattachTimeout is how long the next pod with volumes waits for the
	// volumes of the one before to be attached elsewhere.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:default="90s"
	VolumeReattachTimeout metav1.Duration `json:"volumeReattachTimeout,omitempty,omitzero"`

	// HookTimeout is how long a hook may hold the deletion of the Machine, each of the
	// two points for itself.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:default="2h"
	HookTimeout metav1.Duration `json:"hookTimeout,omitempty,omitzero"`

	// PodRules select how pods are treated. The first rule that selects a pod applies; a pod
	// that none selects is evicted with the order 0.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	PodRules []PodRule `json:"podRules,omitempty"`
}

// A PodBehavior is the action of a drain on a pod.
// +kubebuilder:validation:Enum=Drain;Skip;WaitCompleted
type PodBehavior string

// Behaviors.
const (
	// PodDrain evicts the pod.
	PodDrain PodBehavior = "Drain"
	// PodSkip does not evict the pod: it ends with its VM.
	PodSkip PodBehavior = "Skip"
	// PodWaitCompleted waits until the pod has ended by itself, or the timeout.
	PodWaitCompleted PodBehavior = "WaitCompleted"
)

// A PodRule selects how a drain treats pods.
//
// +kubebuilder:validation:XValidation:rule="self.behavior != 'Skip' || !has(self.order)",message="order must be empty where behavior is Skip: such pods are not drained"
// +kubebuilder:validation:XValidation:rule="has(self.selector) || has(self.namespaceSelector)",message="selector or namespaceSelector must be set"
type PodRule struct {
	// Selector of pods by their labels. All if absent.
	// +optional
	Selector *LabelSelector `json:"selector,omitempty"`

	// NamespaceSelector selects pods by the labels of their namespace. All if absent.
	// +optional
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`

	// Behavior of the drain: Drain evicts the pods, Skip leaves them, WaitCompleted
	// waits until they have ended by themselves.
	// +kubebuilder:default=Drain
	Behavior PodBehavior `json:"behavior,omitempty"`

	// Order of the eviction. The default is 0. Pods of a higher order are evicted after all pods of
	// lower orders have ended.
	// +optional
	Order *int32 `json:"order,omitempty"`
}

// A LabelSelector selects what meets all of its requirements. It has the JSON shape
// of a metav1.LabelSelector.
//
// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) || has(self.matchExpressions)",message="matchLabels or matchExpressions must be set"
type LabelSelector struct {
	// MatchLabels that must all be there.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// MatchExpressions that must all be met.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	MatchExpressions []LabelRequirement `json:"matchExpressions,omitempty"`
}

// A LabelRequirement is met by a label, or by its absence.
//
// +kubebuilder:validation:XValidation:rule="(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",message="values must be set for the operators In and NotIn, and for no other"
type LabelRequirement struct {
	// Key of the label.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`

	// Operator: In, NotIn, Exists or DoesNotExist.
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	Operator metav1.LabelSelectorOperator `json:"operator"`

	// Values of the label.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Values []LabelValue `json:"values,omitempty"`
}

// Kubernetes returns the selector in the form that Kubernetes' libraries read; nil
// for nil.
func (s *LabelSelector) Kubernetes() *metav1.LabelSelector {
	if s == nil {
		return nil
	}
	out := &metav1.LabelSelector{}
	for k, v := range s.MatchLabels {
		if out.MatchLabels == nil {
			out.MatchLabels = map[string]string{}
		}
		out.MatchLabels[k] = string(v)
	}
	for _, e := range s.MatchExpressions {
		r := metav1.LabelSelectorRequirement{Key: e.Key, Operator: e.Operator}
		for _, v := range e.Values {
			r.Values = append(r.Values, string(v))
		}
		out.MatchExpressions = append(out.MatchExpressions, r)
	}
	return out
}
