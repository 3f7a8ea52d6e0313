package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/collect"
	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
	"github.com/drover-dev/drover/internal/kubectl/render"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

// follow shows the Machines of the examples, and what blocks them, as kubectl drover status does,
// until the report is complete. On a terminal it redraws the screen in place.
// Elsewhere it prints the screen again after each change.
func follow(ctx context.Context, c client.Client, out io.Writer) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	inPlace := render.IsTerminal(out)
	height, last := 0, ""
	var missing string
	for {
		// An API server that is too busy to answer is asked again.
		v, err := collect.View(ctx, c, time.Now(), collect.Options{Namespace: namespace})
		if err == nil {
			r, text, err := show(v, out, inPlace)
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
			if missing = incomplete(r); missing == "" {
				return nil
			}
		} else if ctx.Err() == nil {
			missing = err.Error()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", missing, ctx.Err())
		case <-tick.C:
		}
	}
}

// namespace of the examples.
const namespace = "default"

// show returns the status of a view, and its text. Outside of a terminal, ages would make every screen differ.
func show(v *view.View, out io.Writer, ages bool) (diagnosis.Report, string, error) {
	now := time.Time{}
	if ages {
		now = v.Time.Time
	}
	r, err := diagnosis.Status(v, nil, v.Time.Time)
	if err != nil {
		return r, "", err
	}
	return r, render.NewScreen(out, widthOf(out), 0, now).Status(r), nil
}

// incomplete returns why a report is not complete, with the command that explains it, and "" if it is complete. It
// reads the report that the screen shows: the objects of a view were read one after the other, so the counts of a
// MachineDeployment may be newer than the Machines below it, and its conditions older. The last screen has to
// agree with the sentence that follows it.
func incomplete(r diagnosis.Report) string {
	if len(r.Groups) == 0 {
		return "there are no Machines"
	}
	for _, g := range r.Groups {
		waiting := slices.DeleteFunc(slices.Clone(g.Machines), func(m diagnosis.Row) bool {
			return m.Phase == string(machinev1alpha1.MachineRunning) && m.Node != ""
		})
		if len(waiting) > 0 {
			names := make([]string, 0, len(waiting))
			for _, m := range waiting {
				names = append(names, strings.TrimSpace(m.Name+" is "+m.Phase+" "+m.Waits))
			}
			return fmt.Sprintf("%s; kubectl drover why %s explains it", strings.Join(names, ", "), waiting[0].Ref)
		}
		if c := g.Counts; g.State != diagnosis.Complete || c.Available != c.Desired || c.Updated != c.Desired {
			return fmt.Sprintf("%s has %d of %d Machines available; kubectl drover why %s explains it", g.Ref, c.Available, c.Desired, g.Ref)
		}
	}
	return ""
}
