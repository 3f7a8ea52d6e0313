package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
)

// endFaults is the name that ends all faults.
const endFaults = "none"

// breakDemo causes the fault that is named, by name or by its number in the menu. Without a name it shows the menu,
// and reads one from in unless that is nil.
func breakDemo(ctx context.Context, cloud *localcloud.Client, name string, in io.Reader, out io.Writer) error {
	if name == "" {
		showMenu(out)
		if in == nil {
			return nil
		}
		fmt.Fprint(out, "\nFault (name or number; nothing to leave): ")
		line, err := bufio.NewReader(in).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if name = strings.TrimSpace(line); name == "" {
			fmt.Fprintln(out)
			return nil
		}
	}
	if name == endFaults || name == "0" {
		return endAll(ctx, cloud, out)
	}
	f, err := choose(name)
	if err != nil {
		return err
	}
	return cause(ctx, cloud, f, out)
}

func showMenu(out io.Writer) {
	fmt.Fprint(out, "Break the cloud of the demo with make demo-break FAULT=NAME:\n\n")
	for i, f := range menu {
		fmt.Fprintf(out, "  %2d  %-12s %s\n", i+1, f.name, f.title)
	}
	fmt.Fprintf(out, "  %2d  %-12s %s\n", 0, endFaults, "end all faults")
}

// choose returns the fault of a name or a number of the menu.
func choose(name string) (menuFault, error) {
	if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= len(menu) {
		return menu[n-1], nil
	}
	var names []string
	for _, f := range menu {
		if f.name == name {
			return f, nil
		}
		names = append(names, f.name)
	}
	return menuFault{}, fmt.Errorf("FAULT=%s: there is no such fault, must be one of %s, or %s", name, strings.Join(names, ", "), endFaults)
}

func cause(ctx context.Context, cloud *localcloud.Client, f menuFault, out io.Writer) error {
	machine := ""
	if f.oneMachine {
		var err error
		if machine, err = anyMachine(ctx, cloud); err != nil {
			return err
		}
	}
	sent, err := cloud.CreateFault(ctx, f.on(machine))
	if err != nil {
		return err
	}
	if f.oneMachine && sent.Count == 0 {
		return fmt.Errorf("the VM of Machine %s ended before the fault: try again", machine)
	}
	fmt.Fprintf(out, "%s: %s\n\n", f.name, f.title)
	if !f.oneMachine {
		fmt.Fprint(out, "  Do:    kubectl scale md workers --replicas=5, or more than now: the fault applies to new VMs\n")
	}
	fmt.Fprintf(out, "  Look:  %s\n", strings.ReplaceAll(f.look, "MACHINE", machine))
	fmt.Fprintf(out, "  Then:  make demo-break FAULT=%s\n", endFaults)
	return nil
}

// anyMachine returns the Machine of the oldest VM that runs. VMs of Machines alone have the tag.
func anyMachine(ctx context.Context, cloud *localcloud.Client) (string, error) {
	vms, err := cloud.ListVMs(ctx, localcloud.ListVMsOptions{Tags: map[string]string{machinev1alpha1.TagNamespace: namespace}})
	if err != nil {
		return "", err
	}
	for _, vm := range vms {
		if name := vm.Tags[machinev1alpha1.TagMachine]; name != "" && vm.State == localcloud.StateRunning {
			return name, nil
		}
	}
	return "", fmt.Errorf("no VM of a Machine in namespace %s runs: run make demo, and wait until it is complete", namespace)
}

// endAll deletes the faults that are in effect. A VM that is gone, or whose kubelet stopped, stays so:
// Drover replaces its Machine.
func endAll(ctx context.Context, cloud *localcloud.Client, out io.Writer) error {
	faults, err := cloud.ListFaults(ctx)
	if err != nil {
		return err
	}
	for _, f := range faults {
		// It may be used up since the list.
		if err := cloud.DeleteFault(ctx, f.ID); err != nil && !localcloud.IsNotFound(err) {
			return err
		}
	}
	what := fmt.Sprintf("%d faults ended", len(faults))
	switch len(faults) {
	case 0:
		what = "There is no fault"
	case 1:
		what = "1 fault ended"
	}
	fmt.Fprintf(out, "%s. Drover repairs the rest: kubectl drover status md workers --watch\n", what)
	return nil
}
