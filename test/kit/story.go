package kit

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Story returns a line with reason and message per event of an object, in the order in which the
// events were first emitted.
func Story(events []corev1.Event, kind, name string) []string {
	var of []corev1.Event
	for _, e := range events {
		if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name {
			of = append(of, e)
		}
	}
	// The name ends in the emission time in nanoseconds. The times only have seconds.
	emitted := func(e corev1.Event) string { return e.Name[strings.LastIndex(e.Name, ".")+1:] }
	slices.SortFunc(of, func(a, b corev1.Event) int { return cmp.Compare(emitted(a), emitted(b)) })
	var story []string
	for _, e := range of {
		story = append(story, e.Reason+": "+e.Message)
	}
	return story
}
