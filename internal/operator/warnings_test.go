package operator

import (
	"context"
	"slices"
	"testing"
)

type logged struct{ texts []string }

func (l *logged) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	l.texts = append(l.texts, text)
}

func TestTheNameOfCrossplanesFinalizerIsNoWarning(t *testing.T) {
	l := &logged{}
	w := warnings{next: l}
	for _, text := range []string{
		`metadata.finalizers: "finalizer.managedresource.crossplane.io": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers`,
		`metadata.finalizers: "example.org": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers`,
		`unknown field "spec.x"`,
	} {
		w.HandleWarningHeaderWithContext(t.Context(), 299, "-", text)
	}
	if len(l.texts) != 2 || !slices.Contains(l.texts, `unknown field "spec.x"`) {
		t.Errorf("logged %q", l.texts)
	}
}
