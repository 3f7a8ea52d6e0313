// Package installations reads and writes the record of the installations of Drover that a
// control cluster had: the data of the ConfigMap drover-installations. VMs of a former
// installation may be deleted only if the record proves that it is gone, since nothing else
// shows whether another control plane still runs them.
//
// Each installation is an entry by its ID, the UID of a CompositeResourceDefinition that can
// be there only once in a control cluster. The first word of the value counts:
//
//	Current    it is installed now
//	Replaced   this control cluster had it, and has another one now: it is gone
//	Lost       an operator wrote that its control cluster is gone
//	Elsewhere  the record came from another control cluster, for example with a backup
//
// The record proves something only while it names the present installation as Current. A
// record that was restored into another control cluster does not, until provider-drover there
// has found out and made Elsewhere of all its entries.
package installations

import (
	"maps"
	"strings"
	"time"
)

// KeyControlCluster is the entry with the UID of the namespace kube-system of the control
// cluster that the record is about.
const KeyControlCluster = "control-cluster"

const (
	current   = "Current"
	replaced  = "Replaced"
	lost      = "Lost"
	elsewhere = "Elsewhere"
)

// Gone returns the installations that the record proves to be gone. The present installation is that of the
// cluster from which the record was read.
func Gone(record map[string]string, present string) map[string]bool {
	if present == "" || state(record[present]) != current {
		return nil
	}
	gone := map[string]bool{}
	for id, value := range record {
		if s := state(value); s == replaced || s == lost {
			gone[id] = true
		}
	}
	return gone
}

// Next returns the record for the control cluster with the present installation, and whether it differs from
// the given one. Entries of operators are kept.
func Next(record map[string]string, present, controlCluster string, now time.Time) (map[string]string, bool) {
	next := maps.Clone(record)
	if next == nil {
		next = map[string]string{}
	}
	at := now.UTC().Format(time.RFC3339)
	moved := record[KeyControlCluster] != "" && record[KeyControlCluster] != controlCluster
	for id, value := range record {
		switch {
		case id == KeyControlCluster:
		case moved && state(value) != elsewhere:
			next[id] = elsewhere + ", in the record of control cluster " + record[KeyControlCluster] + ": " + value
		case state(value) == current && id != present:
			next[id] = replaced + " at " + at + ", was " + value
		}
	}
	next[KeyControlCluster] = controlCluster
	if state(next[present]) != current {
		next[present] = current + " since " + at
	}
	return next, !maps.Equal(record, next)
}

// state returns the first word of an entry.
func state(value string) string {
	words := strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ',' || r == ':' || r == '\n' || r == '\t' })
	if len(words) == 0 {
		return ""
	}
	return words[0]
}
