package bootstrap

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
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

func token() *Token {
	return &Token{Token: []byte("abcdef.0123456789abcdef"), Server: []byte("https://10.0.0.1:6443"), CA: []byte("CA"), Ready: true}
}

func TestPlan(t *testing.T) {
	old := map[string][]byte{userDataKey: []byte("#cloud-config\nold: true\n")}
	current := Plan(Observed{Machine: machine("Pending"), Class: class(""), Token: token()}, Settings{TokenTTL: time.Hour}).Secret.Data

	type want struct {
		token bool
		// userData is a part of it, "" for no Secret.
		userData string
		ready    bool
		given    bool
		waiting  string
		problem  string
	}
	cases := map[string]struct {
		o    Observed
		want want
	}{
		"AsksForATokenFirst": {
			Observed{Machine: machine(""), Class: class("")},
			want{token: true, waiting: "waiting for the join token and user data"},
		},
		"SaysWhyThereIsNoToken": {
			Observed{Machine: machine("Pending"), Class: class(""), Token: &Token{Error: "connect failed: Unauthorized"}},
			want{token: true, waiting: "waiting for the join token: connect failed: Unauthorized"},
		},
		"WaitsForAllThatATokenComesWith": {
			Observed{Machine: machine("Pending"), Class: class(""), Token: &Token{Token: []byte("abcdef.0123456789abcdef")}},
			want{token: true, waiting: "waiting for the join token and user data"},
		},
		"WritesUserDataWhenTheTokenIsThere": {
			Observed{Machine: machine("Pending"), Class: class(""), Token: token()},
			want{token: true, userData: "abcdef.0123456789abcdef", waiting: "waiting for the join token and user data"},
		},
		"GivesUserDataAtOnceToAProviderThatAwaitsIt": {
			Observed{Machine: machine("Pending"), Class: class(""), Token: token(), ProviderAwaitsSecret: true},
			want{token: true, userData: "abcdef.0123456789abcdef", given: true},
		},
		"DoesNotGiveUserDataThatIsOld": {
			Observed{Machine: machine("Pending"), Class: class(""), Token: token(), UserData: old, ProviderAwaitsSecret: true},
			want{token: true, userData: "abcdef.0123456789abcdef", waiting: "waiting for the join token and user data"},
		},
		"GivesUserDataWhenItIsWritten": {
			Observed{Machine: machine("Pending"), Class: class(""), Token: token(), UserData: current},
			want{token: true, userData: "abcdef.0123456789abcdef", ready: true, given: true},
		},
		"WritesAnewWhatIsOldWhileThereIsNoVM": {
			Observed{Machine: machine("Pending"), Class: class(""), Token: token(), UserData: old},
			want{token: true, userData: "abcdef.0123456789abcdef", waiting: "waiting for the join token and user data"},
		},
		"KeepsWhatItCannotRenderAnew": {
			Observed{Machine: machine("Pending"), Class: class(""), UserData: old},
			want{token: true, userData: "old: true", ready: true, waiting: "waiting for the join token and user data"},
		},
		"KeepsAllWhenTheClassIsGone": {
			Observed{Machine: machine("Pending"), ClassProblem: &step.Problem{Reason: "ClassNotFound", Message: "none"}, Token: token(), UserData: old},
			want{token: true, userData: "old: true", ready: true, problem: "ClassNotFound: none"},
		},
		"NamesWhatCannotBeRendered": {
			Observed{Machine: machine("Pending"), Class: class(`{"maxPods": "x"}`), Token: token()},
			want{token: true, problem: `UserDataInvalid: class "small": class.spec.kubelet.configuration`},
		},
		"NeverTouchesUserDataOfAVM": {
			Observed{Machine: machine("Provisioning"), Token: token(), UserData: old, VMMayExist: true},
			want{token: true, userData: "old: true", ready: true, given: true},
		},
		"DoesNotMakeUserDataAgainThatVanished": {
			Observed{Machine: machine("Joining"), Token: token(), VMMayExist: true},
			want{token: true},
		},
		"DropsTheTokenWhenTheNodeIsThere": {
			Observed{Machine: machine("Joining"), Token: token(), UserData: old, VMMayExist: true, NodeJoined: true},
			want{userData: "old: true", ready: true, given: true},
		},
		"DropsTheTokenOfAMachineThatFailed": {
			Observed{Machine: machine("Failed"), Token: token(), UserData: old, VMMayExist: true},
			want{userData: "old: true", ready: true, given: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(tc.o, Settings{TokenTTL: time.Hour, TokenGroups: []string{"system:bootstrappers:a"}})
			if got := d.JoinToken != nil; got != tc.want.token {
				t.Errorf("token: want %v, got %v", tc.want.token, got)
			}
			if jt := d.JoinToken; jt != nil && (jt.Spec.ForProvider.TTL.Duration != time.Hour || !slices.Equal(jt.Spec.ForProvider.Groups, []string{"system:bootstrappers:a"})) {
				t.Errorf("token: %+v", jt.Spec.ForProvider)
			}
			switch {
			case d.Secret == nil:
				if tc.want.userData != "" {
					t.Error("want user data, got none")
				}
			case tc.want.userData == "" || !strings.Contains(string(d.Secret.Data[userDataKey]), tc.want.userData):
				t.Errorf("user data: want %q, got %s", tc.want.userData, d.Secret.Data[userDataKey])
			}
			if d.SecretReady != tc.want.ready {
				t.Errorf("ready: want %v, got %v", tc.want.ready, d.SecretReady)
			}
			if got := d.Secret != nil && d.Bootstrap.SecretName == d.Secret.Name && d.Bootstrap.Key == userDataKey; got != tc.want.given {
				t.Errorf("given: want %v, got %+v", tc.want.given, d.Bootstrap)
			}
			if d.Bootstrap.Waiting != tc.want.waiting {
				t.Errorf("waiting: want %q, got %q", tc.want.waiting, d.Bootstrap.Waiting)
			}
			problem := ""
			if p := d.Bootstrap.Problem; p != nil {
				problem = p.Reason + ": " + p.Message
			}
			if (problem == "") != (tc.want.problem == "") || !strings.HasPrefix(problem, tc.want.problem) {
				t.Errorf("problem: want %q, got %q", tc.want.problem, problem)
			}
		})
	}
}

func TestATokenHasItsFinalizerFromTheFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		token *Token
		want  bool
	}{
		"WhenItIsMade":                         {nil, true},
		"WhileItIsThere":                       {token(), true},
		"NotWhenItsControllerLetGoOfItAlready": {&Token{Ending: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := Plan(Observed{Machine: machine(""), Class: class(""), Token: tc.token}, Settings{})
			if got := len(d.JoinToken.Finalizers) > 0; got != tc.want {
				t.Errorf("got %v", d.JoinToken.Finalizers)
			}
		})
	}
}

func TestSettingsHaveTheDefaultsOfTheSchema(t *testing.T) {
	s := settingsOf(&fn.Bootstrap{})
	if s.TokenTTL != time.Hour || !slices.Equal(s.TokenGroups, []string{"system:bootstrappers:kubeadm:default-node-token"}) {
		t.Errorf("%+v", s)
	}
	s = settingsOf(&fn.Bootstrap{TokenTTL: metav1.Duration{Duration: time.Minute}, TokenGroups: []string{}})
	if s.TokenTTL != time.Minute || len(s.TokenGroups) > 0 {
		t.Errorf("%+v, want no groups as asked", s)
	}
}

func TestANodeRegistersWithItsToken(t *testing.T) {
	m := machine("Pending")
	m.Spec.Metadata.Labels = map[string]string{"team": "blue"}
	labelsOf := func(tok *Token) string {
		data := string(Plan(Observed{Machine: m, Class: class(""), Token: tok}, Settings{TokenTTL: time.Hour}).Secret.Data[userDataKey])
		_, rest, _ := strings.Cut(data, "--node-labels=")
		labels, _, _ := strings.Cut(rest, `"`)
		return labels
	}
	tok := token()
	if got := labelsOf(tok); got != "team=blue" {
		t.Errorf("of a configuration that nobody knows it has the labels %s", got)
	}
	tok.UID, tok.ConfigUID = "t-1", "c-1"
	if got, want := labelsOf(tok), "cluster.drover.dev/config=c-1,cluster.drover.dev/join-token=t-1,team=blue"; got != want {
		t.Errorf("it has the labels %s, want %s", got, want)
	}
	if len(m.Spec.Metadata.Labels) != 1 {
		t.Errorf("the Machine has the labels %v", m.Spec.Metadata.Labels)
	}
}
