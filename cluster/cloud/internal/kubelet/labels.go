package kubelet

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kubeletapis "k8s.io/kubelet/pkg/apis"
)

// parseLabels reads --node-labels, and refuses labels that a kubelet or the NodeRestriction
// admission plugin refuses.
func parseLabels(s string) (map[string]string, error) {
	out := map[string]string{}
	for _, pair := range splitList(s) {
		k, v, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("kubelet: --node-labels: invalid value %q: must be key=value", pair)
		}
		if errs := validation.IsQualifiedName(k); len(errs) > 0 {
			return nil, fmt.Errorf("kubelet: --node-labels: invalid key %q: %s", k, strings.Join(errs, ", "))
		}
		if errs := validation.IsValidLabelValue(v); len(errs) > 0 {
			return nil, fmt.Errorf("kubelet: --node-labels: invalid value %q of %s: %s", v, k, strings.Join(errs, ", "))
		}
		if isKubernetes(k) && !kubeletapis.IsKubeletLabel(k) {
			return nil, fmt.Errorf("kubelet: --node-labels: %q: a kubelet must not set this label of kubernetes.io", k)
		}
		out[k] = v
	}
	return out, nil
}

func isKubernetes(key string) bool {
	ns, _, _ := strings.Cut(key, "/")
	for _, domain := range []string{"kubernetes.io", "k8s.io"} {
		if ns == domain || strings.HasSuffix(ns, "."+domain) {
			return true
		}
	}
	return false
}

// parseTaints reads --register-with-taints: key=value:Effect or key:Effect.
func parseTaints(s string) ([]corev1.Taint, error) {
	var out []corev1.Taint
	for _, spec := range splitList(s) {
		kv, effect, ok := strings.Cut(spec, ":")
		key, value, _ := strings.Cut(kv, "=")
		if !ok || len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			return nil, fmt.Errorf("kubelet: --register-with-taints: invalid value %q: must be key=value:Effect or key:Effect", spec)
		}
		switch e := corev1.TaintEffect(effect); e {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
			out = append(out, corev1.Taint{Key: key, Value: value, Effect: e})
		default:
			return nil, fmt.Errorf("kubelet: --register-with-taints: invalid effect %q: must be one of NoExecute, NoSchedule and PreferNoSchedule", effect)
		}
	}
	return out, nil
}

func splitList(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
}
