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

// StartsSince returns the time from which a Machine had the chance to start: its creation, or when the cloud last ceased to
// refuse its VM, nil for never.
func StartsSince(m *machinev1alpha1.Machine, refusedUntil *metav1.Time) time.Time {
	if refusedUntil != nil && refusedUntil.After(m.CreationTimestamp.Time) {
		return refusedUntil.Time
	}
	return m.CreationTimestamp.Time
}

// CreationTimeout returns the creation timeout of a Machine: 20 minutes by default.
func CreationTimeout(m *machinev1alpha1.Machine) time.Duration {
	return Timeout(m.Spec.CreationTimeout, 20*time.Minute)
}
