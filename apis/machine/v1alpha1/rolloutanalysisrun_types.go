package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/stored"
)

// MaxAnalyses is how many analyses the steps of a MachineDeployment may name, which are ten steps with five of them.
const MaxAnalyses = 50

// An AnalyzedStep is the step of a rollout that analyses judge. Verdicts of another one never count.
type AnalyzedStep struct {
	// Rollout is its ID, as status.rollout.id of the MachineDeployment has it.
	// +kubebuilder:validation:MaxLength=253
	Rollout string `json:"rollout"`

	// Step is the number of the step of the rollout, from 1.
	// +kubebuilder:validation:Minimum=1
	Step int32 `json:"step"`

	// Since is the time since which all Machines of the step are available.
	Since metav1.Time `json:"since"`
}

// RolloutAnalysisRunSpec is what is to be analyzed.
type RolloutAnalysisRunSpec struct {
	// MachineDeployment whose rollout is analyzed.
	// +kubebuilder:validation:MaxLength=253
	MachineDeployment string `json:"machineDeployment"`

	// Analyses that the steps of the MachineDeployment name. They are looked for at any time.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=63
	Analyses []string `json:"analyses,omitempty"`

	// Step that is analyzed, absent if none is.
	// +optional
	Step *AnalyzedStep `json:"step,omitempty"`

	// Run are the analyses of the step.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=63
	Run []string `json:"run,omitempty"`

	// NewMachineSet has the Machines of the new template.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	NewMachineSet string `json:"newMachineSet,omitempty"`

	// OldMachineSets have the Machines of the old templates.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MaxLength=253
	OldMachineSets []string `json:"oldMachineSets,omitempty"`
}

// An AnalysisVerdict is the state of an analysis.
// +kubebuilder:validation:Enum=Running;Pass;Fail;Inconclusive
type AnalysisVerdict string

// Verdicts. Pass and Fail are final for the step.
const (
	// AnalysisRunning means that more measurements are needed.
	AnalysisRunning AnalysisVerdict = "Running"
	// AnalysisPass means that all measurements passed that the analysis requires.
	AnalysisPass AnalysisVerdict = "Pass"
	// AnalysisFail means that more measurements failed than the analysis allows.
	AnalysisFail AnalysisVerdict = "Fail"
	// AnalysisInconclusive means that the last measurement could not be made. It is tried again.
	AnalysisInconclusive AnalysisVerdict = "Inconclusive"
)

// An AnalysisNumber is a number that led to a verdict.
type AnalysisNumber struct {
	// Name of the limit in spec.nodes, or the labels of a sample.
	Name string `json:"name"`
	// New is the number on the Nodes of the new template, of NewTotal, or the value of a sample.
	New string `json:"new"`
	// +optional
	NewTotal int32 `json:"newTotal,omitempty"`
	// Old is the number on Nodes of old templates, of OldTotal.
	// +optional
	Old string `json:"old,omitempty"`
	// +optional
	OldTotal int32 `json:"oldTotal,omitempty"`
	// Limit in words.
	// +optional
	Limit string `json:"limit,omitempty"`
	// Exceeded means that the number is above its limit.
	// +optional
	Exceeded bool `json:"exceeded,omitempty"`
}

// An AnalysisResult is the verdict of one analysis, and how it came about.
type AnalysisResult struct {
	// Name of the RolloutAnalysis.
	Name string `json:"name"`
	// ObservedGeneration of the RolloutAnalysis. After a change of it the analysis begins again.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Verdict so far.
	Verdict AnalysisVerdict `json:"verdict"`
	// Message has the numbers in words, or why the measurement could not be made.
	// +optional
	Message string `json:"message,omitempty"`
	// Passed and Failed count the measurements.
	// +optional
	Passed int32 `json:"passed,omitempty"`
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// Numbers of the last measurement.
	// +optional
	// +listType=atomic
	Numbers []AnalysisNumber `json:"numbers,omitempty"`
	// StartTime is the time since which the analysis measures.
	StartTime metav1.Time `json:"startTime"`
	// MeasuredTime is the time of the last measurement that counted.
	// +optional
	MeasuredTime *metav1.Time `json:"measuredTime,omitempty"`
	// Deadline after which an analysis without a verdict is reported.
	Deadline metav1.Time `json:"deadline"`
}

// An AnalysisProblem is why an analysis cannot be carried out until a user acts.
type AnalysisProblem struct {
	// Name of the RolloutAnalysis.
	Name string `json:"name"`
	// Reason is AnalysisNotFound or AnalysisInvalid.
	Reason string `json:"reason"`
	// Message names what is wrong, and what is allowed.
	Message string `json:"message"`
}

// RolloutAnalysisRunStatus has the verdicts.
type RolloutAnalysisRunStatus struct {
	// ObservedGeneration is the generation of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Found are the names of spec.analyses that can be carried out.
	// +optional
	// +listType=set
	Found []string `json:"found,omitempty"`

	// Problems of the other ones.
	// +optional
	// +listType=map
	// +listMapKey=name
	Problems []AnalysisProblem `json:"problems,omitempty"`

	// Step that the results are about.
	// +optional
	Step *AnalyzedStep `json:"step,omitempty"`

	// Results of the analyses of the step.
	// +optional
	// +listType=map
	// +listMapKey=name
	Results []AnalysisResult `json:"results,omitempty"`
}

// A RolloutAnalysisRun carries out the RolloutAnalyses of a MachineDeployment, which composes it. provider-drover writes
// the verdicts, because only provider-drover connects to target clusters. The MachineDeployment decides on them. It is not
// meant to be written by hand.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories=drover
// +kubebuilder:printcolumn:name="Deployment",type=string,JSONPath=`.spec.machineDeployment`
// +kubebuilder:printcolumn:name="Step",type=integer,JSONPath=`.status.step.step`
// +kubebuilder:printcolumn:name="Verdicts",type=string,JSONPath=`.status.results[*].verdict`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RolloutAnalysisRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	stored.Undecoded  `json:"-"`

	Spec   RolloutAnalysisRunSpec   `json:"spec"`
	Status RolloutAnalysisRunStatus `json:"status,omitempty"`
}

// A RolloutAnalysisRunList is a list of RolloutAnalysisRuns.
//
// +kubebuilder:object:root=true
type RolloutAnalysisRunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RolloutAnalysisRun `json:"items"`
}
