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

// ofStep reports whether a step, and not Crossplane itself, emits the event.
func (e event) ofStep() bool { return strings.HasPrefix(e.Message, "Pipeline step ") }

// justNow replaces a time of this run.
const justNow = "just now"

// began is a second before the start of the tests, because times in a status are rounded down to
// seconds.
var began = time.Now().Add(-time.Second)

// stabilize makes an output equal in each run, and its Secrets readable.
func (o *output) stabilize() {
	// function-drover reads the clock. A time before this run was observed, which shows that
	// function-drover kept it.
	if status, ok := o.Composite["status"].(map[string]any); ok {
		o.Composite["status"] = withoutNow(status)
	}
	for key := range o.Context {
		o.Context[key] = withoutNow(o.Context[key])
	}
	for _, objects := range [][]map[string]any{o.Composed, o.Deleted} {
		for _, object := range objects {
			decode(&unstructured.Unstructured{Object: object})
		}
	}
	// Crossplane emits the events about unready resources in random order.
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
	// Its requirements are in random order too, and repeated in each round.
	for _, required := range []*[]map[string]any{&o.RequiredResources, &o.RequiredSchemas} {
		slices.SortFunc(*required, func(a, b map[string]any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		*required = slices.CompactFunc(*required, func(a, b map[string]any) bool { return fmt.Sprint(a) == fmt.Sprint(b) })
	}
}

// withoutNow replaces the times of this run in a status.
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

// kinds of objects in order, separated by spaces.
func kinds(objects []map[string]any) string {
	var all []string
	for _, o := range objects {
		all = append(all, (&unstructured.Unstructured{Object: o}).GetKind()+ofGroup(o))
	}
	return strings.Join(all, " ")
}

// ofGroup returns the changes of a MachineGroup: how many Machines it keeps, creates and deletes.
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

// reasons of the steps' own events, separated by spaces.
func (o *output) reasons() string {
	var all []string
	for _, e := range o.Events {
		if e.ofStep() {
			all = append(all, e.Reason)
		}
	}
	return strings.Join(all, " ")
}
