package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Timeout returns a duration of a spec, or the default of its schema if it is not set.
func Timeout(d metav1.Duration, otherwise time.Duration) time.Duration {
	if d.Duration > 0 {
		return d.Duration
	}
	return otherwise
}

// CreationTimeout returns the creation timeout of a Machine: 20 minutes by default.
func CreationTimeout(m *machinev1alpha1.Machine) time.Duration {
	return Timeout(m.Spec.CreationTimeout, 20*time.Minute)
}
