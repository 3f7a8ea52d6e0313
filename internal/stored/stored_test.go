package stored_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/stored"
)

const start, end = `{"apiVersion":"machine.drover.dev/v1alpha1","kind":"Machine","metadata":{"name":"a","namespace":"b","finalizers":["f"],"deletionTimestamp":"2026-11-27T08:00:00Z"},"spec":{"version":"v1.35.4",`, `}}`

func TestFieldsThatDoNotFitAreDroppedAndRecorded(t *testing.T) {
	cases := map[string]struct {
		fields string
		want   string // of each fault, the beginning
		check  func(*v1alpha1.Machine) bool
	}{
		"WhatFitsHasNoFaults": {`"creationTimeout":"20m"`, "", func(m *v1alpha1.Machine) bool { return m.Spec.CreationTimeout.Minutes() == 20 }},
		"ADuration": {`"creationTimeout":"9999999h","failureDomain":"z"`, `spec.creationTimeout: "9999999h": `,
			func(m *v1alpha1.Machine) bool {
				return m.Spec.CreationTimeout.Duration == 0 && *m.Spec.FailureDomain == "z"
			}},
		"AFieldOfAField": {`"drain":{"hookTimeout":"99999999h","timeout":"1m"}`, `spec.drain.hookTimeout: "99999999h": `,
			func(m *v1alpha1.Machine) bool { return m.Spec.Drain.Timeout.Minutes() == 1 }},
		"AFieldOfAnElement": {`"health":{"conditions":[{"type":"A"},{"type":"B","timeout":"x"}]}`, `spec.health.conditions[1].timeout: "x": `,
			func(m *v1alpha1.Machine) bool {
				return len(m.Spec.Health.Conditions) == 2 && m.Spec.Health.Conditions[1].Type == "B"
			}},
		"AnEntryOfAMap":        {`"labels":{"a":"b","c":1}`, "", func(m *v1alpha1.Machine) bool { return true }},
		"ANumberThatIsTooLong": {`"drain":{"maxEvictRetries":10000000000000000000}`, `spec.drain.maxEvictRetries: 10000000000000000000: `, func(*v1alpha1.Machine) bool { return true }},
		"AnotherType":          {`"drain":"soon"`, `spec.drain: "soon": `, func(m *v1alpha1.Machine) bool { return m.Spec.Version == "v1.35.4" }},
		"ALongValue":           {`"drain":"` + strings.Repeat("x", 1000) + `"`, `spec.drain: "` + strings.Repeat("x", 63) + `...: `, func(*v1alpha1.Machine) bool { return true }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := &v1alpha1.Machine{}
			if err := json.Unmarshal([]byte(start+tc.fields+end), m); err != nil {
				t.Fatal(err)
			}
			if got := stored.Faults(m); !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("faults %q, want %q", got, tc.want)
			}
			if m.Name != "a" || m.Finalizers[0] != "f" || m.DeletionTimestamp == nil || !tc.check(m) {
				t.Errorf("decoded %+v", m)
			}
			if copied := m.DeepCopy(); stored.Faults(copied) != stored.Faults(m) {
				t.Error("a copy has other faults")
			}
		})
	}
}

func TestFaultsAreBoundedAndNoPartOfTheObject(t *testing.T) {
	var fields []string
	for _, f := range []string{"timeout", "gracePeriod", "hookTimeout", "volumeDetachTimeout", "volumeReattachTimeout", "maxEvictRetries", "podRules"} {
		fields = append(fields, `"`+f+`":"never"`)
	}
	m := &v1alpha1.Machine{}
	if err := json.Unmarshal([]byte(start+`"drain":{`+strings.Join(fields, ",")+`}`+end), m); err != nil {
		t.Fatal(err)
	}
	if got := stored.Faults(m); strings.Count(got, "spec.drain.") != 5 || !strings.HasSuffix(got, "; and 2 more") {
		t.Errorf("faults %q", got)
	}
	b, err := json.Marshal(m)
	if err != nil || strings.Contains(string(b), "never") {
		t.Errorf("encoded %s, error %v", b, err)
	}
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if _, ok := u["-"]; err != nil || ok {
		t.Errorf("converted to %v, error %v", u, err)
	}
	if err := json.Unmarshal([]byte(start+`"failureDomain":"z"`+end), m); err != nil || stored.Faults(m) != "" {
		t.Errorf("faults %q, error %v: they are those of the object that was decoded before", stored.Faults(m), err)
	}
}

func TestAListIsDecodedDespiteOneObject(t *testing.T) {
	list := &v1alpha1.MachineList{}
	if err := json.Unmarshal([]byte(`{"items":[`+start+`"creationTimeout":"9999999h"`+end+`,`+start+`"creationTimeout":"5m"`+end+`]}`), list); err != nil {
		t.Fatal(err)
	}
	var got []bool
	for i := range list.Items {
		got = append(got, stored.Faults(&list.Items[i]) == "")
	}
	if diff := cmp.Diff([]bool{false, true}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheConverterOfTheAPIMachineryDropsFieldsToo(t *testing.T) {
	m := &v1alpha1.Machine{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{
		"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"creationTimeout": "9999999h"},
	}, m)
	if err != nil || m.Name != "a" || stored.Faults(m) == "" {
		t.Errorf("%+v, error %v", m, err)
	}
}

func TestWhatIsNoObjectIsAnError(t *testing.T) {
	for _, text := range []string{``, `{`, `[]`, `"a"`, `1`, `{"metadata":}`} {
		if err := json.Unmarshal([]byte(text), &v1alpha1.Machine{}); err == nil {
			t.Errorf("%q is decoded", text)
		}
	}
}

// FuzzUnmarshal decodes any JSON object, and decodes the fields that were kept once more.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(start + `"creationTimeout":"9999999h"` + end))
	f.Add([]byte(`{"metadata":1,"spec":[],"status":{"conditions":[1,{"lastTransitionTime":"t"}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var raw map[string]any
		if json.Unmarshal(b, &raw) != nil || raw == nil {
			return
		}
		m := &v1alpha1.Machine{}
		if err := json.Unmarshal(b, m); err != nil {
			t.Fatal(err)
		}
		kept, err := json.Marshal(m)
		if err != nil {
			t.Skip() // A year of five digits in the offset of a time.
		}
		if err := json.Unmarshal(kept, m); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkUnmarshal(b *testing.B) {
	text := []byte(start + `"creationTimeout":"20m","drain":{"timeout":"5m","podRules":[{"order":1}]},"classRef":{"name":"small"}` + end)
	type plain v1alpha1.Machine
	b.Run("Plain", func(b *testing.B) {
		for b.Loop() {
			if err := json.Unmarshal(text, &plain{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Stored", func(b *testing.B) {
		for b.Loop() {
			if err := json.Unmarshal(text, &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{}}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
