package schemabounds_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/drover-dev/drover/internal/schematest"
)

// TestASchemaAcceptsOnlyWhatGoDecodes walks all fields of all kinds. It fails for a new field without bounds.
func TestASchemaAcceptsOnlyWhatGoDecodes(t *testing.T) {
	s := schematest.Scheme(t)
	accepted := 0
	for _, l := range schematest.AllLeaves(t) {
		for _, v := range l.Extremes() {
			ok, err := check(s, l, v)
			if err != nil {
				t.Error(err)
			}
			if ok {
				accepted++
			}
		}
	}
	if accepted < 5_000 {
		t.Errorf("only %d values were accepted", accepted)
	}
}

// TestASchemaAcceptsOnlyWhatGoDecodesOfRandomText changes texts that a schema may accept at random places.
func TestASchemaAcceptsOnlyWhatGoDecodesOfRandomText(t *testing.T) {
	s := schematest.Scheme(t)
	accepted := 0
	for seed, l := range schematest.AllLeaves(t) {
		if l.Free || l.Type != "string" && l.Type != "" {
			continue
		}
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		for range 10 {
			ok, err := check(s, l, text(r))
			if err != nil {
				t.Error(err)
			}
			if ok {
				accepted++
			}
		}
	}
	if accepted < 200 {
		t.Errorf("only %d texts were accepted", accepted)
	}
}

// FuzzASchemaAcceptsOnlyWhatGoDecodes sends texts and numbers to each field that has a format or a pattern.
func FuzzASchemaAcceptsOnlyWhatGoDecodes(f *testing.F) {
	f.Add("9999999h", int64(1<<53))
	f.Add("2026-11-27t08:00:00z", int64(-1))
	s := schematest.Scheme(f)
	f.Fuzz(func(t *testing.T, text string, number int64) {
		for _, l := range schematest.AllLeaves(t) {
			if l.Free && l.Type != "integer" && l.Type != "" {
				continue
			}
			for _, v := range []any{text, number, float64(number) * 1e3} {
				if _, err := check(s, l, v); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// pieces of texts.
var pieces = []string{"1", "9", "0", "99999", "h", "m", "s", "ms", "µs", "ns", ".", "-", "+", "T", "t", "Z", "z", ":", "2026-11-27", "T08:00:00", "Z", "e", "Ki", "G", "%", "=", "AA", "\n"}

func text(r *rand.Rand) string {
	if r.IntN(3) == 0 {
		n := 1 + r.IntN(8)
		var b strings.Builder
		for range n {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		return b.String()
	}
	v, ok := schematest.Extremes[r.IntN(len(schematest.Extremes))].(string)
	if !ok {
		return ""
	}
	at := r.IntN(len(v) + 1)
	return v[:at] + pieces[r.IntN(len(pieces))] + v[at:]
}

// check decodes a value that a field's schema accepts, encodes the object, and validates the value again. It
// reports whether the schema accepts the value.
func check(s *runtime.Scheme, l schematest.Leaf, value any) (bool, error) {
	if len(l.Validate(value)) > 0 {
		return false, nil
	}
	b, err := json.Marshal(l.Object(value))
	if err != nil {
		return true, err
	}
	obj, err := s.New(l.Kind)
	if err != nil {
		return true, fmt.Errorf("%s: %w", l, err)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(b, obj); err != nil {
		return true, fmt.Errorf("%s: the schema accepts %#v, and Go does not: %w", l, value, err)
	}
	again := map[string]any{}
	if b, err = json.Marshal(obj); err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(b, &again)
	}
	if err != nil {
		return true, fmt.Errorf("%s: %#v cannot be encoded again: %w", l, value, err)
	}
	// A number that stays the same is not validated again: 1e3 and 1000 are the same JSON to Go.
	if got, ok := l.Value(again); ok && !sameJSON(got, value) {
		if errs := l.Validate(got); len(errs) > 0 {
			return true, fmt.Errorf("%s: %#v is encoded as %#v, which the schema refuses: %w", l, value, got, errs.ToAggregate())
		}
	}
	return true, nil
}

func sameJSON(a, b any) bool {
	x, xerr := json.Marshal(a)
	y, yerr := json.Marshal(b)
	return xerr == nil && yerr == nil && string(x) == string(y)
}
