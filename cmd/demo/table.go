package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// render the Machines as kubectl would, with their ages if wanted.
func render(machines []machinev1alpha1.Machine, now time.Time, ages bool) string {
	machines = slices.Clone(machines)
	slices.SortFunc(machines, func(a, b machinev1alpha1.Machine) int { return strings.Compare(a.Name, b.Name) })
	b := &bytes.Buffer{}
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	header := "MACHINE\tPHASE\tNODE\tVERSION"
	if ages {
		header += "\tAGE"
	}
	fmt.Fprintln(w, header)
	for _, m := range machines {
		row := []string{m.Name, phase(m), node(m), m.Spec.Version}
		if ages {
			row = append(row, duration.HumanDuration(now.Sub(m.CreationTimestamp.Time)))
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush()
	return b.String()
}

func phase(m machinev1alpha1.Machine) string {
	switch {
	case !m.DeletionTimestamp.IsZero():
		return string(machinev1alpha1.MachineTerminating)
	case m.Status.Phase == "":
		return string(machinev1alpha1.MachinePending)
	default:
		return string(m.Status.Phase)
	}
}

func node(m machinev1alpha1.Machine) string {
	if m.Status.NodeRef == nil {
		return "-"
	}
	return m.Status.NodeRef.Name
}
