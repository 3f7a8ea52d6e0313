package bootstrap

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/userdata"
)

// ownClass returns a class that names a Secret and has the defaults of the schema.
func ownClass(changes ...func(*machinev1alpha1.MachineClassSpec)) *machinev1alpha1.MachineClass {
	c := class("")
	c.Spec.UserData = &machinev1alpha1.UserData{SecretRef: &machinev1alpha1.UserDataSecretReference{Name: "mine", Key: "k"}}
	c.Spec.OperatingSystem.KubeletDownloadURL = "https://dl.k8s.io/release"
	c.Spec.Kubelet.ClusterDomain = "cluster.local"
	for _, change := range changes {
		change(&c.Spec)
	}
	return c
}

func TestUserDataOfTheClassIsReadByTheControllerAlone(t *testing.T) {
	o := Observed{Machine: machine("Pending"), Class: ownClass(func(s *machinev1alpha1.MachineClassSpec) { s.OperatingSystem.Provisioning = machinev1alpha1.Ignition })}
	settings := Settings{TokenTTL: time.Hour, Form: userdata.Form{MaxBytes: 100}}
	d := Plan(o, settings)
	want := &plan.OwnUserData{SecretName: "mine", Key: "k", Format: machinev1alpha1.Ignition}
	if diff := cmp.Diff(want, d.Join.OwnUserData); diff != "" || d.Join.UserData != "" || d.Join.Frozen || d.Join.MaxBytes != 100 || d.SecretName != "" || d.Waiting == "" {
		t.Fatalf("%+v, request %+v\n%s", d, d.Join, diff)
	}
	o.Join = plan.JoinState{Published: true, Hash: userdata.Hash(d.Join.Template(), "")}
	if d := Plan(o, settings); d.SecretName == "" || d.Waiting != "" {
		t.Errorf("when it is published: %+v", d)
	}
	for name, other := range map[string]func(*machinev1alpha1.MachineClassSpec){
		"Secret": func(s *machinev1alpha1.MachineClassSpec) { s.UserData.SecretRef.Name = "other" },
		"Key":    func(s *machinev1alpha1.MachineClassSpec) { s.UserData.SecretRef.Key = "" },
		"Format": func(s *machinev1alpha1.MachineClassSpec) { s.OperatingSystem.Provisioning = "" },
		"None":   func(s *machinev1alpha1.MachineClassSpec) { s.UserData = nil },
	} {
		o := o
		o.Class = ownClass(func(s *machinev1alpha1.MachineClassSpec) { s.OperatingSystem.Provisioning = machinev1alpha1.Ignition }, other)
		if d := Plan(o, Settings{TokenTTL: time.Hour}); d.SecretName != "" {
			t.Errorf("%s: what another Secret was filled from is given", name)
		}
	}
	o.VMMayExist = true
	if d := Plan(o, settings); !d.Join.Frozen || d.Join.OwnUserData != nil || d.SecretName == "" {
		t.Errorf("when there is a VM: %+v, request %+v", d, d.Join)
	}
}

func TestAProblemOfTheControllerHoldsTheVM(t *testing.T) {
	problem := &plan.Problem{Reason: "UserDataNotFound", Message: "none"}
	o := Observed{Machine: machine("Pending"), Class: ownClass(), Join: plan.JoinState{Error: "none", Problem: problem}}
	if d := Plan(o, Settings{TokenTTL: time.Hour}); d.Problem != problem || d.Join == nil || d.Join.Frozen || d.SecretName != "" {
		t.Errorf("%+v, request %+v: it must be tried again", d, d.Join)
	}
	o.VMMayExist = true
	if d := Plan(o, Settings{TokenTTL: time.Hour}); d.Problem != nil || d.SecretName == "" {
		t.Errorf("%+v: a VM that exists has its user data", d)
	}
}

func TestSettingsWithoutEffectOnUserDataOfTheClassAreRefused(t *testing.T) {
	cases := map[string]struct {
		change func(*machinev1alpha1.MachineClassSpec)
		want   string
	}{
		"Defaults": {func(*machinev1alpha1.MachineClassSpec) {}, ""},
		"Format":   {func(s *machinev1alpha1.MachineClassSpec) { s.OperatingSystem.Provisioning = machinev1alpha1.CloudInit }, ""},
		"NoDefaults": {func(s *machinev1alpha1.MachineClassSpec) {
			s.OperatingSystem.KubeletDownloadURL, s.Kubelet.ClusterDomain = "", ""
		}, ""},
		"Profile":  {func(s *machinev1alpha1.MachineClassSpec) { s.OperatingSystem.Profile = "debian-12-v1" }, "class.spec.operatingSystem.profile: Forbidden"},
		"Download": {func(s *machinev1alpha1.MachineClassSpec) { s.OperatingSystem.KubeletDownloadURL = "https://mirror" }, "class.spec.operatingSystem.kubeletDownloadURL: Forbidden"},
		"MaxPods":  {func(s *machinev1alpha1.MachineClassSpec) { s.Kubelet.MaxPods = ptr.To[int32](5) }, "class.spec.kubelet.maxPods: Forbidden"},
		"Domain":   {func(s *machinev1alpha1.MachineClassSpec) { s.Kubelet.ClusterDomain = "a.b" }, "class.spec.kubelet.clusterDomain: Forbidden"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Check(composition(map[string]any{"apiVersion": "fn.drover.dev/v1alpha1", "kind": "Bootstrap"}), Observed{Machine: machine(""), Class: ownClass(tc.change)})
			got := ""
			if p != nil {
				got = p.Reason + ": " + p.Message
			}
			if (got == "") != (tc.want == "") || got != "" && !strings.HasPrefix(got, `UserDataInvalid: class "small": `+tc.want) {
				t.Errorf("want %q, got %q", tc.want, got)
			}
		})
	}
}
