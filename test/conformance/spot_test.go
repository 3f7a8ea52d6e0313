package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// SpotAccount is an Account of a cloud that stops spot VMs.
type SpotAccount interface {
	Account
	// CanInterrupt reports whether a spot VM that the cloud takes back stays there, stopped.
	CanInterrupt() bool
	// Interrupt makes the cloud stop a spot VM.
	Interrupt(t *testing.T, id string)
}

// spotInterruption stops the spot VM of a Machine. No controller deletes its Node.
func spotInterruption(t *testing.T, c Cloud, _ *life) {
	w := newWorld(t, c)
	account, ok := w.account.(SpotAccount)
	if !ok || !account.CanInterrupt() {
		t.Fatalf("nothing stops a spot VM of %s", c.Provider())
	}
	md := w.deployment("workers", 1)
	w.Create(t, md)
	w.AwaitDeployment(t, md.Name)
	machines, err := w.Machines(t.Context())
	must(t, err)
	before := machines[0]
	vm := w.vm(t, &before)
	account.Interrupt(t, vm.ID)
	patience.Eventually(t, func(ctx context.Context) string { return w.gone(ctx, &before) })
	// Without the report of the cloud, the Machine would fail as well, by its Node.
	patience.Eventually(t, func(ctx context.Context) string {
		l := &corev1.EventList{}
		if err := w.Client.List(ctx, l, client.InNamespace(w.Namespace)); err != nil {
			return err.Error()
		}
		story := kit.Story(l.Items, "Machine", before.Name)
		failed := func(line string) bool {
			return strings.HasPrefix(line, string(machinev1alpha1.FailureVMFailed)+":")
		}
		if !slices.ContainsFunc(story, failed) {
			return fmt.Sprintf("the VM of Machine %s never failed: %q", before.Name, story)
		}
		return ""
	})
	w.AwaitDeployment(t, md.Name)
	vms, err := w.account.VMs(t.Context())
	must(t, err)
	if len(vms) != 1 || vms[0].ID == vm.ID {
		t.Errorf("VM %s was stopped, and the cloud has %+v", vm.ID, vms)
	}
	w.end(t, md)
}

// showsInterruption reports whether a cloud behind one of Drover's own providers shows that it takes a spot VM back.
func showsInterruption(c Cloud) bool {
	s, ok := c.(interface{ ShowsInterruption() bool })
	return ok && s.ShowsInterruption()
}
