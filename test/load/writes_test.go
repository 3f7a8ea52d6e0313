package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
)

var large = flag.Bool("large", false, "count the writes of 1000 Machines too, which takes a quarter of an hour")

// BenchmarkAPIWrites counts the write requests per Machine from its creation until it is Running,
// including those of Crossplane and of the kubelet. Crossplane's circuit breaker has the limits
// that docs/install.md recommends, and VMs boot at once.
//
//	go test -run '^$' -bench APIWrites -benchtime 1x ./test/load [-large]
func BenchmarkAPIWrites(b *testing.B) {
	plane, err := kit.Up(b.Context(), kit.Options{Args: kit.Limits})
	defer plane.Down()
	if err != nil {
		b.Fatal(err)
	}
	if _, err := plane.Cloud.SetSettings(b.Context(), localcloud.Settings{}); err != nil {
		b.Fatal(err)
	}
	sizes := []int32{1, 100}
	if *large {
		sizes = append(sizes, 1000)
	}
	for _, n := range sizes {
		b.Run(fmt.Sprintf("%dMachines", n), func(b *testing.B) {
			for b.Loop() {
				f := plane.NewFleet(b)
				before := writes(b, plane)
				f.Create(b, f.Deployment("counted", n, 1, 0))
				f.AwaitDeployment(b, "counted")
				after := writes(b, plane)
				report(b, before, after, float64(n))
				if n < sizes[len(sizes)-1] {
					f.DeleteDeployment(b, "counted")
				} // The last deployment is deleted with the control plane.
			}
		})
	}
}

func writes(b *testing.B, p *kit.Plane) map[string]float64 {
	b.Helper()
	w, err := p.Writes(context.WithoutCancel(b.Context()))
	if err != nil {
		b.Fatal(err)
	}
	return w
}

func report(b *testing.B, before, after map[string]float64, machines float64) {
	total := 0.0
	var lines []string
	for k, n := range after {
		if d := (n - before[k]) / machines; d > 0 {
			total += d
			lines = append(lines, fmt.Sprintf("%8.2f  %s", d, k))
		}
	}
	slices.Sort(lines)
	slices.Reverse(lines)
	b.ReportMetric(total, "writes/machine")
	fmt.Fprintf(os.Stderr, "write requests a Machine, of %.0f Machines:\n%s\n", machines, strings.Join(lines, "\n"))
}
