package jointoken

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

const mcm = "#cloud-config\nhostname: <<MACHINE_NAME>>\n# <<BOOTSTRAP_TOKEN>> is tested by: join $(token)\n"

func ofSecret(r *Request) {
	r.UserData, r.OwnUserData = "", &plan.OwnUserData{SecretName: "mine"}
}

// own Secret of a user, with a change.
func (f *fixture) own(data map[string]string, changes ...func(*corev1.Secret)) {
	f.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "mine", UID: "0f9b", Labels: map[string]string{machinev1alpha1.LabelUserData: "true"},
	}, Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	for _, c := range changes {
		c(s)
	}
	was := &corev1.Secret{}
	err := f.Live.Get(f.Context(), types.NamespacedName{Namespace: s.Namespace, Name: s.Name}, was)
	if err == nil {
		s.ResourceVersion = was.ResourceVersion
		err = f.Client.Update(f.Context(), s)
	} else {
		err = f.Client.Create(f.Context(), s)
	}
	if err != nil {
		f.Fatal(err)
	}
	f.calls = nil
}

func TestASecretOfTheUserIsFilled(t *testing.T) {
	f := newFixture(t)
	f.own(map[string]string{"userData": mcm, "value": "#!other"})
	s := f.apply(ofSecret)
	// The Secret of the user costs one read.
	f.expectCalls("control get", "control get", "target get configmap", "target create secret", "control create")
	token := string(f.secret().Data["token"])
	if got, want := string(f.secret().Data["userData"]), "#cloud-config\nhostname: m-"; !strings.HasPrefix(got, want) || strings.Count(got, token) != 2 {
		t.Errorf("user data %q", got)
	}
	o := s.OwnUserData
	if o == nil || o.SecretName != "mine" || o.Key != "userData" || !o.HasToken || s.Hash != request(ofSecret).Hash() || !s.Published {
		t.Fatalf("state %+v, own %+v", s, o)
	}
	// printf '%s' "$value" | openssl dgst -sha256 -hmac 0f9b
	if want := hashOf([]byte(mcm), "0f9b"); o.Hash != want || len(o.Hash) != 32 || o.Hash == hashOf([]byte(mcm), "other") {
		t.Errorf("hash %s, want %s", o.Hash, want)
	}

	f.apply(ofSecret)
	f.expectCalls("control get")
	f.restart()
	if again := f.observe(); again.OwnUserData == nil || *again.OwnUserData != *o {
		t.Errorf("after a restart: %+v", again.OwnUserData)
	}
}

func TestASecretOfTheUserCountsUntilThereIsAVM(t *testing.T) {
	f := newFixture(t)
	f.own(map[string]string{"value": "#!/bin/sh\njoin $(token)\n", "format": "cloud-config"})
	before := f.apply(ofSecret)
	f.own(map[string]string{"value": "#!/bin/sh\njoin harder $(token)\n"})
	s := f.apply(ofSecret)
	if got := string(f.secret().Data["userData"]); !strings.Contains(got, "harder") || s.OwnUserData.Hash == before.OwnUserData.Hash || s.OwnUserData.Key != "value" {
		t.Errorf("user data %q, own %+v", got, s.OwnUserData)
	}
	f.expectMatch(s)

	f.own(map[string]string{"value": "#!/bin/sh\nnever\n"})
	last := f.apply(func(r *Request) { ofSecret(r); r.OwnUserData, r.Frozen = nil, true })
	f.expectCalls()
	if *last.OwnUserData != *s.OwnUserData || strings.Contains(string(f.secret().Data["userData"]), "never") {
		t.Errorf("a VM may have been made: %+v", last.OwnUserData)
	}
}

func TestATokenWithoutPlaceholderIsReported(t *testing.T) {
	f := newFixture(t)
	f.own(map[string]string{"userData": "#!/bin/sh\n"})
	if s := f.apply(ofSecret); s.OwnUserData.HasToken || !s.Published {
		t.Errorf("state %+v, own %+v", s, s.OwnUserData)
	}
}

func TestWhatIsWrongWithASecretOfTheUserIsAProblemBeforeThereIsAToken(t *testing.T) {
	explicit := func(r *Request) { r.OwnUserData.Key = "k" }
	cases := map[string]struct {
		reason  string
		data    map[string]string
		secret  func(*corev1.Secret)
		request func(*Request)
		want    string
	}{
		"NotFound":      {"It may come yet.", nil, nil, nil, `UserDataNotFound: class "small": spec.userData.secretRef: Secret "mine": not found in the namespace ns`},
		"NoKey":         {"It may come yet.", map[string]string{"secret": "x"}, nil, nil, `UserDataNotFound: class "small": spec.userData.secretRef: Secret "mine": has neither the key userData nor the key value`},
		"NoSuchKey":     {"No other one is taken.", map[string]string{"userData": mcm}, nil, explicit, `UserDataNotFound: class "small": spec.userData.secretRef: Secret "mine": has no key "k"`},
		"NoLabel":       {"A class must not bring any Secret onto a VM.", map[string]string{"secret": mcm}, func(s *corev1.Secret) { s.Labels = nil }, nil, `UserDataNotAllowed: class "small": spec.userData.secretRef: Secret "mine": must have the label machine.drover.dev/user-data: "true"`},
		"LabelIsFalse":  {"Somebody withdrew it.", map[string]string{"userData": mcm}, func(s *corev1.Secret) { s.Labels[machinev1alpha1.LabelUserData] = "false" }, nil, `UserDataNotAllowed: `},
		"UnknownFormat": {"No image reads it.", map[string]string{"value": "x", "format": "toml"}, nil, nil, `UserDataInvalid: class "small": spec.userData.secretRef: Secret "mine", key "value": key "format": invalid value "toml": must be cloud-config or ignition`},
		"TooLarge":      {"The cloud refuses it.", map[string]string{"userData": mcm}, nil, func(r *Request) { r.MaxBytes = 50 }, `UserDataTooLarge: class "small": spec.userData.secretRef: Secret "mine", key "userData": the user data has `},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.m.Spec.ClassRef.Name = "small"
			if tc.data != nil {
				f.own(tc.data, func(s *corev1.Secret) {
					if tc.secret != nil {
						tc.secret(s)
					}
				})
			}
			_, err := f.tryApply(ofSecret, func(r *Request) {
				if tc.request != nil {
					tc.request(r)
				}
			})
			p := ProblemOf(err)
			if p == nil || !strings.HasPrefix(p.Reason+": "+p.Message, tc.want) {
				t.Errorf("%s\nwant %q, got %v", tc.reason, tc.want, err)
			}
			if f.token() != nil || f.secret() != nil {
				t.Error("there is a token, or a Secret")
			}
		})
	}
}

// TestOnlyTheSecretThatAClusterMachineClassNamesIsItsUserData has a Secret of the same name in the
// Machine's namespace, where a tenant writes: it must never reach a VM of the class.
func TestOnlyTheSecretThatAClusterMachineClassNamesIsItsUserData(t *testing.T) {
	cases := map[string]struct {
		reason    string
		label     string
		namespace string
		want      string
	}{
		"OfThePlatform":    {"Its label is for ClusterMachineClasses.", "cluster", "platform", ""},
		"OfMachineClasses": {"It is meant for Machines of its own namespace.", "true", "platform", `UserDataNotAllowed: class "ClusterMachineClass/small": spec.userData.secretRef: Secret "mine": must have the label machine.drover.dev/user-data: "cluster"`},
		"Unlabelled":       {"It is any Secret.", "", "platform", "UserDataNotAllowed: "},
		"ThatIsNotThere":   {"The tenant's is not taken instead.", "cluster", "elsewhere", `UserDataNotFound: class "ClusterMachineClass/small": spec.userData.secretRef: Secret "mine": not found in the namespace platform`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.m.Spec.ClassRef = machinev1alpha1.ClassReference{Kind: "ClusterMachineClass", Name: "small"}
			f.own(map[string]string{"userData": "#!/bin/sh\nevil $(token)\n"}, func(s *corev1.Secret) { s.Labels[machinev1alpha1.LabelUserData] = "cluster" })
			f.own(map[string]string{"userData": "#!/bin/sh\ngood $(token)\n"}, func(s *corev1.Secret) {
				s.Namespace, s.Labels[machinev1alpha1.LabelUserData] = tc.namespace, tc.label
			})
			s, err := f.tryApply(ofSecret, func(r *Request) { r.OwnUserData.SecretNamespace = "platform" })
			if tc.want == "" {
				if err != nil || s.OwnUserData.SecretNamespace != "platform" || !strings.Contains(string(f.secret().Data["userData"]), "good") {
					t.Errorf("%s: state %+v, error %v", tc.reason, s, err)
				}
				return
			}
			if p := ProblemOf(err); p == nil || !strings.HasPrefix(p.Reason+": "+p.Message, tc.want) {
				t.Errorf("%s\nwant %q, got %v", tc.reason, tc.want, err)
			}
			if f.token() != nil || f.secret() != nil {
				t.Error("there is a token, or a Secret")
			}
		})
	}
}

// TestAMachineClassReadsNoSecretOfAnotherNamespace has a pipeline context that names one.
func TestAMachineClassReadsNoSecretOfAnotherNamespace(t *testing.T) {
	f := newFixture(t)
	f.own(map[string]string{"userData": "#!/bin/sh\nforeign $(token)\n"}, func(s *corev1.Secret) { s.Namespace = "other" })
	_, err := f.tryApply(ofSecret, func(r *Request) { r.OwnUserData.SecretNamespace = "other" })
	if p := ProblemOf(err); p == nil || p.Reason != machinev1alpha1.ReasonUserDataNotFound {
		t.Errorf("error %v", err)
	}
}

func TestUserDataThatIsTooLargeWhenFilledIsAProblem(t *testing.T) {
	f := newFixture(t)
	f.m.Spec.ClassRef.Name = "small"
	f.cluster.CA = []byte(strings.Repeat("c", 4000))
	_, err := f.tryApply(func(r *Request) { r.MaxBytes = 2000 })
	if p := ProblemOf(err); p == nil || p.Reason != "UserDataTooLarge" || !strings.HasPrefix(p.Message, `class "small": the user data has `) {
		t.Errorf("error %v", err)
	}
}

func TestAForgedSourceInformsOnly(t *testing.T) {
	f := newFixture(t)
	f.apply()
	s := f.secret()
	s.Annotations[annotationOwn] = "{"
	if err := f.Client.Update(f.Context(), s); err != nil {
		t.Fatal(err)
	}
	f.restart()
	f.after(time.Minute)
	if o := f.observe().OwnUserData; o != nil {
		t.Errorf("own %+v", o)
	}
	if f.apply(); f.secret().Annotations[annotationOwn] != "" {
		t.Error("it is kept")
	}
}

// TestTheSecretOfABootstrapProviderMustBeThatOfTheMachine has a Secret that a user of the namespace wrote in place of that of
// provider-clusterapi.
func TestTheSecretOfABootstrapProviderMustBeThatOfTheMachine(t *testing.T) {
	ofBootstrap := func(r *Request) {
		r.UserData, r.OwnUserData = "", &plan.OwnUserData{SecretName: "mine", Key: "value", Bootstrap: "b-uid"}
	}
	controlledBy := func(uid types.UID) func(*corev1.Secret) {
		return func(s *corev1.Secret) {
			s.Labels = nil
			yes := true
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "clusterapi.drover.dev/v1alpha1", Kind: "Bootstrap", Name: "b", UID: uid, Controller: &yes}}
		}
	}
	f := newFixture(t)
	f.own(map[string]string{"value": "#!/bin/sh\njoin\n"}, controlledBy("other"))
	_, err := f.tryApply(ofBootstrap)
	if p := ProblemOf(err); p == nil || p.Reason != machinev1alpha1.ReasonUserDataNotAllowed || !strings.Contains(p.Message, `spec.userData.bootstrapTemplateRef: Secret "mine": metadata.ownerReferences must have the Bootstrap of this Machine as the controller`) {
		t.Fatalf("error %v", err)
	}
	f.own(map[string]string{"value": "#!/bin/sh\njoin\n"}, controlledBy("b-uid"))
	s := f.apply(ofBootstrap)
	if s.OwnUserData == nil || !s.OwnUserData.HasToken || !s.Published {
		t.Errorf("user data with a token of the provider's own: %+v", s.OwnUserData)
	}
	f.own(map[string]string{"value": "#!/bin/sh\njoin\n", "format": "talos"}, controlledBy("b-uid"))
	_, err = f.tryApply(ofBootstrap)
	if p := ProblemOf(err); p == nil || p.Reason != machinev1alpha1.ReasonUserDataInvalid || !strings.Contains(p.Message, `invalid value "talos": must be cloud-config or ignition`) {
		t.Errorf("error %v", err)
	}
	// Talos declares no format, and reads neither cloud-config nor Ignition.
	f.own(map[string]string{"value": "version: v1alpha1\nmachine: {type: worker}\n"}, controlledBy("b-uid"))
	f.apply(ofBootstrap)
	if got := string(f.secret().Data["userData"]); !strings.HasPrefix(got, "version: v1alpha1") {
		t.Errorf("user data %q", got)
	}
}
