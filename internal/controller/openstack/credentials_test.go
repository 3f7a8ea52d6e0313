package openstack

import (
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/openstack/v1alpha1"
	fakecloud "github.com/drover-dev/drover/test/fakes/openstack"
)

func TestWrongCredentialsAreSaidAndNoServerIsLost(t *testing.T) {
	cases := map[string]struct {
		spoil func(*world)
		want  string
	}{
		"ARevokedCredential":   {func(w *world) { w.cloud.Revoke(good) }, "401"},
		"AnUnknownCredential":  {func(w *world) { w.credential(credential("s3cret-unknown")) }, "cannot log in at http://openstack/identity/v3"},
		"AnEmptyOne":           {func(w *world) { w.credential([]byte(`{}`)) }, `Secret system/openstack, key "credentials": must be like {"applicationCredentialID"`},
		"APasswordWithoutUser": {func(w *world) { w.credential([]byte(`{"password":"secret-of-"}`)) }, "nothing may be empty"},
		"WhatIsNotJSON":        {func(w *world) { w.credential([]byte("secret-of-")) }, "must be a JSON object like"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fakecloud.Options{}, func(t *testing.T, w *world) {
				there := w.running("there")
				tc.spoil(w)
				shallBe := instance("shall-be")
				w.Add(shallBe)
				for _, vm := range []*v1alpha1.VirtualMachine{there, shallBe} {
					c := w.UntilCondition(soon, vm, xpv2.TypeSynced, xpv2.ReasonReconcileError)
					if !strings.Contains(c.Message, tc.want) || !strings.Contains(c.Message, `ClusterProviderConfig "default"`) {
						t.Errorf("Synced of %s: %s", vm.Name, c.Message)
					}
				}
				time.Sleep(10 * time.Minute)
				if w.Get(there); there.GetCondition(xpv2.TypeReady).Reason != xpv2.ReasonAvailable {
					t.Errorf("Ready: %+v", there.GetCondition(xpv2.TypeReady))
				}
				if calls, _ := w.cloud.Calls(); calls["POST /identity/v3/auth/tokens"] > 60 {
					t.Errorf("%d logins in ten minutes", calls["POST /identity/v3/auth/tokens"])
				}
				noSecret(t, append(w.Warnings(), there.GetCondition(xpv2.TypeSynced).Message)...)

				w.cloud.SetCredential("s3cret-rotated", "ours")
				w.credential(credential("s3cret-rotated"))
				w.UntilCondition(soon, shallBe, xpv2.TypeReady, xpv2.ReasonAvailable)
				w.UntilCondition(soon, there, xpv2.TypeSynced, xpv2.ReasonReconcileSuccess)
				if n := len(w.cloud.Servers("ours")); n != 2 {
					t.Errorf("%d servers", n)
				}
			})
		})
	}
}

func TestCredentialsOfAnotherProjectLoseNoServer(t *testing.T) {
	inWorld(t, fakecloud.Options{}, func(t *testing.T, w *world) {
		vm := w.running("a")
		w.credential(credential(other))
		c := w.UntilCondition(soon, vm, xpv2.TypeSynced, xpv2.ReasonReconcileError)
		if !strings.Contains(c.Message, "are they those of another project?") {
			t.Errorf("Synced: %s", c.Message)
		}
		time.Sleep(time.Hour)
		if w.Get(vm); vm.GetCondition(xpv2.TypeReady).Reason == machinev1alpha1.ReasonMissing {
			t.Error("it counts as lost")
		}
		w.credential(credential(good))
		w.UntilCondition(soon, vm, xpv2.TypeSynced, xpv2.ReasonReconcileSuccess)
	})
}

func TestAUserWithAPasswordHasAProject(t *testing.T) {
	for name, tc := range map[string]struct {
		credentials credentials
		ok          bool
	}{
		"ByItsName":                    {credentials{Username: "u", Password: "p", UserDomainName: "d", ProjectName: "n", ProjectDomainName: "d"}, true},
		"ByItsID":                      {credentials{Username: "u", Password: "p", UserDomainName: "d", ProjectID: "i"}, true},
		"ANameNeedsItsDomain":          {credentials{Username: "u", Password: "p", UserDomainName: "d", ProjectName: "n"}, false},
		"AUserNeedsOneToo":             {credentials{Username: "u", Password: "p", ProjectID: "i"}, false},
		"AnApplicationCredentialHasIt": {credentials{ApplicationCredentialID: "i", ApplicationCredentialSecret: "s"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tc.credentials.options("http://k/v3"); (err == nil) != tc.ok {
				t.Errorf("error %v", err)
			}
		})
	}
}
