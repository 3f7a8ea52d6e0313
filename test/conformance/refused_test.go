package conformance

import (
	"context"
	"testing"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// refused tests a VM that the cloud first refuses and then accepts.
func refused(t *testing.T, c Cloud, code fn.ErrorCode) {
	w := newWorld(t, c)
	const name = "lone"
	w.account.Refuse(t, name, code)
	m := w.lone(t, name)
	shows := func(m *machinev1alpha1.Machine) string {
		if op := m.Status.LastOperation; op == nil || op.ErrorCode != string(code) {
			return "lastOperation has another class than " + string(code)
		}
		return reported(m.Status.Conditions, "InfrastructureReady", string(code))
	}
	w.await(t, m, shows)
	t.Log(m.Status.LastOperation.Description)
	uid := m.UID
	w.account.Accept(t, name)
	w.await(t, m, isRunning)
	if m.UID != uid || m.Status.LastOperation.ErrorCode != "" {
		t.Errorf("not as it should be after the refusal: %+v", m.Status)
	}
	w.vm(t, m)
	w.end(t, m)
}

// credentials tests missing and wrong credentials, before a Machine has a VM and after.
func credentials(t *testing.T, c Cloud, _ *life) {
	w := newWorld(t, c)
	config := w.class.Spec.ProviderConfigRef
	shows := func(m *machinev1alpha1.Machine) string {
		return reported(m.Status.Conditions, "InfrastructureReady", string(fn.ErrorPermissionDenied), string(config.Kind), config.Name)
	}
	w.account.SetCredentials(t, CredentialsMissing)
	first := w.lone(t, "first")
	w.await(t, first, shows)
	missing := first.Status.LastOperation.Description
	w.account.SetCredentials(t, CredentialsWrong)
	w.await(t, first, func(m *machinev1alpha1.Machine) string {
		if m.Status.LastOperation.Description == missing {
			return "still says that they are missing"
		}
		return shows(m)
	})
	t.Logf("missing: %s\nwrong: %s", missing, first.Status.LastOperation.Description)
	w.Throughout(t, w.noVMs)
	w.account.SetCredentials(t, CredentialsRight)
	w.await(t, first, isRunning)
	vm := w.vm(t, first)

	w.account.SetCredentials(t, CredentialsWrong)
	second := w.lone(t, "second")
	w.await(t, second, shows)
	w.Throughout(t, func(ctx context.Context) string {
		if err := w.Client.Get(ctx, key(first), first); err != nil {
			return err.Error()
		}
		return isRunning(first)
	})
	w.account.SetCredentials(t, CredentialsRight)
	w.await(t, second, isRunning)
	w.await(t, first, isRunning)
	if now := w.vm(t, first); now.ID != vm.ID {
		t.Errorf("VM %s became %s", vm.ID, now.ID)
	}
	w.end(t, first, second)
}
