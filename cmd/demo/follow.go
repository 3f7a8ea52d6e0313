package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/collect"
	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
	"github.com/drover-dev/drover/internal/kubectl/render"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

// follow shows the Machines of the examples, and what blocks them, as kubectl drover status does,
// until the MachineDeployments are complete. On a terminal it redraws the screen in place.
// Elsewhere it prints the screen again after each change.
func follow(ctx context.Context, c client.Client, out io.Writer) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	inPlace := render.IsTerminal(out)
	height, last := 0, ""
	for {
		v, err := collect.View(ctx, c, time.Now(), collect.Options{Namespace: namespace})
		if err != nil {
			return err
		}
		text, err := show(v, out, inPlace)
		if err != nil {
			return err
		}
		if text != last {
			if inPlace && height > 0 {
				fmt.Fprintf(out, "\x1b[%dA\x1b[J", height)
			}
			fmt.Fprint(out, text)
			height, last = rows(text, widthOf(out)), text
		}
		if settled(v.Deployments) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the Machines are not all Running: %w; kubectl drover why ma/NAME explains it", ctx.Err())
		case <-tick.C:
		}
	}
}

// namespace of the examples.
const namespace = "default"

// show renders the status of a view. Outside of a terminal, ages would make every screen differ.
func show(v *view.View, out io.Writer, ages bool) (string, error) {
	now := time.Time{}
	if ages {
		now = v.Time.Time
	}
	r, err := diagnosis.Status(v, nil, v.Time.Time)
	if err != nil {
		return "", err
	}
	return render.NewScreen(out, widthOf(out), 0, now).Status(r), nil
}

func settled(mds []machinev1alpha1.MachineDeployment) bool {
	for _, md := range mds {
		if md.Status.ObservedGeneration != md.Generation || md.Status.AvailableReplicas != md.Spec.Replicas || md.Status.UpdatedReplicas != md.Spec.Replicas {
			return false
		}
	}
	return len(mds) > 0
}
