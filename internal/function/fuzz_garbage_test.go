package function_test

import (
	"maps"
	"math"
	"slices"
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// maxChanges is the limit of changes per request: too many hide each other.
const maxChanges = 8

// A vandal changes a request in ways that no schema allows. Its bytes choose the changes, so that the
// fuzzer learns which bytes lead to which code.
type vandal struct{ bytes []byte }

// next returns the next byte, and 0 after the last one.
func (v *vandal) next() byte {
	if len(v.bytes) == 0 {
		return 0
	}
	b := v.bytes[0]
	v.bytes = v.bytes[1:]
	return b
}

// pick returns one of n numbers, where n may be more than the values of a byte.
func (v *vandal) pick(n int) int { return (int(v.next())<<8 | int(v.next())) % n }

func (v *vandal) word() string {
	n := min(int(v.next())%32, len(v.bytes))
	s := strings.ToValidUTF8(string(v.bytes[:n]), "?") // gRPC rejects strings that are not UTF-8.
	v.bytes = v.bytes[n:]
	return s
}

// spoil returns a changed copy of the request.
func (v *vandal) spoil(req *fnv1.RunFunctionRequest) *fnv1.RunFunctionRequest {
	req = proto.CloneOf(req)
	for range maxChanges {
		if len(v.bytes) == 0 {
			break
		}
		v.change(req)
	}
	return req
}

// A part of a request: a struct, and how to read, replace and remove it.
type part struct {
	get func() *structpb.Struct
	set func(*structpb.Struct)
	// resource is nil for parts that are no resource.
	resource *fnv1.Resource
	drop     func()
}

func (v *vandal) change(req *fnv1.RunFunctionRequest) {
	parts := partsOf(req)
	p := parts[v.pick(len(parts))]
	switch op := v.next(); {
	case op < 8:
		p.set(nil)
	case op < 12:
		p.set(&structpb.Struct{})
	case op < 16 && p.drop != nil:
		p.drop()
	case op < 32 && p.resource != nil:
		p.resource.ConnectionDetails = map[string][]byte{v.word(): []byte(v.word()), "token": []byte(v.word()), "ca.crt": {0xff, 0}}
	default:
		v.changeIn(p.get())
	}
}

func partsOf(req *fnv1.RunFunctionRequest) []part {
	parts := []part{
		{get: req.GetInput, set: func(s *structpb.Struct) { req.Input = s }},
		{get: req.GetContext, set: func(s *structpb.Struct) { req.Context = s }},
	}
	resource := func(r *fnv1.Resource, drop func()) {
		if r != nil {
			parts = append(parts, part{get: r.GetResource, set: func(s *structpb.Struct) { r.Resource = s }, resource: r, drop: drop})
		}
	}
	resource(req.GetObserved().GetComposite(), func() { req.Observed.Composite = nil })
	for _, s := range []*fnv1.State{req.GetObserved(), req.GetDesired()} {
		for _, name := range slices.Sorted(maps.Keys(s.GetResources())) {
			resource(s.GetResources()[name], func() { delete(s.GetResources(), name) })
		}
	}
	for _, name := range slices.Sorted(maps.Keys(req.GetRequiredResources())) {
		for _, r := range req.GetRequiredResources()[name].GetItems() {
			resource(r, func() { req.RequiredResources[name] = &fnv1.Resources{} })
		}
	}
	for _, name := range slices.Sorted(maps.Keys(req.GetRequiredSchemas())) {
		s := req.GetRequiredSchemas()[name]
		parts = append(parts, part{get: s.GetOpenapiV3, set: func(o *structpb.Struct) { s.OpenapiV3 = o }})
	}
	return parts
}

// A place is a value in a struct or list, and how to replace it.
type place struct {
	value *structpb.Value
	set   func(*structpb.Value)
	drop  func()
}

func (v *vandal) changeIn(s *structpb.Struct) {
	places := placesIn(s, nil)
	if len(places) == 0 {
		return
	}
	p := places[v.pick(len(places))]
	switch op := v.next(); {
	case op < 24 && p.drop != nil:
		p.drop()
	case op < 48:
		p.set(proto.CloneOf(places[v.pick(len(places))].value))
	default:
		p.set(v.garbage())
	}
}

func placesIn(s *structpb.Struct, to []place) []place {
	for _, k := range slices.Sorted(maps.Keys(s.GetFields())) {
		to = append(to, place{
			value: s.Fields[k],
			set:   func(n *structpb.Value) { s.Fields[k] = n },
			drop:  func() { delete(s.Fields, k) },
		})
		to = placesOf(s.Fields[k], to)
	}
	return to
}

func placesOf(v *structpb.Value, to []place) []place {
	to = placesIn(v.GetStructValue(), to)
	for i, e := range v.GetListValue().GetValues() {
		to = append(to, place{value: e, set: func(n *structpb.Value) { v.GetListValue().Values[i] = n }})
		to = placesOf(e, to)
	}
	return to
}

func (v *vandal) garbage() *structpb.Value {
	list := func(vs ...*structpb.Value) *structpb.Value {
		return structpb.NewListValue(&structpb.ListValue{Values: vs})
	}
	object := func(k string, val *structpb.Value) *structpb.Value {
		return structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{k: val}})
	}
	numbers := []float64{0, 1, -1, 0.5, 3, 100, math.MaxInt32, math.MaxInt32 + 1, 1 << 32, math.MinInt32 - 1, 1 << 53, 1 << 63, -(1 << 63), 1e300, math.NaN(), math.Inf(1)}
	words := []string{
		"", "x", "0", "-1", "true", "null", "2030-01-01T12:00:00Z", "not a time", "9999999999h", "-1s", "1h", "{}", "[", "a/b/c/d", "..", "Running", "Failed", "Terminating",
		strings.Repeat("a", 300), "ünïcode\n\t\x00", "AAAA", "!!! no base64", "10%", "-10%", "1000000%", "Recreate", "drover.dev/x", "machine.drover.dev/v1alpha1",
	}
	switch op := v.next() % 10; op {
	case 0:
		return structpb.NewNullValue()
	case 1:
		return structpb.NewBoolValue(v.next()%2 == 0)
	case 2, 3:
		return structpb.NewNumberValue(numbers[v.pick(len(numbers))])
	case 4, 5:
		return structpb.NewStringValue(words[v.pick(len(words))])
	case 6:
		return structpb.NewStringValue(v.word())
	case 7:
		return list(structpb.NewNullValue(), structpb.NewNumberValue(1), list(), object("a", list()))
	case 8:
		return object(v.word(), object("", structpb.NewNullValue()))
	default:
		return &structpb.Value{} // The value has no kind at all.
	}
}
