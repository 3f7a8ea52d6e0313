package pool

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan/deployment"
)

// desired returns the desired MachineDeployment of a member, by the recorded decisions.
func (f *fleet) desired(m *member) *machinev1alpha1.MachineDeployment {
	d := &machinev1alpha1.MachineDeployment{
		TypeMeta: metav1.TypeMeta{
			APIVersion: machinev1alpha1.SchemeGroupVersion.String(),
			Kind:       machinev1alpha1.MachineDeploymentGroupVersionKind.Kind,
		},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   f.Namespace,
			Name:        m.name,
			Labels:      map[string]string{machinev1alpha1.LabelNodePool: f.Pool.Name},
			Annotations: map[string]string{},
			Finalizers:  []string{machinev1alpha1.FinalizerTerminator},
		},
	}
	switch {
	case f.problem == nil && (m.wanted || m.is == nil):
		d.Spec = f.spec(m)
		f.applyTurn(m, &d.Spec)
		if template := f.templateOf(m); template != "" {
			d.Annotations[machinev1alpha1.AnnotationPoolTemplate] = template
		}
		d.Annotations[machinev1alpha1.AnnotationAppliedHash] = hashOf(d.Spec)
	case m.is != nil:
		d.Spec = *m.is.Spec.DeepCopy()
		if template := m.template(); template != "" {
			d.Annotations[machinev1alpha1.AnnotationPoolTemplate] = template
		}
		d.Annotations[machinev1alpha1.AnnotationAppliedHash] = m.is.Annotations[machinev1alpha1.AnnotationAppliedHash]
		if !m.wanted {
			d.Spec.Paused = f.Pool.Spec.Paused || m.decided.Suspended
		}
	}
	d.Spec.Replicas = m.decided.DesiredReplicas
	d.Annotations[machinev1alpha1.AnnotationPoolDecision] = strconv.FormatInt(m.decided.Decision, 10)
	return d
}

func (f *fleet) spec(m *member) machinev1alpha1.MachineDeploymentSpec {
	// The selector of an existing MachineDeployment is immutable.
	selector := map[string]machinev1alpha1.LabelValue{machinev1alpha1.LabelDeployment: machinev1alpha1.LabelValue(m.name)}
	if m.is != nil {
		selector = maps.Clone(m.is.Spec.Selector.MatchLabels)
	}
	labels := maps.Clone(selector)
	labels[machinev1alpha1.LabelNodePool] = machinev1alpha1.LabelValue(f.Pool.Name)
	s := machinev1alpha1.MachineDeploymentSpec{
		Selector: machinev1alpha1.Selector{MatchLabels: selector},
		Strategy: f.Pool.Spec.Strategy.Strategy,
		Paused:   f.Pool.Spec.Paused,
		Rollout:  *f.Pool.Spec.Rollout.DeepCopy(),
		Template: machinev1alpha1.MachineTemplate{
			Metadata: machinev1alpha1.TemplateMetadata{Labels: labels},
			Spec: machinev1alpha1.MachineSpec{
				ClassRef:      f.taken.class.ClassRef,
				Version:       f.taken.version,
				ClusterRef:    f.Offer.ClusterRef,
				Metadata:      machinev1alpha1.NodeMetadata{Labels: f.taken.labels},
				Taints:        f.taken.taints,
				StartupTaints: f.taken.class.StartupTaints,
				Drain:         ptr.Deref(f.Offer.Drain, machinev1alpha1.Drain{}),
				Health:        ptr.Deref(f.Offer.Health, machinev1alpha1.Health{}),
			},
		},
		Remediation: ptr.Deref(f.Offer.Remediation, machinev1alpha1.Remediation{}),
	}
	if f.isAutoscaled() {
		s.Template.Spec.InfrastructureRef = &machinev1alpha1.InfrastructureReference{Name: m.name}
	}
	if m.domain != "" {
		s.Template.Spec.FailureDomain = ptr.To(m.domain)
	}
	return s
}

// hashOf returns the hash of a spec without replicas.
func hashOf(s machinev1alpha1.MachineDeploymentSpec) string {
	b, err := json.Marshal(s)
	if err != nil {
		// Strings, numbers and maps of strings always encode.
		panic(err)
	}
	return names.Hash(string(b))
}

// labelsOf formats the labels of Nodes for the cluster-autoscaler.
func labelsOf(labels map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, k+"="+labels[k])
	}
	return strings.Join(out, ",")
}

// isAhead reports whether a time has not come yet.
func (f *fleet) isAhead(t *metav1.Time) bool { return t != nil && f.now.Before(t.Time) }

func (f *fleet) isOneByOne() bool {
	return f.Pool.Spec.Strategy.FailureDomains == machinev1alpha1.FailureDomainsOneByOne
}

// applyTurn keeps the template of a member whose turn it is not, and pauses one that is suspended.
func (f *fleet) applyTurn(m *member, s *machinev1alpha1.MachineDeploymentSpec) {
	if f.isOneByOne() && f.isAhead(s.Rollout.After) {
		// All failure domains that have the time would roll when it comes.
		s.Rollout.After = nil
		if m.is != nil && !f.isAhead(m.is.Spec.Rollout.After) {
			s.Rollout.After = m.is.Spec.Rollout.After
		}
	}
	m.target = templateOf(*s)
	if !f.isOneByOne() || m.is == nil {
		return
	}
	if m.isWaiting = m.template() != m.target && m.decided.Template != m.target; m.isWaiting {
		s.Template = deployment.Keep(m.is.Spec.Template, s.Template)
		s.Rollout.After = m.is.Spec.Rollout.After
	}
	if m.decided.Suspended {
		s.Paused = true
	}
}

// templateOf a member as it is composed, "" if the order of the failure domains does not matter.
func (f *fleet) templateOf(m *member) string {
	switch {
	case !f.isOneByOne():
		return ""
	case m.isWaiting:
		return m.template()
	}
	return m.target
}
