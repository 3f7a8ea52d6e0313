package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An output is the document that the renderer prints.
type output struct {
	Composite map[string]any   `json:"composite"`
	Composed  []map[string]any `json:"composed,omitempty"`
	Deleted   []map[string]any `json:"deleted,omitempty"`
	Events    []event          `json:"events,omitempty"`

	RequiredResources []map[string]any `json:"requiredResources,omitempty"`
	RequiredSchemas   []map[string]any `json:"requiredSchemas,omitempty"`

	// Context at the end of the pipeline of a Machine.
	Context map[string]any `json:"context,omitempty"`
}

type event struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// ofStep says whether a step, and not Crossplane itself, emits the event.
func (e event) ofStep() bool { return strings.HasPrefix(e.Message, "Pipeline step ") }

// justNow stands for a time of this run.
const justNow = "just now"

// began is a little before the tests, since times have whole seconds.
var began = time.Now().Add(-time.Second)

// stabilize makes an output the same for each run, and its Secrets readable.
func (o *output) stabilize() {
	// function-drover reads the clock. A time that is older was observed, and says
	// that the fact is not new.
	if status, ok := o.Composite["status"].(map[string]any); ok {
		o.Composite["status"] = withoutNow(status)
	}
	for _, objects := range [][]map[string]any{o.Composed, o.Deleted} {
		for _, object := range objects {
			decode(&unstructured.Unstructured{Object: object})
		}
	}
	// Crossplane tells of what is not ready in the order of a map.
	slices.SortStableFunc(o.Events, func(a, b event) int {
		switch {
		case a.ofStep() && b.ofStep():
			return 0
		case a.ofStep():
			return -1
		case b.ofStep():
			return 1
		}
		return cmp.Compare(a.Message, b.Message)
	})
	// It asks in such an order too, and again in each round.
	for _, required := range []*[]map[string]any{&o.RequiredResources, &o.RequiredSchemas} {
		slices.SortFunc(*required, func(a, b map[string]any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		*required = slices.CompactFunc(*required, func(a, b map[string]any) bool { return fmt.Sprint(a) == fmt.Sprint(b) })
	}
}

// withoutNow replaces the times of this run in what a status holds.
func withoutNow(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = withoutNow(v[k])
		}
	case []any:
		for i := range v {
			v[i] = withoutNow(v[i])
		}
	case string:
		if t, err := time.Parse(time.RFC3339, v); err == nil && t.After(began) {
			return justNow
		}
	}
	return v
}

// kinds of objects in their order, with blanks between.
func kinds(objects []map[string]any) string {
	var all []string
	for _, o := range objects {
		all = append(all, (&unstructured.Unstructured{Object: o}).GetKind()+ofGroup(o))
	}
	return strings.Join(all, " ")
}

// ofGroup tells what a MachineGroup has done: how many Machines it keeps, creates and
// deletes.
func ofGroup(o map[string]any) string {
	if o["kind"] != "MachineGroup" {
		return ""
	}
	machines, _, _ := unstructured.NestedSlice(o, "spec", "machines")
	doomed, _, _ := unstructured.NestedSlice(o, "spec", "delete")
	created := 0
	for _, m := range machines {
		if m.(map[string]any)["create"] == true {
			created++
		}
	}
	return fmt.Sprintf("(%d+%d-%d)", len(machines)-created, created, len(doomed))
}

// reasons of the steps' own events, with blanks between.
func (o *output) reasons() string {
	var all []string
	for _, e := range o.Events {
		if e.ofStep() {
			all = append(all, e.Reason)
		}
	}
	return strings.Join(all, " ")
}
