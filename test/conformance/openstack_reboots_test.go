package conformance

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/fakes"
	"github.com/drover-dev/drover/test/openstack/real"
)

// newRealWorld returns a world at the OpenStack of "make openstack". Its Machines have ports and floating IPs of their own.
func newRealWorld(t *testing.T) (*world, *realOpenStackAccount) {
	t.Helper()
	if !real.IsThere() {
		t.Skip("make openstack CONFORMANCE=1 runs it")
	}
	w := newWorld(t, registered["openstack-real"])
	return w, w.account.(*realOpenStackAccount)
}

// TestRealOpenStackRebootsOncePerRequest reboots a Machine three times: its provider is killed when Nova has accepted the
// first reboot, an administrator stops the server before the second one, so that Nova refuses a soft reboot, and the last one
// is an ordinary one. Nova's own records have one reboot per request.
func TestRealOpenStackRebootsOncePerRequest(t *testing.T) {
	w, a := newRealWorld(t)
	m := w.lone(t, "lone")
	w.await(t, m, isRunning)
	id := w.vm(t, m).ID
	before := w.node(t, m)
	var want []machinev1alpha1.RebootMode
	for i, step := range []struct {
		name    string
		prepare func() (end func())
		mode    machinev1alpha1.RebootMode
	}{
		{"killed", func() func() { return a.cloud.Break(a.lostReboot()) }, machinev1alpha1.RebootSoft},
		{"stopped", func() func() {
			must(t, a.cloud.Stop(t.Context(), id))
			return func() {}
		}, machinev1alpha1.RebootHard},
		{"running", func() func() { return func() {} }, machinev1alpha1.RebootSoft},
	} {
		end := step.prepare()
		request := fmt.Sprintf("%s-%d", step.name, i)
		w.Patch(t, m, fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, machinev1alpha1.AnnotationReboot, request))
		w.await(t, m, func(m *machinev1alpha1.Machine) string {
			if r := m.Status.Reboot; r == nil || r.ID != request || r.State != machinev1alpha1.RebootSucceeded {
				return fmt.Sprintf("is not rebooted: %+v", r)
			}
			return isRunning(m)
		})
		end()
		want = append(want, step.mode)
		if got, err := a.Reboots(t.Context(), id); err != nil || !slices.Equal(got, want) {
			t.Errorf("after the request %s Nova has the reboots %s of server %s, want %s: %v", request, got, id, want, err)
		}
		if s := w.isOnly(t.Context(), m, id); s != "" {
			t.Error(s)
		}
		after := w.node(t, m)
		if after.UID != before.UID || bootOf(after) == bootOf(before) {
			t.Errorf("after the request %s Node %s, boot %s, is %s, boot %s", request, before.UID, bootOf(before), after.UID, bootOf(after))
		}
		before = after
	}
	if n := a.Died(); n != 1 {
		t.Errorf("the provider died %d times, want 1", n)
	}
	all, err := a.cloud.Reboots(t.Context(), id)
	must(t, err)
	for _, r := range all {
		t.Logf("%s reboot, Nova's %s: the server was %s", r.Kind, r.Request, r.Statuses)
		if n := len(r.Statuses); n == 0 || r.Statuses[n-1] != "ACTIVE" {
			t.Errorf("server %s is %s after its %s reboot, want ACTIVE in the end", id, r.Statuses, r.Kind)
		}
	}
	w.end(t, m)
}

func bootOf(n *corev1.Node) string { return n.Status.NodeInfo.BootID }

// lostReboot is a fault of the next reboot: Nova accepts it, and the provider is killed before it gets the response.
func (a *realOpenStackAccount) lostReboot() fakes.Fault {
	return fakes.Fault{
		Call: "POST /compute/v2.1/servers/{id}/action", Times: 1, Lost: true, Then: a.kill,
		Match: func(project string, body []byte) bool {
			return project == a.fleet.Namespace && bytes.Contains(body, []byte(`"reboot"`))
		},
	}
}
