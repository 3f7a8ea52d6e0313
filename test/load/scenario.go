package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
)

const (
	// patience is how long a phase of a scenario may take.
	patience = 20 * time.Minute
	// interval of polling, one GET each. Polling must not distort the measurement.
	interval = 500 * time.Millisecond
	// settle is the wait before a rest is measured, until the effects of the last change have
	// ended.
	settle = 15 * time.Second

	deployment = "load"
)

// A scenario is an operation to measure.
type scenario struct {
	kind     string
	machines int32
	surge    int
	boot     time.Duration
	rest     time.Duration
	// by is the reason that holds a rollout.
	by string
}

func parse(s string) (scenario, error) {
	out := scenario{surge: 10, rest: 2 * time.Minute}
	for i, part := range strings.Split(s, ",") {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return out, fmt.Errorf("%q: %q is not KEY=VALUE", s, part)
		}
		var err error
		switch {
		case i == 0:
			var n int64
			if n, err = strconv.ParseInt(value, 10, 32); err == nil && n < 1 {
				err = fmt.Errorf("must be positive")
			}
			out.kind, out.machines = key, int32(n)
			if !slices.Contains([]string{"create", "roll", "delete", "rest", "held"}, key) {
				err = fmt.Errorf("must start with create, roll, delete, rest or held")
			}
			if key == "held" {
				out.by = byWindow
			}
		case key == "surge":
			out.surge, err = strconv.Atoi(value)
		case key == "boot":
			out.boot, err = time.ParseDuration(value)
		case key == "for":
			out.rest, err = time.ParseDuration(value)
		case key == "by" && out.kind == "held":
			if out.by = value; !slices.Contains(holds, value) {
				err = fmt.Errorf("must be one of %s", strings.Join(holds, ", "))
			}
		default:
			err = fmt.Errorf("must be surge, boot or for, or by with held")
		}
		if err != nil {
			return out, fmt.Errorf("%q: %s: %w", s, part, err)
		}
	}
	return out, nil
}

// String returns the head of the scenario's column.
func (s scenario) String() string {
	out := fmt.Sprintf("%s %d", s.kind, s.machines)
	if s.kind == "roll" {
		out += fmt.Sprintf(" surge %d", s.surge)
	}
	if s.boot > 0 {
		out += " boot " + s.boot.String()
	}
	if s.kind == "held" {
		out += " by " + s.by
	}
	if s.isRest() {
		out += " " + s.rest.String()
	}
	return out
}

// isRest reports whether nothing is to happen in the scenario.
func (s scenario) isRest() bool { return s.kind == "rest" || s.kind == "held" }

// run the scenario in a namespace of its own, and leave nothing behind.
func (s scenario) run(ctx context.Context, p *kit.Plane) (result, error) {
	f, err := p.MakeFleet(ctx)
	if err != nil {
		return result{}, err
	}
	if err := s.setBoot(ctx, p, 0); err != nil {
		return result{}, err
	}
	md := f.Deployment(deployment, s.machines, s.surge, 0)
	r := result{scenario: s}
	if s.kind == "create" {
		err = r.measure(ctx, p, s.boot, func() error { return create(ctx, f, md) })
	} else if err = create(ctx, f, md); err == nil {
		switch s.kind {
		case "roll":
			err = r.measure(ctx, p, s.boot, func() error { return roll(ctx, f, md) })
		case "delete":
			return r, r.measure(ctx, p, s.boot, func() error { return remove(ctx, f, md) })
		case "rest":
			err = s.measureRest(ctx, p, &r)
		case "held":
			var end func() error
			if end, err = s.hold(ctx, f, md); err == nil {
				err = errors.Join(s.measureRest(ctx, p, &r), end())
			}
		}
	}
	if err != nil {
		return r, err
	}
	if err := s.setBoot(ctx, p, 0); err != nil {
		return r, err
	}
	return r, remove(ctx, f, md)
}

// measureRest is an error if Crossplane or Drover writes.
func (s scenario) measureRest(ctx context.Context, p *kit.Plane, r *result) error {
	if err := sleep(ctx, settle); err != nil {
		return err
	}
	if err := r.measure(ctx, p, s.boot, func() error { return sleep(ctx, s.rest) }); err != nil {
		return err
	}
	for name, n := range r.counts[groupWrites] {
		if name != "kubelets" && name != "kubernetes" && n > 0 {
			return fmt.Errorf("%s wrote %.0f times at rest: %v", name, n, r.counts[groupVerbs])
		}
	}
	return nil
}

func (s scenario) setBoot(ctx context.Context, p *kit.Plane, d time.Duration) error {
	_, err := p.Cloud.SetSettings(ctx, localcloud.Settings{BootTime: localcloud.Duration(d)})
	return err
}

func create(ctx context.Context, f kit.Fleet, md *machinev1alpha1.MachineDeployment) error {
	if err := f.Client.Create(ctx, md); err != nil {
		return err
	}
	return settled(ctx, f, md)
}

func roll(ctx context.Context, f kit.Fleet, md *machinev1alpha1.MachineDeployment) error {
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"version":%q}}}}`, kit.NewVersion)
	if err := f.Client.Patch(ctx, md, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		return err
	}
	return settled(ctx, f, md)
}

func remove(ctx context.Context, f kit.Fleet, md *machinev1alpha1.MachineDeployment) error {
	if err := f.Client.Delete(ctx, md); err != nil {
		return err
	}
	return until(ctx, func() (bool, string) {
		// The deployment is deleted when its last VM is.
		err := f.Client.Get(ctx, client.ObjectKeyFromObject(md), &machinev1alpha1.MachineDeployment{})
		return client.IgnoreNotFound(err) == nil && err != nil, fmt.Sprint(err)
	})
}

// settled waits until all Machines are available and of the current template, and no other
// Machine is left.
func settled(ctx context.Context, f kit.Fleet, md *machinev1alpha1.MachineDeployment) error {
	return until(ctx, func() (bool, string) {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(md), md); err != nil {
			return false, err.Error()
		}
		s, n := md.Status, md.Spec.Replicas
		done := s.ObservedGeneration == md.Generation && s.Replicas == n && s.UpdatedReplicas == n && s.AvailableReplicas == n && s.TerminatingReplicas == 0
		return done, fmt.Sprintf("%+v", s)
	})
}

func until(ctx context.Context, done func() (bool, string)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	said := ""
	for {
		ok, says := done()
		if ok {
			return nil
		}
		if ctx.Err() == nil {
			said = says
		}
		if err := sleep(ctx, interval); err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
