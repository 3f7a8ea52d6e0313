package schematest

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/drover-dev/drover/internal/jsonmap"
)

// Extremes are values that API servers accept for one format or another, although Go decodes none of some types from
// them.
var Extremes = []any{
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

// Extremes returns the values that may fit a field. A text that may be anything needs few: if Go refuses some, it refuses
// these.
func (l Leaf) Extremes() []any {
	if l.Free && l.Type == "string" {
		return []any{"", "9999999h", "2026-11-27t08:00:00z", "1e1.5", "\x00"}
	}
	return slices.DeleteFunc(slices.Clone(Extremes), func(v any) bool {
		_, isText := v.(string)
		return isText && l.Type != "string" && l.Type != "" || !isText && l.Type == "string"
	})
}

// In returns a copy of an object in which the field has the value. A list and a map on the way to the field have only this
// one element.
func (l Leaf) In(obj map[string]any, value any) map[string]any {
	out := runtime.DeepCopyJSON(obj)
	jsonmap.Merge(out, l.Object(value))
	return out
}
