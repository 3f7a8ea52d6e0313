package function

import (
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/orphans"
	"github.com/drover-dev/drover/internal/plan/vm"
)

// orphanExpressions are compiled, by their place and text. Each cloud has one or two.
var orphanExpressions = lru.New(64)

// orphanExpression compiles the value of a field, or remembers that it did.
func orphanExpression(place, text string) (*vm.Expression, error) {
	key := place + "\n" + text
	if e, ok := orphanExpressions.Get(key); ok {
		return e.(*vm.Expression), nil //nolint:forcetypeassert // Nothing else is stored.
	}
	e, err := vm.NewExpression(place, text, "externalName", "providerID")
	if err != nil {
		return nil, err
	}
	orphanExpressions.Add(key, e)
	return e, nil
}

func placeOfField(i int, f fn.OrphanField) string {
	return fmt.Sprintf("the Composition's input Orphans: virtualMachine.fields[%d].value (of %s)", i, f.Path)
}

// validateFields refuses what cannot be set in a VM resource, before there is an orphan.
func validateFields(fields []fn.OrphanField) error {
	for i, f := range fields {
		if segments, err := fieldpath.Parse(f.Path); err != nil || len(segments) < 3 || segments[0].Field != "spec" || segments[1].Field != "forProvider" || strings.Contains(f.Path, "*") {
			return fmt.Errorf("the Composition's input Orphans: virtualMachine.fields[%d].path: invalid value %q: must name one field below spec.forProvider", i, f.Path)
		}
		if _, err := orphanExpression(placeOfField(i, f), f.Value); err != nil {
			return err
		}
	}
	return nil
}

// setFields by which the provider finds an orphan, in place of those of the collector.
func setFields(u *unstructured.Unstructured, fields []fn.OrphanField, r orphans.Resource) error {
	for i, f := range fields {
		e, err := orphanExpression(placeOfField(i, f), f.Value)
		if err != nil {
			return err
		}
		value, err := e.Eval(map[string]any{"externalName": r.ExternalName, "providerID": r.ProviderID})
		if err != nil {
			return err
		}
		if value == nil {
			continue
		}
		if err := fieldpath.Pave(u.Object).SetValue(f.Path, value); err != nil {
			return fmt.Errorf("spec.forProvider: cannot set %s of a VM: %w", f.Path, err)
		}
	}
	return nil
}
