package deployment

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan/aging"
)

// composed returns the desired set by the recorded decisions. The decisions of this plan are
// carried out when they are read back.
func (p *plan) composed(s *set) *machinev1alpha1.MachineSet {
	d := p.Deployment
	t := p.templateOf(s)
	labels := machinev1alpha1.LabelsOf(t.Metadata.Labels)
	labels[machinev1alpha1.LabelAutoscalerDeployment] = d.Name
	annotations := map[string]string{machinev1alpha1.AnnotationRevision: strconv.FormatInt(p.revisionOf(s), 10)}
	if p.Safety.Sets != "" {
		labels[machinev1alpha1.LabelFreeze] = p.Safety.Sets
	}
	if p.Safety.Sets == "true" {
		annotations[machinev1alpha1.AnnotationFreezeReason] = p.Safety.Reason
	}
	if s.Annotations[machinev1alpha1.AnnotationClassProven] == "true" || s.isMissing && p.isClassProven(s) {
		annotations[machinev1alpha1.AnnotationClassProven] = "true"
	}
	// The NodeTemplate belongs to the deployment. Without the reference, its changes do not update
	// sets and Machines.
	t.Spec.InfrastructureRef = nil
	// The XRD of the previous release does not have the kind, and the XRD of this release adds its
	// default.
	t.Spec.ClassRef = t.Spec.ClassRef.Rolling()
	t.Spec.CapacityTimeout = machinev1alpha1.CapacityTimeoutOf(d, t.Spec)
	return &machinev1alpha1.MachineSet{
		TypeMeta: metav1.TypeMeta{
			APIVersion: machinev1alpha1.SchemeGroupVersion.String(),
			Kind:       machinev1alpha1.MachineSetGroupVersionKind.Kind,
		},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   d.Namespace,
			Name:        s.Name,
			Labels:      labels,
			Annotations: annotations,
			Finalizers:  []string{machinev1alpha1.FinalizerTerminator},
		},
		Spec: machinev1alpha1.MachineSetSpec{
			Replicas:                     s.desired,
			DeploymentReplicas:           p.deploymentReplicas(s),
			Selector:                     *s.Spec.Selector.DeepCopy(),
			Template:                     t,
			NodeMarks:                    p.nodeMarks(s),
			MinReadySeconds:              d.Spec.MinReadySeconds,
			Deletion:                     d.Spec.Deletion,
			Creation:                     p.creationOf(s),
			InPlaceUpdate:                p.updateOf(s),
			Aging:                        p.agingOf(s),
			Remediation:                  p.remediation(s),
			AutoPreserveFailedMachineMax: p.mayPreserve(s),
		},
	}
}

// creationOf returns whether a set creates Machines. An old set creates none if the new set
// replaces the Machines that it loses.
func (p *plan) creationOf(s *set) machinev1alpha1.CreationPolicy {
	if p.isRejected(s) {
		return machinev1alpha1.CreationDisabled
	}
	onDelete := p.Deployment.Spec.Strategy.Type == machinev1alpha1.OnDelete && !p.isTemplateHeld()
	if s != p.newSet && (onDelete || p.hasProof()) {
		return machinev1alpha1.CreationDisabled
	}
	return machinev1alpha1.CreationEnabled
}

// agingOf returns the age at which a set replaces Machines, nil during a rollout: that replaces all of them.
func (p *plan) agingOf(s *set) *machinev1alpha1.MachineSetAging {
	maxAge := p.Deployment.Spec.Rollout.MaxAge
	if maxAge == nil || s != p.current || !p.isDone() {
		return nil
	}
	a := &machinev1alpha1.MachineSetAging{MaxAge: *maxAge, Order: machinev1alpha1.DeleteFirst, Replace: p.turnOfAge().Replace(p.now)}
	if p.bounds.surge > 0 {
		a.Order = machinev1alpha1.CreateFirst
	}
	return a
}

// turnOfAge is that of the Machine which is due next because of its age. No user, rejection or freeze may keep it, all Machines
// must be available, and none is replaced where none can be created.
func (p *plan) turnOfAge() aging.Turn {
	t := aging.Turn{Windows: p.windows, Gate: p.Gate}
	if c := p.current; p.Deployment.Spec.Rollout.MaxAge != nil && c != nil && p.isDone() {
		_, held := p.Deployment.Annotations[machinev1alpha1.AnnotationRolloutHold]
		t.Next = c.Status.Aging.DeepCopy()
		t.IsFree = p.isComplete() && !held && !p.isHeld() && p.problem == nil && !p.isSpecRejected() &&
			c.Status.TerminatingReplicas == 0 && len(p.exhausted()) == 0
	}
	return t
}

// deploymentReplicas returns the replicas that a set sees. Without a rollout, the set itself
// deletes the marked Machines, and an update of its spec is not needed. A set that updates in place
// needs it: the deployment then decides whether a Machine above replicas stays.
func (p *plan) deploymentReplicas(s *set) *int32 {
	if p.isAlone() && !p.updatesInPlace() {
		return s.Spec.DeploymentReplicas
	}
	return &p.bounds.replicas
}

// isClassProven reports whether another set has available Machines of the same class in the same
// failure domain.
func (p *plan) isClassProven(s *set) bool {
	of := s.Spec.Template.Spec
	return slices.ContainsFunc(p.othersThan(s), func(other *set) bool {
		by := other.Spec.Template.Spec
		return other.Status.AvailableReplicas > 0 && by.ClassRef.Equal(of.ClassRef) && equality.Semantic.DeepEqual(by.FailureDomain, of.FailureDomain)
	})
}

// templateOf returns the template of a set: its own, but with the current values of fields that
// start no rollout.
func (p *plan) templateOf(s *set) machinev1alpha1.MachineTemplate {
	own := s.Spec.Template
	if s == p.current && p.updatesInPlace() && !p.isHeld() {
		labels := own.Metadata.Labels
		own = p.template
		own.Metadata.Labels = merged(own.Metadata.Labels, map[string]machinev1alpha1.LabelValue{
			machinev1alpha1.LabelDeployment:   labels[machinev1alpha1.LabelDeployment],
			machinev1alpha1.LabelTemplateHash: labels[machinev1alpha1.LabelTemplateHash],
		})
	}
	return inPlace(own, p.Deployment.Spec.Template)
}

// nodeMarks returns the taints and annotations that Nodes of a set have during a rollout. Those of an unused set
// do not change: the set would have to observe the change before it can be deleted.
func (p *plan) nodeMarks(s *set) machinev1alpha1.NodeMarks {
	if p.isUnused(s) {
		return s.Spec.NodeMarks
	}
	m := machinev1alpha1.NodeMarks{}
	if p.isRolling() && s != p.newSet {
		m.Taints = []machinev1alpha1.Taint{{Key: machinev1alpha1.TaintOutdated, Effect: string(corev1.TaintEffectPreferNoSchedule)}}
	}
	if p.Deployment.Spec.Rollout.DisableScaleDown && !p.isComplete() && !p.wasComplete() {
		m.Annotations = map[string]string{machinev1alpha1.AnnotationScaleDownDisabled: "true"}
	}
	return m
}

// mayPreserve returns the number of Failed Machines that a set may preserve by itself. Those that
// other sets preserve are subtracted.
func (p *plan) mayPreserve(s *set) int32 {
	n := p.Deployment.Spec.AutoPreserveFailedMachineMax
	for _, other := range p.othersThan(s) {
		n -= other.Status.PreservedFailedReplicas
	}
	return max(0, n)
}

func merged[V any](a, b map[string]V) map[string]V {
	out := map[string]V{}
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

// analyzedStep is the recorded step whose Machines are all available, nil if there is none with analyses.
func (p *plan) analyzedStep() *machinev1alpha1.AnalyzedStep {
	s := p.recordedStep()
	if s == nil || s.Step != p.step || !s.Since.Equal(p.reached) || !p.hasAnalyses() {
		return nil
	}
	return s
}

// hasAnalyses reports whether the present step has analyses.
func (p *plan) hasAnalyses() bool {
	return p.step >= 1 && int(p.step) <= len(p.steps()) && len(p.steps()[p.step-1].Analyses) > 0
}

// awaitsAnalysis reports whether a step with analyses became complete in this plan. They begin when that is recorded.
func (p *plan) awaitsAnalysis() bool {
	return p.id != "" && p.reached != nil && p.hasAnalyses() && p.analyzedStep() == nil
}

// analysisRun has the analyses that provider-drover carries out, nil if the steps name no analyses.
func (p *plan) analysisRun() *machinev1alpha1.RolloutAnalysisRun {
	d, needed := p.Deployment, p.analyses().names()
	if len(needed) == 0 {
		return nil
	}
	r := &machinev1alpha1.RolloutAnalysisRun{
		TypeMeta:   metav1.TypeMeta{APIVersion: machinev1alpha1.SchemeGroupVersion.String(), Kind: machinev1alpha1.RolloutAnalysisRunGroupVersionKind.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: names.AnalysisRun(d.Name, d.UID), Labels: map[string]string{machinev1alpha1.LabelDeployment: d.Name}},
		Spec:       machinev1alpha1.RolloutAnalysisRunSpec{MachineDeployment: d.Name, Analyses: needed, Step: p.analyzedStep()},
	}
	if r.Spec.Step == nil {
		return r
	}
	r.Spec.Run = slices.Clone(p.steps()[p.step-1].Analyses)
	r.Spec.NewMachineSet = p.newSet.Name
	for _, s := range p.oldSets {
		if s.total() > 0 {
			r.Spec.OldMachineSets = append(r.Spec.OldMachineSets, s.Name)
		}
	}
	return r
}
