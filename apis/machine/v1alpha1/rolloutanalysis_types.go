package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drover-dev/drover/internal/stored"
)

// SecretTypePrometheus is the type of Secrets that a RolloutAnalysis may name. No other Secret is read for one, so that
// the right to write a RolloutAnalysis gives no access to Secrets that were written for another purpose.
const SecretTypePrometheus = "prometheus." + Group

// Keys of a Secret of the type SecretTypePrometheus, all of them optional.
const (
	PrometheusKeyUsername = "username"
	PrometheusKeyPassword = "password"
	PrometheusKeyToken    = "token"
	PrometheusKeyCA       = "ca.crt"
)

// An AnalysisLimit is the limit of a number of Nodes, pods or containers with a problem. Both fields must hold.
//
// +kubebuilder:validation:XValidation:rule="has(self.max) || has(self.maxAboveOldPercent)",message="must have max, maxAboveOldPercent or both: otherwise there is no limit"
type AnalysisLimit struct {
	// Max is the largest number on the Nodes of the new template: a number, or a percentage of all that are
	// there, such as 10%.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 100000 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be a number from 0 to 100000, or a percentage from 0% to 100%"
	Max *intstr.IntOrString `json:"max,omitempty"`

	// MaxAboveOldPercent is by how many percentage points the share on the Nodes of the new template may be above
	// the share on the Nodes of the old ones. If no Node of an old template has a pod, that share counts as 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxAboveOldPercent *int32 `json:"maxAboveOldPercent,omitempty"`
}

// A NodeAnalysis compares the Nodes of the new template with those of the old ones. It needs no server.
type NodeAnalysis struct {
	// UnhealthyNodes are Nodes with a condition that is not healthy: types that end with Ready must be True, and
	// all others must not be True, those of node-problem-detector included.
	// +kubebuilder:default={max: 0}
	UnhealthyNodes AnalysisLimit `json:"unhealthyNodes,omitempty,omitzero"`

	// CrashingPods have a container that waits in CrashLoopBackOff, or that cannot start.
	// +kubebuilder:default={maxAboveOldPercent: 10}
	CrashingPods AnalysisLimit `json:"crashingPods,omitempty,omitzero"`

	// ImagePullFailures are pods with a container whose image cannot be pulled.
	// +kubebuilder:default={maxAboveOldPercent: 10}
	ImagePullFailures AnalysisLimit `json:"imagePullFailures,omitempty,omitzero"`

	// NotReadyPods have not been Ready for two minutes or longer.
	// +kubebuilder:default={maxAboveOldPercent: 10}
	NotReadyPods AnalysisLimit `json:"notReadyPods,omitempty,omitzero"`

	// RestartedPods have a container that ended, and was started again, since the analysis began.
	// +kubebuilder:default={maxAboveOldPercent: 10}
	RestartedPods AnalysisLimit `json:"restartedPods,omitempty,omitzero"`

	// EvictedPods were evicted by their kubelet.
	// +kubebuilder:default={maxAboveOldPercent: 10}
	EvictedPods AnalysisLimit `json:"evictedPods,omitempty,omitzero"`

	// MinPods is how many pods there must be on the Nodes of the new template. With fewer, a measurement is
	// inconclusive.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	MinPods int32 `json:"minPods"`
}

// A PrometheusAnalysis is a query to a Prometheus server, and a condition on its result.
//
// +kubebuilder:validation:XValidation:rule="!self.query.replace('${newNodes}', ' ').replace('${oldNodes}', ' ').replace('${newMachineSet}', ' ').replace('${machineDeployment}', ' ').replace('${namespace}', ' ').contains('${')",message="query may have the placeholders ${newNodes}, ${oldNodes}, ${newMachineSet}, ${machineDeployment} and ${namespace}, and no others"
// +kubebuilder:validation:XValidation:rule="!has(self.secretRef) || self.url.startsWith('https://')",message="url must begin with https:// if there is a secretRef: credentials are not sent without TLS"
type PrometheusAnalysis struct {
	// URL of the server, without /api/v1. provider-drover connects to it, under the same limits as to the target
	// clusters of ProviderConfigs.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https?://[A-Za-z0-9.:\[\]/_-]+$`
	URL string `json:"url"`

	// Query in PromQL. ${newNodes} and ${oldNodes} stand for a regular expression of the names of the Nodes of the
	// new template and of old ones, ${newMachineSet}, ${machineDeployment} and ${namespace} for names.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query"`

	// Condition on the result, in CEL, such as result.all(r, r.value < 0.01). result is the list of the samples of
	// the query: labels is a map of texts, and value is a number. The condition must be true for a measurement to pass.
	// A result without samples, or with a value that is not a number, is inconclusive.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Condition string `json:"condition"`

	// SecretRef names a Secret of the type prometheus.machine.drover.dev in the namespace, with any of the keys
	// username, password, token and ca.crt.
	// +optional
	SecretRef *AnalysisSecretReference `json:"secretRef,omitempty"`

	// Timeout of a query.
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('30s')",message="must be from 1s to 30s"
	Timeout metav1.Duration `json:"timeout,omitempty,omitzero"`
}

// AnalysisSecretReference names a Secret in the namespace of the RolloutAnalysis.
type AnalysisSecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// RolloutAnalysisSpec is what an analysis measures, and how often.
//
// +kubebuilder:validation:XValidation:rule="has(self.nodes) != has(self.prometheus)",message="must have either nodes or prometheus: name two analyses in a step to have both"
// +kubebuilder:validation:XValidation:rule="!has(self.timeout) || !has(self.interval) || !has(self.count) || duration(self.timeout).getSeconds() >= duration(self.interval).getSeconds() * (self.count - 1)",message="timeout must be at least interval times count - 1: otherwise it passes before the last measurement"
type RolloutAnalysisSpec struct {
	// Description of the analysis for users.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Description string `json:"description,omitempty"`

	// Interval between two measurements.
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="must be from 1s to 1h"
	Interval metav1.Duration `json:"interval,omitempty,omitzero"`

	// Count is how many measurements must pass.
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Count int32 `json:"count,omitempty"`

	// FailureLimit is how many measurements may fail before the analysis does.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	FailureLimit int32 `json:"failureLimit,omitempty"`

	// Timeout is the time after which an analysis without a verdict is reported. The rollout stays held, and the analysis
	// continues.
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('168h')",message="must be from 1s to 168h"
	Timeout metav1.Duration `json:"timeout,omitempty,omitzero"`

	// Nodes compares the Nodes of the new template with those of the old ones.
	// +optional
	Nodes *NodeAnalysis `json:"nodes,omitempty"`

	// Prometheus is a query to a Prometheus server.
	// +optional
	Prometheus *PrometheusAnalysis `json:"prometheus,omitempty"`
}

// Defaults of a RolloutAnalysis.
const (
	DefaultAnalysisInterval = time.Minute
	DefaultAnalysisTimeout  = 30 * time.Minute
	DefaultQueryTimeout     = 10 * time.Second
)

// A RolloutAnalysis decides whether the Machines of a new template are good enough for the next step of a rollout.
// spec.strategy.rollingUpdate.steps of MachineDeployments in the namespace names it. provider-drover carries it out.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=ra,categories=drover
// +kubebuilder:printcolumn:name="Interval",type=string,JSONPath=`.spec.interval`
// +kubebuilder:printcolumn:name="Count",type=integer,JSONPath=`.spec.count`
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.prometheus.url`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name must have at most 63 characters"
type RolloutAnalysis struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	stored.Undecoded  `json:"-"`

	Spec RolloutAnalysisSpec `json:"spec"`
}

// A RolloutAnalysisList is a list of RolloutAnalyses.
//
// +kubebuilder:object:root=true
type RolloutAnalysisList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RolloutAnalysis `json:"items"`
}
