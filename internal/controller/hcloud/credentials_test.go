package hcloud

import (
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/apis/hcloud/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	fakecloud "github.com/drover-dev/drover/test/fakes/hcloud"
)

func TestWrongCredentialsAreSaidAndNoServerIsLost(t *testing.T) {
	cases := map[string]struct {
		spoil func(*world)
		// want is in the condition of an existing VM, and new in that of a VM to be created. "" means
		// that the condition has no error.
		want, new string
	}{
		"ARevokedToken":         {func(w *world) { w.cloud.Revoke(goodToken) }, "(unauthorized)", "(unauthorized)"},
		"AnUnknownToken":        {func(w *world) { w.token("s3cret-unknown") }, "(unauthorized)", "(unauthorized)"},
		"ATokenThatMayOnlyRead": {func(w *world) { w.token(readOnly) }, "", "(token_readonly)"},
		"AnEmptyToken":          {func(w *world) { w.token("") }, `Secret system/hcloud, key "credentials": token: must not be empty`, "must not be empty"},
		"WhatIsNotJSON":         {func(w *world) { w.Change(w.secret, func() { w.secret.Data["credentials"] = []byte("s3cret") }) }, `must be a JSON object like {"token": "..."}`, "must be a JSON object"},
		"NoSecret":              {func(w *world) { w.Delete(w.secret) }, "cannot get Secret system/hcloud", "cannot get Secret system/hcloud"},
		"NoProviderConfig": {func(w *world) {
			w.Delete(&v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
		},
			`spec.providerConfigRef: cannot get ClusterProviderConfig "default"`, "cannot get ClusterProviderConfig"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fakecloud.Options{}, func(t *testing.T, w *world) {
				there, pc := w.running("there"), &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
				w.Get(pc)
				tc.spoil(w)
				shallBe := server("shall-be")
				w.Add(shallBe)
				for vm, want := range map[*v1alpha1.VirtualMachine]string{there: tc.want, shallBe: tc.new} {
					if want == "" {
						continue
					}
					c := w.UntilCondition(soon, vm, xpv2.TypeSynced, xpv2.ReasonReconcileError)
					if !strings.Contains(c.Message, want) || !strings.Contains(c.Message, `ClusterProviderConfig "default"`) {
						t.Errorf("Synced of %s: %s", vm.Name, c.Message)
					}
				}
				time.Sleep(10 * time.Minute)
				w.Get(there)
				if c := there.GetCondition(xpv2.TypeReady); c.Reason != xpv2.ReasonAvailable {
					t.Errorf("Ready is %s: %s", c.Reason, c.Message)
				}
				noSecret(t, append(w.Warnings(), there.GetCondition(xpv2.TypeSynced).Message)...)

				w.cloud.SetToken("s3cret-rotated", "ours", false)
				good := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "hcloud"}, Data: map[string][]byte{"credentials": []byte(`{"token":"s3cret-rotated"}`)}}
				_ = w.Kube.Delete(t.Context(), w.secret)
				_ = w.Kube.Delete(t.Context(), pc)
				pc.ResourceVersion = ""
				if err := w.Kube.Create(t.Context(), good); err != nil {
					t.Fatal(err)
				}
				if err := w.Kube.Create(t.Context(), pc); err != nil {
					t.Fatal(err)
				}
				w.UntilCondition(soon, shallBe, xpv2.TypeReady, xpv2.ReasonAvailable)
				w.UntilCondition(soon, there, xpv2.TypeSynced, xpv2.ReasonReconcileSuccess)
				if n := len(w.cloud.Servers("ours")); n != 2 {
					t.Errorf("%d servers", n)
				}
			})
		})
	}
}

func TestATokenOfAnotherProjectLosesNoServer(t *testing.T) {
	inWorld(t, fakecloud.Options{}, func(t *testing.T, w *world) {
		vm := w.running("a")
		w.token(otherToken)
		c := w.UntilCondition(soon, vm, xpv2.TypeSynced, xpv2.ReasonReconcileError)
		if !strings.Contains(c.Message, "is it that of another project?") {
			t.Errorf("Synced: %s", c.Message)
		}
		time.Sleep(time.Hour)
		if w.Get(vm); vm.GetCondition(xpv2.TypeReady).Reason == machinev1alpha1.ReasonMissing {
			t.Error("it counts as lost")
		}
		w.token(goodToken)
		w.UntilCondition(soon, vm, xpv2.TypeSynced, xpv2.ReasonReconcileSuccess)
	})
}
