package bootstrap

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/userdata"
)

// templateClass returns a class whose user data a bootstrap provider makes.
func templateClass(s *machinev1alpha1.MachineClassSpec) {
	s.UserData = &machinev1alpha1.UserData{BootstrapTemplateRef: &machinev1alpha1.BootstrapTemplateReference{Kind: "KubeadmConfigTemplate", Name: "workers"}}
}

func TestTheVMWaitsForTheUserDataOfABootstrapProvider(t *testing.T) {
	settings := Settings{TokenTTL: time.Hour}
	cases := map[string]struct {
		reason  string
		config  *Config
		waiting string
		problem string
	}{
		"NothingYet":        {"the Bootstrap is created first", nil, "waiting for the user data of the bootstrap provider", ""},
		"ItWaits":           {"its words explain the delay", &Config{Waiting: "waiting for KubeadmConfig ns/m: Ready: soon"}, "waiting for KubeadmConfig ns/m: Ready: soon", ""},
		"ItCannotBeReached": {"it may be a moment only", &Config{Waiting: "old", Error: "observe failed: timeout"}, "waiting for the user data of the bootstrap provider: observe failed: timeout", ""},
		"ItsTemplateIsGone": {"a user has to create it", &Config{Problem: &plan.Problem{Reason: "BootstrapTemplateInvalid", Message: "templateRef.name: none"}}, "", `BootstrapTemplateInvalid: class "small": spec.userData.bootstrapTemplateRef: templateRef.name: none`},
		"ItFails":           {"a user has to read its words", &Config{Problem: &plan.Problem{Reason: "BootstrapConfigFailed", Message: "no CA"}}, "", `BootstrapConfigFailed: class "small": spec.userData.bootstrapTemplateRef: no CA`},
		"AReasonOfAnother":  {"a status can be forged", &Config{Problem: &plan.Problem{Reason: "Other", Message: "x"}}, "", `BootstrapConfigFailed: class "small": spec.userData.bootstrapTemplateRef: x`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(Observed{Machine: machine("Pending"), Class: ownClass(templateClass), Config: tc.config}, settings)
			got := ""
			if d.Problem != nil {
				got = d.Problem.Reason + ": " + d.Problem.Message
			}
			if d.Waiting != tc.waiting || got != tc.problem || d.Join != nil || d.SecretName != "" {
				t.Errorf("%s\nwaiting %q, problem %q, request %+v", tc.reason, d.Waiting, got, d.Join)
			}
		})
	}
}

func TestTheUserDataOfABootstrapProviderIsThatOfItsSecret(t *testing.T) {
	settings := Settings{TokenTTL: time.Hour}
	o := Observed{Machine: machine("Pending"), Class: ownClass(templateClass), Config: &Config{UID: "b", SecretName: "data", Ready: true}}
	d := Plan(o, settings)
	want := &plan.OwnUserData{SecretName: "data", Key: "value", Bootstrap: "b"}
	if diff := cmp.Diff(want, d.Join.OwnUserData); diff != "" || d.Join.Frozen || d.SecretName != "" {
		t.Fatalf("%+v\n%s", d, diff)
	}
	o.Join = plan.JoinState{Published: true, Hash: userdata.Hash(d.Join.Template(), "")}
	if d := Plan(o, settings); d.SecretName == "" || d.Waiting != "" {
		t.Errorf("when it is published: %+v", d)
	}
	o.Config.Ready = false
	if d := Plan(o, settings); d.SecretName != "" || !d.Join.Frozen {
		t.Errorf("while another Bootstrap is created: %+v", d)
	}
	o.VMMayExist, o.Config = true, nil
	if d := Plan(o, settings); d.SecretName == "" || d.Waiting != "" || d.Problem != nil {
		t.Errorf("a VM that exists has its user data: %+v", d)
	}
}

func TestWhichMachinesNeedABootstrap(t *testing.T) {
	cases := map[string]struct {
		reason string
		o      Observed
		want   bool
	}{
		"ATemplate":      {"its provider makes the user data", Observed{Class: ownClass(templateClass)}, true},
		"ASecret":        {"the user data exists", Observed{Class: ownClass()}, false},
		"UserDataOfOurs": {"an installation without provider-clusterapi creates nothing more", Observed{Class: class("")}, false},
		"AVM":            {"it has its user data", Observed{Class: ownClass(templateClass), VMMayExist: true}, false},
		"ALostVM":        {"no VM is created", Observed{Class: ownClass(templateClass), VMLost: true}, false},
		"NoClass":        {"no template is known", Observed{ClassProblem: &plan.Problem{Reason: "ClassNotFound"}}, false},
		"AnInvalidClass": {"no VM can be created from it", Observed{Class: ownClass(templateClass, func(s *machinev1alpha1.MachineClassSpec) { s.OperatingSystem.Profile = "debian-12-v1" })}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.o.Machine = machine("Pending")
			if got := WantsConfig(tc.o) != nil; got != tc.want {
				t.Errorf("%t: %s", got, tc.reason)
			}
		})
	}
}
