package bootstrap

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/userdata"
)

func machine(phase machinev1alpha1.MachinePhase) *machinev1alpha1.Machine {
	m := &machinev1alpha1.Machine{}
	m.Namespace, m.Name, m.UID = "ns", "m", "6f8e9d10"
	m.Spec.Version = "v1.35.4"
	m.Status.Phase = phase
	return m
}

func class(configuration string) *machinev1alpha1.MachineClass {
	c := &machinev1alpha1.MachineClass{}
	c.Name = "small"
	if configuration != "" {
		c.Spec.Kubelet.Configuration = &runtime.RawExtension{Raw: []byte(configuration)}
	}
	return c
}

func TestPlan(t *testing.T) {
	const old = "#cloud-config\nold: true\n"
	made, problem := render(Observed{Machine: machine("Pending"), Class: class("")}, Settings{})
	if problem != nil {
		t.Fatal(problem.Message)
	}
	current := made.template
	const waiting = "waiting for the join token and user data"
	published := func(template string) plan.JoinState {
		return plan.JoinState{Published: true, Hash: userdata.Hash(template, "")}
	}
	noClass := &plan.Problem{Reason: "ClassNotFound", Message: "none"}

	type want struct {
		// join is "" for no request, or one of mint, keep and revoke.
		join string
		// userData of the request.
		userData string
		given    bool
		waiting  string
		problem  string
	}
	withheld := func(o Observed) Observed {
		o.Machine, o.Class = machine(""), class("")
		o.Machine.Annotations = map[string]string{machinev1alpha1.AnnotationExhausted: "CapacityExhausted"}
		return o
	}
	cases := map[string]struct {
		reason string
		o      Observed
		want   want
	}{
		"AsksForNothingWhenTheCloudHasNoRoom": {
			"no VM is requested for the Machine", withheld(Observed{}),
			want{waiting: "the cloud has no room for the VM, so that none is requested"},
		},
		"NoAnnotationTakesATokenAwayFromAVM": {
			"the VM may join", withheld(Observed{VMMayExist: true}),
			want{join: "keep", given: true},
		},
		"AsksForATokenAndUserDataFirst": {
			"a VM needs both", Observed{Machine: machine(""), Class: class("")},
			want{join: "mint", userData: current, waiting: waiting},
		},
		"SaysWhyThereIsNoToken": {
			"the user has to fix the configuration of the cluster",
			Observed{Machine: machine("Pending"), Class: class(""), Join: plan.JoinState{Error: "connect failed: Unauthorized"}},
			want{join: "mint", userData: current, waiting: "waiting for the join token: connect failed: Unauthorized"},
		},
		"TellsAProblemOfTheToken": {
			"the API server does not support the kubelet, and it may be upgraded",
			Observed{Machine: machine("Pending"), Class: class(""), Join: plan.JoinState{Problem: &plan.Problem{Reason: "VersionSkew", Message: "newer"}}},
			want{join: "mint", userData: current, problem: "VersionSkew: newer"},
		},
		"AProblemOfTheTokenIsNoneOfAVM": {
			"it was created when there was none",
			Observed{Machine: machine("Pending"), VMMayExist: true, Join: plan.JoinState{Published: true, Problem: &plan.Problem{Reason: "VersionSkew", Message: "newer"}}},
			want{join: "keep", given: true},
		},
		"WaitsUntilUserDataIsPublished": {
			"a template has a hash before it is published",
			Observed{Machine: machine("Pending"), Class: class(""), Join: plan.JoinState{Hash: published(current).Hash}},
			want{join: "mint", userData: current, waiting: waiting},
		},
		"GivesUserDataWhenItIsPublished": {
			"the VM can be created", Observed{Machine: machine("Pending"), Class: class(""), Join: published(current)},
			want{join: "mint", userData: current, given: true},
		},
		"DoesNotGiveUserDataThatIsOld": {
			"the VM would be created from the old template", Observed{Machine: machine("Pending"), Class: class(""), Join: published(old)},
			want{join: "mint", userData: current, waiting: waiting},
		},
		"DoesNotGiveUserDataOfAnotherEncoding": {
			"the VM would get text instead of base64",
			Observed{Machine: machine("Pending"), Class: class(""), Join: plan.JoinState{Published: true, Hash: userdata.Hash(current, clusterv1alpha1.UserDataBase64)}},
			want{join: "mint", userData: current, waiting: waiting},
		},
		"KeepsAllWhenTheClassIsGone": {
			"a VM may be created from what is published, once the class is back",
			Observed{Machine: machine("Pending"), ClassProblem: noClass, Join: published(old)},
			want{join: "keep", problem: "ClassNotFound: none"},
		},
		"AsksForNothingWithoutClass": {
			"there is nothing to publish", Observed{Machine: machine("Pending"), ClassProblem: noClass},
			want{problem: "ClassNotFound: none"},
		},
		"NamesWhatCannotBeRenderedAndMakesNoTokenForIt": {
			"no VM can use the token", Observed{Machine: machine("Pending"), Class: class(`{"maxPods": "x"}`)},
			want{problem: `UserDataInvalid: class "small": class.spec.kubelet.configuration`},
		},
		"NeverTouchesUserDataOfAVM": {
			"the VM may read it again", Observed{Machine: machine("Provisioning"), Join: published(old), VMMayExist: true},
			want{join: "keep", given: true},
		},
		"NeverTouchesUserDataOfAVMThatIsNotPublishedAnyMore": {
			"the VM may have it all the same", Observed{Machine: machine("Provisioning"), Class: class(""), VMMayExist: true},
			want{join: "keep", given: true},
		},
		"RevokesTheTokenWhenTheNodeIsThere": {
			"the kubelet has a certificate by then", Observed{Machine: machine("Joining"), Join: published(old), VMMayExist: true, NodeJoined: true},
			want{join: "revoke", given: true},
		},
		"RevokesTheTokenOfAMachineThatFailed": {
			"it is about to be replaced", Observed{Machine: machine("Failed"), Join: published(old), VMMayExist: true},
			want{join: "revoke", given: true},
		},
		"RevokesTheTokenAfterARestartToo": {
			"a process that stopped may not have revoked it", Observed{Machine: machine("Running"), VMMayExist: true, NodeJoined: true},
			want{join: "revoke", given: true},
		},
		"RevokesTheTokenOfAVMThatIsLost": {
			"no VM may use it any more", Observed{Machine: machine("Running"), Join: published(old), VMLost: true},
			want{join: "revoke"},
		},
		"GivesNothingToAProviderIDWithoutVM": {
			"a status can be forged by anyone who may write it", Observed{Machine: machine(""), Class: class(""), VMLost: true},
			want{join: "revoke"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(tc.o, Settings{TokenTTL: time.Hour, TokenGroups: []string{"system:bootstrappers:a"}})
			got := want{given: d.SecretName == names.UserData("m", "6f8e9d10") && d.Key == "userData", waiting: d.Waiting}
			if r := d.Join; r != nil {
				got.userData = r.UserData
				got.join = map[bool]string{false: "mint", true: "keep"}[r.Frozen]
				if r.Revoked {
					got.join = "revoke"
				}
				if r.Frozen != (r.UserData == "") {
					t.Errorf("frozen %t with the template %q", r.Frozen, r.UserData)
				}
				if r.TTL.Duration != time.Hour || !slices.Equal(r.Groups, []string{"system:bootstrappers:a"}) {
					t.Errorf("request: %+v", r)
				}
			}
			if p := d.Problem; p != nil && strings.HasPrefix(p.Reason+": "+p.Message, tc.want.problem) {
				got.problem = tc.want.problem
			} else if p != nil {
				got.problem = p.Reason + ": " + p.Message
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestATokenLivesNoLongerThanItsMachineMayTakeToJoin(t *testing.T) {
	for name, tc := range map[string]struct {
		timeout, want time.Duration
	}{
		"TheDefaultTimeout":  {0, 20*time.Minute + time.Hour},
		"AShorterOne":        {time.Minute, time.Minute + time.Hour},
		"ALongerOne":         {24 * time.Hour, 25 * time.Hour},
		"NonsenseIsNoReason": {-time.Hour, 20*time.Minute + time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine("")
			m.Spec.CreationTimeout.Duration = tc.timeout
			if got := Plan(Observed{Machine: m, Class: class("")}, Settings{TokenTTL: time.Hour}).Join.MaxLife.Duration; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestSettingsHaveTheDefaultsOfTheSchema(t *testing.T) {
	s := SettingsOf(&fn.Bootstrap{})
	if s.TokenTTL != time.Hour || !slices.Equal(s.TokenGroups, []string{"system:bootstrappers:kubeadm:default-node-token"}) {
		t.Errorf("%+v", s)
	}
	s = SettingsOf(&fn.Bootstrap{TokenTTL: metav1.Duration{Duration: time.Minute}, TokenGroups: []string{}})
	if s.TokenTTL != time.Minute || len(s.TokenGroups) > 0 {
		t.Errorf("%+v, want no groups as asked", s)
	}
}

func TestANodeRegistersWithItsToken(t *testing.T) {
	m := machine("Pending")
	m.Spec.Metadata.Labels = map[string]string{"team": "blue"}
	d := Plan(Observed{Machine: m, Class: class("")}, Settings{TokenTTL: time.Hour})
	_, rest, _ := strings.Cut(d.Join.UserData, "--node-labels=")
	got, _, _ := strings.Cut(rest, `"`)
	if want := "cluster.drover.dev/config=$(config.uid),cluster.drover.dev/join-token=$(joinToken.uid),team=blue"; got != want {
		t.Errorf("it has the labels %s, want %s", got, want)
	}
}

func TestSettingsOfAnInput(t *testing.T) {
	for name, tc := range map[string]struct {
		input fn.Bootstrap
		want  Settings
	}{
		"HaveTheDefaultsOfTheSchema": {fn.Bootstrap{}, Settings{TokenTTL: time.Hour, TokenGroups: []string{"system:bootstrappers:kubeadm:default-node-token"}}},
		"KeepWhatIsSet": {
			fn.Bootstrap{TokenTTL: metav1.Duration{Duration: time.Minute}, TokenGroups: []string{}, ProviderIDCommand: "id"},
			Settings{TokenTTL: time.Minute, TokenGroups: []string{}, ProviderIDCommand: "id"},
		},
		"LeaveTheNodeToACloudControllerManager": {
			fn.Bootstrap{TokenTTL: metav1.Duration{Duration: time.Minute}, TokenGroups: []string{}, CloudProvider: fn.ExternalCloudProvider},
			Settings{TokenTTL: time.Minute, TokenGroups: []string{}, ExternalCloudProvider: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, SettingsOf(&tc.input)); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUserDataThatTheCloudDoesNotTakeIsAProblem(t *testing.T) {
	o := Observed{Machine: machine("Pending"), Class: class("")}
	d := Plan(o, Settings{TokenTTL: time.Hour, Form: userdata.Form{MaxBytes: 2000}})
	if d.Problem == nil || d.Problem.Reason != "UserDataTooLarge" || d.Join != nil {
		t.Fatalf("problem %+v, request %+v", d.Problem, d.Join)
	}
	for _, want := range []string{`class "small": the user data has `, " bytes; the cloud takes at most 2000; the largest files: /opt/drover/bin/bootstrap ("} {
		if !strings.Contains(d.Problem.Message, want) {
			t.Errorf("want %q in %q", want, d.Problem.Message)
		}
	}
	if d := Plan(o, Settings{TokenTTL: time.Hour, Form: userdata.Form{MaxBytes: 16384, Encoding: clusterv1alpha1.UserDataGzipBase64}}); d.Problem != nil || d.Join.MaxBytes != 16384 {
		t.Errorf("problem %+v, request %+v", d.Problem, d.Join)
	}
}
