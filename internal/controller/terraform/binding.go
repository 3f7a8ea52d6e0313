package terraform

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"

	"github.com/drover-dev/drover/apis/terraform/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/vm"
)

// A binding is a VirtualMachineType with compiled expressions.
type binding struct {
	v1alpha1.VirtualMachineType
	arguments []*vm.Expression

	providerID, addresses, running, failed, externalName *vm.Expression
}

// Variables of the expressions.
var (
	argumentVariables = []string{"name", "tags", "failureDomain", "arguments"}
	outputVariables   = []string{"name", "state"}
)

// bind compiles the type at an index of spec.virtualMachines.
func bind(i int, t v1alpha1.VirtualMachineType) (*binding, error) {
	b := &binding{VirtualMachineType: t}
	place := fmt.Sprintf("spec.virtualMachines[%d]", i)
	for j, a := range t.Arguments {
		e, err := vm.NewExpression(fmt.Sprintf("%s.arguments[%d].value", place, j), a.Value, argumentVariables...)
		if err != nil {
			return nil, err
		}
		b.arguments = append(b.arguments, e)
	}
	for _, o := range []struct {
		name, text string
		into       **vm.Expression
	}{
		{"providerID", t.Outputs.ProviderID, &b.providerID},
		{"addresses", t.Outputs.Addresses, &b.addresses},
		{"running", t.Outputs.Running, &b.running},
		{"failed", t.Outputs.Failed, &b.failed},
		{"externalName", t.Outputs.ExternalName, &b.externalName},
	} {
		if o.text == "" {
			continue
		}
		e, err := vm.NewExpression(place+".outputs."+o.name, o.text, outputVariables...)
		if err != nil {
			return nil, err
		}
		*o.into = e
	}
	return b, nil
}

// argumentsOf returns the arguments of a VM: the class's, then those of the binding, then the user
// data.
func (b *binding) argumentsOf(p v1alpha1.VirtualMachineParameters, userData []byte) (map[string]any, error) {
	given := map[string]any{}
	if p.Arguments != nil {
		if err := json.Unmarshal(p.Arguments.Raw, &given); err != nil {
			return nil, fmt.Errorf("spec.forProvider.arguments: must be an object: %w", err)
		}
	}
	tags := make(map[string]any, len(p.Tags))
	for k, v := range p.Tags {
		tags[k] = v
	}
	variables := map[string]any{"name": p.Name, "tags": tags, "failureDomain": p.FailureDomain, "arguments": given}
	out := fieldpath.Pave(map[string]any{})
	if p.Arguments != nil {
		// A copy, as the expressions hold the first one.
		if err := json.Unmarshal(p.Arguments.Raw, out); err != nil {
			return nil, err
		}
	}
	for i, a := range b.Arguments {
		v, err := b.arguments[i].Eval(variables)
		if err != nil {
			return nil, err
		}
		if err := set(out, a.Argument, v); err != nil {
			return nil, err
		}
	}
	if userData != nil {
		text := string(userData)
		if b.UserData.Encoding == v1alpha1.EncodingBase64 {
			text = base64.StdEncoding.EncodeToString(userData)
		}
		if err := set(out, b.UserData.Argument, text); err != nil {
			return nil, err
		}
	}
	return out.UnstructuredContent(), nil
}

// set sets an argument. Nil leaves it unchanged, and a map is merged into the present one.
func set(p *fieldpath.Paved, argument string, v any) error {
	if v == nil {
		return nil
	}
	if m, ok := v.(map[string]any); ok {
		if there, err := p.GetValue(argument); err == nil {
			if old, ok := there.(map[string]any); ok {
				merged := map[string]any{}
				for _, from := range []map[string]any{old, m} {
					for k, v := range from {
						merged[k] = v
					}
				}
				v = merged
			}
		}
	}
	if err := p.SetValue(argument, v); err != nil {
		return fmt.Errorf("argument %s: %w", argument, err)
	}
	return nil
}

// An output has the values that a binding reads from a state.
type output struct {
	providerID, failed, externalName string
	running                          bool
	addresses                        []v1alpha1.Address
}

// read returns the outputs of a VM that exists.
func (b *binding) read(name string, state map[string]any) (output, error) {
	variables := map[string]any{"name": name, "state": state}
	out := output{running: true}
	var err error
	if out.providerID, err = evalAs(b.providerID, "a string", variables, ""); err != nil {
		return out, err
	}
	if out.failed, err = evalAs(b.failed, "a string", variables, ""); err != nil {
		return out, err
	}
	if out.running, err = evalAs(b.running, "a bool", variables, true); err != nil {
		return out, err
	}
	list, err := evalAs(b.addresses, "a list", variables, []any{})
	if err != nil {
		return out, err
	}
	if out.addresses, err = addressesOf(list); err != nil {
		return out, err
	}
	out.externalName, err = b.nameOf(variables)
	return out, err
}

// nameOf returns the external name of a resource.
func (b *binding) nameOf(variables map[string]any) (string, error) {
	if b.externalName != nil {
		return evalAs(b.externalName, "a string", variables, "")
	}
	state, _ := variables["state"].(map[string]any)
	switch id := state["id"].(type) {
	case string:
		return id, nil
	case nil:
		return "", nil
	default:
		return fmt.Sprint(id), nil
	}
}

// evalAs evaluates an expression to a type. If there is no expression, it returns the argument
// otherwise. If the expression has no value, it returns the zero value.
func evalAs[T any](e *vm.Expression, kind string, variables map[string]any, otherwise T) (T, error) {
	if e == nil {
		return otherwise, nil
	}
	v, err := e.Eval(variables)
	if err != nil || v == nil {
		var zero T
		return zero, err
	}
	t, ok := v.(T)
	if !ok {
		return t, fmt.Errorf("an output of the configuration must be %s, is %T", kind, v)
	}
	return t, nil
}

func addressesOf(list []any) ([]v1alpha1.Address, error) {
	var out []v1alpha1.Address
	for _, e := range list {
		m, _ := e.(map[string]any)
		typ, _ := m["type"].(string)
		address, _ := m["address"].(string)
		if typ == "" {
			return nil, fmt.Errorf("outputs.addresses: must be a list of {type, address}, has %v", e)
		}
		if address != "" {
			out = append(out, v1alpha1.Address{Type: typ, Address: address})
		}
	}
	return out, nil
}
