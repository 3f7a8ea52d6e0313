package userdata

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// registerWithTaints returns the taints with which the Node registers: the taint for a Node that is not
// initialized, those of the class's configuration, and the Machine's.
func registerWithTaints(ofClass []corev1.Taint, in Input) ([]corev1.Taint, field.ErrorList) {
	out := []corev1.Taint{{Key: machinev1alpha1.TaintUninitialized, Effect: corev1.TaintEffectNoSchedule}}
	taints, errs := checked(in.Taints, field.NewPath("spec", "taints"))
	startup, serrs := checked(in.StartupTaints, field.NewPath("spec", "startupTaints"))
	for _, t := range slices.Concat(ofClass, taints, startup) {
		same := func(o corev1.Taint) bool { return o.MatchTaint(&t) }
		// A kubelet does not start with two of one key and effect.
		out = append(slices.DeleteFunc(out, same), t)
	}
	return out, append(errs, serrs...)
}

func checked(taints []machinev1alpha1.Taint, path *field.Path) ([]corev1.Taint, field.ErrorList) {
	var out []corev1.Taint
	var errs field.ErrorList
	for i, t := range taints {
		p := path.Index(i)
		for _, msg := range validation.IsQualifiedName(t.Key) {
			errs = append(errs, field.Invalid(p.Child("key"), t.Key, msg))
		}
		for _, msg := range validation.IsValidLabelValue(t.Value) {
			errs = append(errs, field.Invalid(p.Child("value"), t.Value, msg))
		}
		effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
		if !slices.Contains(effects, corev1.TaintEffect(t.Effect)) {
			errs = append(errs, field.NotSupported(p.Child("effect"), corev1.TaintEffect(t.Effect), effects))
		}
		out = append(out, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	return out, errs
}
