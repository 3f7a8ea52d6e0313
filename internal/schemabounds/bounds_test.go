package schemabounds_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/drover-dev/drover/internal/schematest"
)

// values that API servers accept for one format or another, although Go decodes none of some types from them.
var values = []any{
	"", "0", "1", "9999999h", "99999999999999999999s", "0.5ms", "0.0000001s", "1h1h", "99999h99999h99999h99999h", "87600h", "87599h59m59.999999999s",
	"1.0000000000000000001h", "604800s", "1ns", "1µs", "1s1h", "-1s", "1d", "1.h", ".5h", "999999999999ms", "999999999s999999999999ms",
	"2026-11-27T08:00:00Z", "2026-11-27t08:00:00z", "2026-11-27T08:00:60Z", "2026-11-27T24:00:00Z", "2026-02-30T00:00:00Z", "0001-01-01T00:00:00Z",
	"9999-12-31T23:59:59-23:59", "0000-01-01T00:00:00Z", "2026-11-27T08:00:00+24:00", "2026-11-27T08:00:00.123456789Z", "2026-11-27T08:00:00,5Z",
	"2026-11-27 08:00:00Z", "2026-11-27T08:00:00Z and more", "2026-11-27T08:00:00", "2026-11-27",
	"1e1.5", "1e99999999999", "1E", "1Ei", ".5", "5.", "+1", "-1", "1ki", "9999999999999999999999", "0x1", "1m", "12e3", "1n", "1e-30", "1.5Gi",
	"100%", "101%", "%", "1 %", "99999999999%", "10%",
	"AAAA", "AAA=", "AA==", "A", "AA=A", "_-__", "AAAA\n", "AA=\n=", "=", "AB==", "\nAAAA",
	"%41", "\x00", "nil", "null", "true",
	int64(0), int64(1), int64(-1), int64(2), int64(1 << 31), int64(-1<<31 - 1), int64(1<<31 - 1), int64(1<<53 + 1), int64(1<<63 - 1), int64(-1 << 63),
	float64(1), 1.5, 1e19, -1e19, 1e300, 9223372036854775808.0, 9007199254740991.0, 2147483648.0, true, false,
}

// valuesOf returns the values that may fit a field. A text that may be anything needs few: if Go refuses some, it refuses
// these.
func valuesOf(l schematest.Leaf) []any {
	if l.Free && l.Type == "string" {
		return []any{"", "9999999h", "2026-11-27t08:00:00z", "1e1.5", "\x00"}
	}
	return slices.DeleteFunc(slices.Clone(values), func(v any) bool {
		_, isText := v.(string)
		return isText && l.Type != "string" && l.Type != "" || !isText && l.Type == "string"
	})
}

// TestASchemaAcceptsOnlyWhatGoDecodes walks all fields of all kinds. It fails for a new field without bounds.
func TestASchemaAcceptsOnlyWhatGoDecodes(t *testing.T) {
	s := schematest.Scheme(t)
	accepted := 0
	for _, l := range schematest.AllLeaves(t) {
		for _, v := range valuesOf(l) {
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
	v, ok := values[r.IntN(len(values))].(string)
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
