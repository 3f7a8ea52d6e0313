package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ofEvents is the place of a reason that is one of events.
const ofEvents = "Events"

const indexIntro = `# All reasons

<!-- Generated from apis/*/v1alpha1/reasons.go and the codes of errors by "make generate". Do not edit. -->

Each reason of a condition, an event, a failure or a deletion, alphabetically, as ` + "`kubectl drover status`, `kubectl describe`" + ` and events print it.
The links lead to its meaning and its cure.

`

// An entry of the index is a reason with the places of docs/conditions.md that have it.
type entry struct{ reason, place string }

// entries returns all reasons, sorted.
func entries(all []constant, codes []section) []entry {
	var out []entry
	for _, c := range withPrefix(all, "Reason") {
		for _, kind := range c.kinds() {
			out = append(out, entry{c.value, kind})
		}
	}
	for _, s := range codes {
		for _, c := range s.rows {
			out = append(out, entry{c.value, s.title})
		}
	}
	for _, c := range withPrefix(all, "Event") {
		out = append(out, entry{c.value, ofEvents})
	}
	// The places of a reason stay in the order of the page.
	slices.SortStableFunc(out, func(a, b entry) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.reason), strings.ToLower(b.reason)), strings.Compare(a.reason, b.reason))
	})
	return slices.Compact(out)
}

// renderIndex returns the page with all reasons.
func renderIndex(all []constant, codes []section) string {
	places := map[string][]string{}
	for _, e := range entries(all, codes) {
		places[e.reason] = append(places[e.reason], fmt.Sprintf("[%s](../conditions.md#%s)", e.place, anchor(e.place, e.reason)))
	}
	var out strings.Builder
	out.WriteString(indexIntro + "| reason | of |\n|---|---|\n")
	for _, reason := range slices.SortedFunc(maps.Keys(places), func(a, b string) int {
		return cmp.Or(strings.Compare(strings.ToLower(a), strings.ToLower(b)), strings.Compare(a, b))
	}) {
		fmt.Fprintf(&out, "| %s | %s |\n", code(reason), strings.Join(places[reason], ", "))
	}
	return out.String()
}

// anchor of a reason in the table of a kind or of another place.
func anchor(place, reason string) string {
	return strings.ReplaceAll(strings.ToLower(place+"-"+reason), " ", "-")
}

// anchored returns the cell of a reason, to which links lead.
func anchored(place, reason string) string {
	return fmt.Sprintf("<a id=%q></a>%s", anchor(place, reason), code(reason))
}
