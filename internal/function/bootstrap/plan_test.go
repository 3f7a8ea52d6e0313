package bootstrap

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
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

func TestPlan(t *testing.T) {
	const old = "#cloud-config\nold: true\n"
	current, problem := render(Observed{Machine: machine("Pending"), Class: class("")}, Settings{})
	if problem != nil {
		t.Fatal(problem.Message)
	}
	const waiting = "waiting for the join token and user data"
	unauthorized := &Token{UserData: current, Error: "connect failed: Unauthorized"}

	type want struct {
		// userData is that of the token, "" for no token.
		userData string
		revoked  bool
		given    bool
		waiting  string
		problem  string
	}
	cases := map[string]struct {
		o    Observed
		want want
	}{
		"AsksForATokenAndUserDataFirst": {
			Observed{Machine: machine(""), Class: class("")},
			want{userData: current, waiting: waiting},
		},
		"LetsAProviderThatAwaitsUserDataBeginAtOnce": {
			Observed{Machine: machine(""), Class: class(""), ProviderAwaitsSecret: true},
			want{userData: current, given: true},
		},
		"SaysWhyThereIsNoToken": {
			Observed{Machine: machine("Pending"), Class: class(""), Token: unauthorized},
			want{userData: current, waiting: "waiting for the join token: connect failed: Unauthorized"},
		},
		"SaysItToThoseWhoBeganAlready": {
			Observed{Machine: machine("Pending"), Class: class(""), Token: unauthorized, ProviderAwaitsSecret: true},
			want{userData: current, waiting: "waiting for the join token: connect failed: Unauthorized", given: true},
		},
		"WaitsUntilUserDataIsPublished": {
			Observed{Machine: machine("Pending"), Class: class(""), Token: &Token{UserData: current, Ready: true}},
			want{userData: current, waiting: waiting},
		},
		"GivesUserDataWhenItIsPublished": {
			Observed{Machine: machine("Pending"), Class: class(""), Token: &Token{UserData: current, Published: true}},
			want{userData: current, given: true},
		},
		"DoesNotGiveUserDataThatIsOld": {
			Observed{Machine: machine("Pending"), Class: class(""), Token: &Token{UserData: old, Published: true}, ProviderAwaitsSecret: true},
			want{userData: current, waiting: waiting},
		},
		"KeepsAllWhenTheClassIsGone": {
			Observed{Machine: machine("Pending"), ClassProblem: &step.Problem{Reason: "ClassNotFound", Message: "none"}, Token: &Token{UserData: old, Published: true}},
			want{userData: old, problem: "ClassNotFound: none"},
		},
		"NamesWhatCannotBeRenderedAndMakesNoTokenForIt": {
			Observed{Machine: machine("Pending"), Class: class(`{"maxPods": "x"}`)},
			want{problem: `UserDataInvalid: class "small": class.spec.kubelet.configuration`},
		},
		"NeverTouchesUserDataOfAVM": {
			Observed{Machine: machine("Provisioning"), Token: &Token{UserData: old, Published: true}, VMMayExist: true},
			want{userData: old, given: true},
		},
		"RevokesTheTokenWhenTheNodeIsThere": {
			Observed{Machine: machine("Joining"), Token: &Token{UserData: old, Published: true}, VMMayExist: true, NodeJoined: true},
			want{userData: old, revoked: true, given: true},
		},
		"RevokesTheTokenOfAMachineThatFailed": {
			Observed{Machine: machine("Failed"), Token: &Token{UserData: old, Published: true}, VMMayExist: true},
			want{userData: old, revoked: true, given: true},
		},
		"NeverUnrevokesAToken": {
			Observed{Machine: machine("Joining"), Token: &Token{UserData: old, Published: true, Revoked: true}, VMMayExist: true},
			want{userData: old, revoked: true, given: true},
		},
		"MakesNoTokenOnlyToRevokeIt": {
			Observed{Machine: machine("Running"), VMMayExist: true, NodeJoined: true},
			want{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(tc.o, Settings{TokenTTL: time.Hour, TokenGroups: []string{"system:bootstrappers:a"}})
			jt := d.JoinToken
			if got := jt != nil; got != (tc.want.userData != "") {
				t.Fatalf("token: %v", got)
			}
			if jt != nil {
				p := jt.Spec.ForProvider
				if p.UserData != tc.want.userData || p.Revoked != tc.want.revoked || p.TTL.Duration != time.Hour || !slices.Equal(p.Groups, []string{"system:bootstrappers:a"}) {
					t.Errorf("token: %+v", p)
				}
				if d.Bootstrap.SecretName != "" && d.Bootstrap.SecretName != jt.Spec.WriteConnectionSecretToReference.Name {
					t.Errorf("the Secret %s is not the token's", d.Bootstrap.SecretName)
				}
			}
			if got := d.Bootstrap.SecretName != "" && d.Bootstrap.Key == "userData"; got != tc.want.given {
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
		"WhileItIsThere":                       {&Token{}, true},
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

func TestPublishedUserDataIsThatOfItsTemplateAndOfTheToken(t *testing.T) {
	const template = "a $(token) $(server) $(ca.crt|base64) $(joinToken.uid) $(config.uid)"
	details := func(data string) map[string][]byte {
		return map[string][]byte{"token": []byte("t"), "server": []byte("s"), "ca.crt": []byte("c"), "userData": []byte(data)}
	}
	partly := details("a t s Yw== u g")
	delete(partly, "server")
	for name, tc := range map[string]struct {
		details map[string][]byte
		config  string
		want    bool
	}{
		"AllOfIt":                     {details("a t s Yw== u g"), "g", true},
		"OfAnotherTemplate":           {details("b t s Yw== u g"), "g", false},
		"OfAnotherToken":              {details("a u s Yw== u g"), "g", false},
		"OfAnotherConfiguration":      {details("a t s Yw== u g"), "h", false},
		"OfAConfigurationNobodyKnows": {details("a t s Yw== u "), "", false},
		"NotFilledIn":                 {details(template), "g", false},
		"WithoutAllItNeeds":           {partly, "g", false},
		"WithNothingAtAllYet":         {nil, "g", false},
	} {
		t.Run(name, func(t *testing.T) {
			jt := &clusterv1alpha1.JoinToken{}
			jt.UID, jt.Spec.ForProvider.UserData, jt.Status.AtProvider.ConfigUID = "u", template, tc.config
			if got := published(jt, tc.details); got != tc.want {
				t.Errorf("got %v", got)
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
	d := Plan(Observed{Machine: m, Class: class("")}, Settings{TokenTTL: time.Hour})
	_, rest, _ := strings.Cut(d.JoinToken.Spec.ForProvider.UserData, "--node-labels=")
	got, _, _ := strings.Cut(rest, `"`)
	if want := "cluster.drover.dev/config=$(config.uid),cluster.drover.dev/join-token=$(joinToken.uid),team=blue"; got != want {
		t.Errorf("it has the labels %s, want %s", got, want)
	}
}
