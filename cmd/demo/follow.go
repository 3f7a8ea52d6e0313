package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// follow shows the Machines of the examples until the MachineDeployments have all
// that they want. On a terminal the table stays in its place; elsewhere it is
// printed anew when it changed.
func follow(ctx context.Context, c client.Client, out io.Writer) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	inPlace := isTerminal(out)
	lines, said := 0, ""
	for {
		mds, machines, err := look(ctx, c)
		if err != nil {
			return err
		}
		// On no terminal, ages would make every table a new one.
		now := time.Now()
		table := render(machines, now, inPlace)
		if table != said {
			if inPlace && lines > 0 {
				fmt.Fprintf(out, "\x1b[%dA\x1b[J", lines)
			}
			fmt.Fprint(out, table)
			lines, said = strings.Count(table, "\n"), table
		}
		if settled(mds) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the Machines are not all Running: %w; kubectl describe machine tells why", ctx.Err())
		case <-tick.C:
		}
	}
}

func look(ctx context.Context, c client.Client) ([]machinev1alpha1.MachineDeployment, []machinev1alpha1.Machine, error) {
	mds, machines := &machinev1alpha1.MachineDeploymentList{}, &machinev1alpha1.MachineList{}
	if err := c.List(ctx, mds, client.InNamespace("default")); err != nil {
		return nil, nil, err
	}
	if err := c.List(ctx, machines, client.InNamespace("default")); err != nil {
		return nil, nil, err
	}
	return mds.Items, machines.Items, nil
}

func settled(mds []machinev1alpha1.MachineDeployment) bool {
	for _, md := range mds {
		if md.Status.ObservedGeneration != md.Generation || md.Status.AvailableReplicas != md.Spec.Replicas || md.Status.UpdatedReplicas != md.Spec.Replicas {
			return false
		}
	}
	return len(mds) > 0
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}
