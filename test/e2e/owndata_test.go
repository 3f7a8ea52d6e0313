package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// userDataOfMCM is user data in the form of Gardener's machine-controller-manager: the kubelet
// registers without any data of Drover. A file is in base64.
func userDataOfMCM() string {
	kubeconfig := base64.StdEncoding.EncodeToString([]byte(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "$(server)", certificate-authority-data: "$(ca.crt|base64)"}}]
users: [{name: u, user: {token: "<<BOOTSTRAP_TOKEN>>"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`))
	return `#cloud-config
hostname: <<MACHINE_NAME>>
write_files:
- path: /etc/kubernetes/bootstrap-kubelet.conf
  encoding: b64
  content: ` + kubeconfig + `
- path: /opt/bin/install-kubelet.sh
  permissions: "0755"
  content: '#!/bin/sh'
- path: /etc/systemd/system/kubelet.service
  content: |
    [Service]
    ExecStart=/opt/bin/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf
    [Install]
    WantedBy=multi-user.target
runcmd:
- [/opt/bin/install-kubelet.sh, ` + kit.OldVersion + `]
- [systemctl, enable, --now, kubelet]
`
}

// TestAMachineJoinsByUserDataOfItsClass has user data that Drover did not write. The Machine
// waits until the Secret exists with its label, and reports the hash of the value that its VM was
// created with.
func TestAMachineJoinsByUserDataOfItsClass(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	class := f.Class("own", "local", `{"image":"ubuntu-24.04","size":"small"}`)
	class.Spec.UserData = &machinev1alpha1.UserData{SecretRef: &machinev1alpha1.UserDataSecretReference{Name: "own"}}
	f.Create(t, class)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "own"},
		StringData: map[string]string{"userData": userDataOfMCM()},
	}
	f.Create(t, secret)
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "w"}, Spec: f.MachineSpec(kit.OldVersion)}
	m.Spec.ClassRef.Name = class.Name
	f.Create(t, m)
	read := func(ctx context.Context) (*machinev1alpha1.Machine, error) {
		m := &machinev1alpha1.Machine{}
		return m, f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: "w"}, m)
	}

	patience.Eventually(t, func(ctx context.Context) string {
		m, err := read(ctx)
		if err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(m.Status.Conditions, machinev1alpha1.ConditionValid)
		if c == nil || c.Reason != machinev1alpha1.ReasonUserDataNotAllowed || !strings.Contains(c.Message, `Secret "own": must have the label`) {
			return fmt.Sprintf("condition %+v", c)
		}
		return ""
	}, f.Describe)
	f.Patch(t, secret, fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}}}`, machinev1alpha1.LabelUserData))
	awaitPhase(t, f, "w", machinev1alpha1.MachineRunning)

	got, err := read(t.Context())
	must(t, err)
	own := got.Status.UserData
	if own == nil || own.SecretName != "own" || own.Key != "userData" || len(own.Hash) != 32 {
		t.Errorf("status.userData %+v", own)
	}
	if meta.FindStatusCondition(got.Status.Conditions, machinev1alpha1.ConditionUserDataComplete) != nil {
		t.Errorf("conditions %+v", got.Status.Conditions)
	}
	for _, name := range machinev1alpha1.JoinMilestones() {
		if got.Status.Join.At(name) == nil {
			t.Errorf("milestone %s is missing: %+v", name, got.Status.Join)
		}
	}
	// A changed Secret only applies to new VMs.
	f.Patch(t, secret, `{"stringData":{"userData":"#!/bin/sh\n"}}`)
	f.Throughout(t, func(ctx context.Context) string {
		m, err := read(ctx)
		if err != nil || m.Status.Phase != machinev1alpha1.MachineRunning || *m.Status.UserData != *own {
			return fmt.Sprintf("%+v, %v", m.Status, err)
		}
		return ""
	})
}

// TestAMachineThatNeverJoinsSaysHowFarItCame checks that the progress is reported within seconds,
// and again when the Machine fails.
func TestAMachineThatNeverJoinsSaysHowFarItCame(t *testing.T) {
	kit.OnlyInLong(t, "TestAMachineThatFailedKeepsTheConsoleOfItsVM")
	t.Parallel()
	f := plane.NewFleet(t)
	neverBoot(t, f, 1)
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "w"}, Spec: f.MachineSpec(kit.OldVersion)}
	f.Create(t, m)
	read := func(ctx context.Context) machinev1alpha1.MachineStatus {
		m := &machinev1alpha1.Machine{}
		if err := f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: "w"}, m); err != nil {
			t.Fatal(err)
		}
		return m.Status
	}
	patience.Eventually(t, func(ctx context.Context) string {
		s := read(ctx)
		if s.Join.At(machinev1alpha1.JoinVMRunning) == nil {
			return fmt.Sprintf("phase %s, join %+v", s.Phase, s.Join)
		}
		return ""
	}, f.Describe)
	if s := read(t.Context()); len(s.Join.Milestones) != 1 {
		t.Errorf("join %+v", s.Join)
	}
	timeOut(t, f, m.Name)
	if s, want := read(t.Context()), "last milestone: VMRunning; missing: CertificateRequested, "; !strings.Contains(s.FailureMessage, want) {
		t.Errorf("failure %q, want %q", s.FailureMessage, want)
	}
}

// TestAMachineThatFailedKeepsTheConsoleOfItsVM has a simulated VM that cannot parse its user
// data. Its console must be readable after the VM is deleted.
func TestAMachineThatFailedKeepsTheConsoleOfItsVM(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	class := f.Class("own", "local", `{"image":"ubuntu-24.04","size":"small"}`)
	class.Spec.UserData = &machinev1alpha1.UserData{SecretRef: &machinev1alpha1.UserDataSecretReference{Name: "own"}}
	f.Create(t, class)
	f.Create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "own", Labels: map[string]string{machinev1alpha1.LabelUserData: "true"}},
		StringData: map[string]string{"userData": "#cloud-config\nruncmd:\n- [echo, <<BOOTSTRAP_TOKEN>>]\n"},
	})
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "w"}, Spec: f.MachineSpec(kit.OldVersion)}
	m.Spec.ClassRef.Name = class.Name
	f.Create(t, m)
	awaitPhase(t, f, "w", machinev1alpha1.MachineJoining)
	vm := onlyVM(t, f)
	read := func(ctx context.Context) machinev1alpha1.MachineStatus {
		m := &machinev1alpha1.Machine{}
		must(t, f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: "w"}, m))
		return m.Status
	}
	patience.Eventually(t, func(ctx context.Context) string {
		s := read(ctx)
		if c := conditionOf(s.Conditions, "NodeReady"); !strings.Contains(c.Message, "its console ends with: ") {
			return fmt.Sprintf("phase %s, NodeReady is %+v", s.Phase, c)
		}
		return ""
	}, f.Describe)
	timeOut(t, f, m.Name)
	s := read(t.Context())
	if !strings.Contains(s.FailureMessage, "its console ends with: ") || !strings.Contains(s.Join.Console, vm.ID) || !strings.Contains(s.Join.Console, "kubelet.service") {
		t.Errorf("failure %q, console %q", s.FailureMessage, s.Join.Console)
	}
	must(t, f.Cloud.DeleteVM(t.Context(), vm.ID))
	f.Throughout(t, func(ctx context.Context) string {
		if now := read(ctx); now.Join.Console != s.Join.Console {
			return fmt.Sprintf("the console is %q", now.Join.Console)
		}
		return ""
	})
}

// onlyVM returns the only VM of a fleet.
func onlyVM(t *testing.T, f kit.Fleet) localcloud.VM {
	t.Helper()
	vms, err := f.VMs(t.Context())
	must(t, err)
	if len(vms) != 1 {
		t.Fatalf("%d VMs: %+v", len(vms), vms)
	}
	return vms[0]
}
