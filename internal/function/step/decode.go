package step

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/stored"
)

// Composite decodes the observed XR. It ignores unknown fields, and a status that cannot be decoded:
// the step rewrites the status, so that is no reason to stop.
func Composite(req *fnv1.RunFunctionRequest, into any) error {
	s := req.GetObserved().GetComposite().GetResource()
	if s == nil {
		return fmt.Errorf("the request has no observed composite resource")
	}
	m := resource(s)
	err := strictly(m, into)
	if err == nil {
		return nil
	}
	delete(m, "status")
	reflect.ValueOf(into).Elem().SetZero()
	if strictly(m, into) == nil {
		return nil
	}
	return fmt.Errorf("cannot decode the observed composite resource: %w", err)
}

// A NotDecodableError has the fields of an object that its type cannot decode, with their values.
type NotDecodableError struct{ Fields string }

// Error implements error.
func (e *NotDecodableError) Error() string { return e.Fields }

// strictly decodes by way of JSON: the converter of the API machinery would turn a number that is too
// large for its field into another number. A field that does not fit is an error: its default would be
// another decision than the one that the field asks for.
func strictly(m map[string]any, into any) error {
	if err := tolerantly(m, into); err != nil {
		return err
	}
	if fields := stored.Faults(into); fields != "" {
		return &NotDecodableError{Fields: fields}
	}
	return nil
}

func tolerantly(m map[string]any, into any) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(b, into)
}

// Observed returns the observed composed resources by their composition resource
// names.
func Observed(req *fnv1.RunFunctionRequest) map[string]plan.Object {
	out := make(map[string]plan.Object, len(req.GetObserved().GetResources()))
	for name, r := range req.GetObserved().GetResources() {
		out[name] = object(r)
	}
	return out
}

// Desired returns a resource that an earlier step desires.
func Desired(req *fnv1.RunFunctionRequest, name string) (plan.Object, bool) {
	r, ok := req.GetDesired().GetResources()[name]
	if !ok {
		return plan.Object{}, false
	}
	return object(r), true
}

// Required returns the resources that a requirement of this step selects. It returns false while
// Crossplane has not looked for them yet: the step then returns only its requirements, and is called
// again at once.
func Required(req *fnv1.RunFunctionRequest, requirement string) ([]plan.Object, bool) {
	rs, ok := req.GetRequiredResources()[requirement]
	if !ok {
		return nil, false
	}
	out := make([]plan.Object, 0, len(rs.GetItems()))
	for _, r := range rs.GetItems() {
		out = append(out, object(r))
	}
	return out, true
}

// As decodes an observed resource into a typed one. It ignores unknown fields.
func As[T any](o plan.Object) (*T, error) {
	into := new(T)
	if err := strictly(o.Object, into); err != nil {
		return nil, fmt.Errorf("cannot decode %s %q: %w", o.GetKind(), o.GetName(), err)
	}
	return into, nil
}

// PartsAs decodes an observed resource into a typed one, without the fields that do not fit: see package
// stored. It serves the decision about many objects, which must not depend on one of them.
func PartsAs[T any](o plan.Object) (*T, error) {
	into := new(T)
	if err := tolerantly(o.Object, into); err != nil {
		return nil, fmt.Errorf("cannot decode %s %q: %w", o.GetKind(), o.GetName(), err)
	}
	return into, nil
}

// Input decodes the step's input.
func Input(req *fnv1.RunFunctionRequest, into any) error {
	if req.GetInput() == nil {
		return fmt.Errorf("the step has no input")
	}
	if err := strictly(asMap(req.GetInput()), into); err != nil {
		return fmt.Errorf("cannot decode the step's input: %w", err)
	}
	return nil
}

func object(r *fnv1.Resource) plan.Object {
	return plan.Object{
		Unstructured: &unstructured.Unstructured{Object: resource(r.GetResource())},
		Connection:   r.GetConnectionDetails(),
	}
}

// resource omits the managed fields. They are half of an object, and steps read them only from the
// request itself.
func resource(s *structpb.Struct) map[string]any {
	fields := maps.Clone(s.GetFields())
	if meta := fields["metadata"].GetStructValue(); meta != nil {
		rest := maps.Clone(meta.GetFields())
		delete(rest, "managedFields")
		fields["metadata"] = structpb.NewStructValue(&structpb.Struct{Fields: rest})
	}
	return asMap(&structpb.Struct{Fields: fields})
}

// asMap is structpb's AsMap with whole numbers as int64, as the converters and deep copies of the API
// machinery require.
func asMap(s *structpb.Struct) map[string]any {
	m := make(map[string]any, len(s.GetFields()))
	for k, v := range s.GetFields() {
		m[k] = asValue(v)
	}
	return m
}

func asValue(v *structpb.Value) any {
	switch k := v.GetKind().(type) {
	case *structpb.Value_NumberValue:
		if i := int64(k.NumberValue); float64(i) == k.NumberValue {
			return i
		}
		return k.NumberValue
	case *structpb.Value_StringValue:
		return k.StringValue
	case *structpb.Value_BoolValue:
		return k.BoolValue
	case *structpb.Value_StructValue:
		return asMap(k.StructValue)
	case *structpb.Value_ListValue:
		l := make([]any, 0, len(k.ListValue.GetValues()))
		for _, e := range k.ListValue.GetValues() {
			l = append(l, asValue(e))
		}
		return l
	default:
		return nil
	}
}
