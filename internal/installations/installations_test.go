package installations

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func TestGone(t *testing.T) {
	cases := map[string]struct {
		record  map[string]string
		present string
		want    string
	}{
		"NoRecordProvesNothing":                   {nil, "b", ""},
		"AReplacedInstallationIsGone":             {map[string]string{"a": "Replaced at 2030-01-01T12:00:00Z", "b": "Current since then"}, "b", "a"},
		"OneThatAnOperatorCallsLostIsGone":        {map[string]string{"a": "Lost", "b": "Current since then"}, "b", "a"},
		"OneThatIsLostWithAReasonIsGone":          {map[string]string{"a": "Lost: the data centre burnt", "b": "Current"}, "b", "a"},
		"ThePresentInstallationIsNotGone":         {map[string]string{"b": "Current since then"}, "b", ""},
		"AnUnknownOneIsNotGone":                   {map[string]string{"b": "Current since then"}, "b", ""},
		"OneOfAnotherControlClusterIsNotGone":     {map[string]string{"a": "Elsewhere, in the record of x: Replaced", "b": "Current"}, "b", ""},
		"OneWithAnUnknownWordIsNotGone":           {map[string]string{"a": "lost", "c": "Losty", "d": "", "b": "Current"}, "b", ""},
		"ARestoredRecordProvesNothing":            {map[string]string{"a": "Replaced at then", "b": "Current since then"}, "c", ""},
		"ARecordOfAReplacedOneProvesNothingToo":   {map[string]string{"a": "Replaced at then", "b": "Replaced at then"}, "b", ""},
		"WithoutAPresentInstallationNothingIsOut": {map[string]string{"a": "Lost", "": "Current"}, "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(slices.Sorted(maps.Keys(Gone(tc.record, tc.present))), " "); got != tc.want {
				t.Errorf("gone: %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNext(t *testing.T) {
	const at = "2030-01-01T12:00:00Z"
	cases := map[string]struct {
		record  map[string]string
		present string
		want    map[string]string // nil if nothing changes
	}{
		"TheFirstInstallationIsRecorded": {nil, "a", map[string]string{"control-cluster": "here", "a": "Current since " + at}},
		"AnUnchangedRecordIsNotWritten":  {map[string]string{"control-cluster": "here", "a": "Current since earlier"}, "a", nil},
		"AnInstallationIsReplaced": {
			map[string]string{"control-cluster": "here", "a": "Current since earlier"}, "b",
			map[string]string{"control-cluster": "here", "a": "Replaced at " + at + ", was Current since earlier", "b": "Current since " + at},
		},
		"WhatAnOperatorWroteStays": {
			map[string]string{"control-cluster": "here", "a": "Current since earlier", "z": "Lost, fire"}, "b",
			map[string]string{"control-cluster": "here", "a": "Replaced at " + at + ", was Current since earlier", "b": "Current since " + at, "z": "Lost, fire"},
		},
		"WhatAnOperatorWroteFirstStays": {map[string]string{"z": "Lost"}, "a", map[string]string{"control-cluster": "here", "z": "Lost", "a": "Current since " + at}},
		"InAnotherControlClusterNothingIsReplaced": {
			map[string]string{"control-cluster": "there", "a": "Current since earlier", "z": "Lost", "y": "Replaced at then"}, "b",
			map[string]string{
				"control-cluster": "here", "b": "Current since " + at,
				"a": "Elsewhere, in the record of control cluster there: Current since earlier",
				"z": "Elsewhere, in the record of control cluster there: Lost",
				"y": "Elsewhere, in the record of control cluster there: Replaced at then",
			},
		},
		"AnEntryOfElsewhereStaysAsItIs": {
			map[string]string{"control-cluster": "there", "a": "Elsewhere, in the record of yonder: Current"}, "b",
			map[string]string{"control-cluster": "here", "b": "Current since " + at, "a": "Elsewhere, in the record of yonder: Current"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := maps.Clone(tc.record)
			got, changed := Next(tc.record, tc.present, "here", noon)
			if changed != (tc.want != nil) {
				t.Errorf("changed %v: %v", changed, got)
			}
			if tc.want == nil {
				tc.want = tc.record
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if d := cmp.Diff(before, tc.record); d != "" {
				t.Errorf("the record that was given is changed:\n%s", d)
			}
			if again, changed := Next(got, tc.present, "here", noon.Add(time.Hour)); changed {
				t.Errorf("it changes again: %v", again)
			}
		})
	}
}

// TestARecordThatIsMovedProvesNothing: neither before nor after provider-drover corrects it.
func TestARecordThatIsMovedProvesNothing(t *testing.T) {
	record := map[string]string{KeyControlCluster: "there", "a": "Current since earlier", "y": "Replaced at then", "z": "Lost"}
	if gone := Gone(record, "b"); len(gone) > 0 {
		t.Errorf("before: %v", gone)
	}
	next, _ := Next(record, "b", "here", noon)
	if gone := Gone(next, "b"); len(gone) > 0 {
		t.Errorf("after: %v", gone)
	}
}
