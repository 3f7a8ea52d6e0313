package kit

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestASnapshotComparesAllButWhatChangesAtRest checks whether a Snapshot considers two versions
// of an object equal.
func TestASnapshotComparesAllButWhatChangesAtRest(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after string
		same          bool
	}{
		"AHeartbeatOfANode": {
			`{"apiVersion":"v1","kind":"Node","metadata":{"resourceVersion":"1"},"spec":{"taints":[{"key":"a"}]},"status":{"conditions":[{"lastHeartbeatTime":"1"}]}}`,
			`{"apiVersion":"v1","kind":"Node","metadata":{"resourceVersion":"2","managedFields":[{}]},"spec":{"taints":[{"key":"a"},{"key":"node.kubernetes.io/unreachable"}]},"status":{"conditions":[{"lastHeartbeatTime":"2"}]}}`,
			true,
		},
		"ATaintOfANode": {
			`{"apiVersion":"v1","kind":"Node","metadata":{},"spec":{"taints":[{"key":"a"}]}}`,
			`{"apiVersion":"v1","kind":"Node","metadata":{},"spec":{"taints":[{"key":"a"},{"key":"b"}]}}`,
			false,
		},
		"ALabelOfANode": {
			`{"apiVersion":"v1","kind":"Node","metadata":{"labels":{"a":"b"}}}`,
			`{"apiVersion":"v1","kind":"Node","metadata":{"labels":{"a":"c"}}}`,
			false,
		},
		"TheUseOfATokenSecret": {
			`{"apiVersion":"v1","kind":"Secret","metadata":{},"data":{"a":"b"}}`,
			`{"apiVersion":"v1","kind":"Secret","metadata":{"labels":{"kubernetes.io/legacy-token-last-used":"today"}},"data":{"a":"b"}}`,
			true,
		},
		"TheDataOfASecret": {
			`{"apiVersion":"v1","kind":"Secret","metadata":{},"data":{"a":"b"}}`,
			`{"apiVersion":"v1","kind":"Secret","metadata":{},"data":{"a":"c"}}`,
			false,
		},
		"TheStatusOfAnother": {
			`{"apiVersion":"machine.drover.dev/v1alpha1","kind":"Machine","metadata":{},"status":{"conditions":[{"reason":"A"}]}}`,
			`{"apiVersion":"machine.drover.dev/v1alpha1","kind":"Machine","metadata":{},"status":{"conditions":[{"reason":"B"}]}}`,
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := steadied(t, tc.before), steadied(t, tc.after)
			if (before == after) != tc.same {
				t.Errorf("same: %t, want %t: %s and %s", before == after, tc.same, before, after)
			}
		})
	}
}

// TestASnapshotKeepsNoSecret checks that no secret can be in a difference, because differences
// are printed.
func TestASnapshotKeepsNoSecret(t *testing.T) {
	if text := steadied(t, `{"apiVersion":"v1","kind":"Secret","metadata":{},"data":{"a":"very-secret"}}`); strings.Contains(text, "very-secret") {
		t.Error(text)
	}
}

func steadied(t *testing.T, text string) string {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	steady(o)
	b, err := json.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
