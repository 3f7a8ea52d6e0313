package bootstrap

import (
	"fmt"
	"time"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	xpv2 "github.com/crossplane/crossplane-runtime/v2/apis/common/v2"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/userdata"
)

// waitingForToken is what user data waits for, as a rule for a moment.
const waitingForToken = "waiting for the join token and user data"

// ReasonUserDataInvalid is the reason of a problem with what user data is made of.
const ReasonUserDataInvalid = "UserDataInvalid"

// Observed is what the step sees.
type Observed struct {
	Machine *machinev1alpha1.Machine
	// Class of the Machine, or the problem with it. Neither is needed once
	// VMMayExist.
	Class        *machinev1alpha1.MachineClass
	ClassProblem *step.Problem
	// Token is nil while there is no JoinToken.
	Token *Token
	// VMMayExist from the moment that its provider began to create it.
	VMMayExist bool
	// NodeJoined once the Node was there.
	NodeJoined bool
	// ProviderAwaitsSecret means that the VM need not wait for the Secret.
	ProviderAwaitsSecret bool
}

// A Token is an observed JoinToken.
type Token struct {
	// UserData that it is asked to publish.
	UserData string
	// Published means that it did, with all that the placeholders stand for.
	Published bool
	// Ready means that the token can be used, or need not be any more.
	Ready bool
	// Ending means that it is being deleted, and let go of by its controller.
	Ending bool
	// Revoked means that there shall be no token any more.
	Revoked bool
	// Error says why it is not there yet.
	Error string
}

// Desired is what the step wants.
type Desired struct {
	// JoinToken is nil when there is none, and none is wanted.
	JoinToken *clusterv1alpha1.JoinToken

	Bootstrap step.Bootstrap
}

// Settings of the step.
type Settings struct {
	// TokenTTL is how long a join token lives at most.
	TokenTTL time.Duration
	// TokenGroups that a join token authenticates as, beside system:bootstrappers.
	TokenGroups []string
	// ExternalCloudProvider and ProviderIDCommand: see the input.
	ExternalCloudProvider bool
	ProviderIDCommand     string
	// Encoding is how the Secret holds the user data.
	Encoding clusterv1alpha1.UserDataEncoding
}

// Plan decides what a Machine needs to join.
func Plan(o Observed, settings Settings) Desired {
	d := Desired{}
	data := ""
	if o.Token != nil {
		data = o.Token.UserData
	}
	if !o.VMMayExist {
		// What cannot be rendered now stays as it is.
		rendered, problem := render(o, settings)
		if problem == nil {
			data = rendered
		}
		d.Bootstrap.Problem = problem
	}
	revoked := o.Token != nil && o.Token.Revoked || !wantsToken(o)
	if o.Token != nil || !revoked && (data != "" || o.VMMayExist) {
		d.JoinToken = joinToken(o.Machine, data, revoked, settings)
		// Its controller would add it with a write of its own. Nothing may be added to
		// what is being deleted.
		if o.Token == nil || !o.Token.Ending {
			d.JoinToken.Finalizers = []string{managed.FinalizerName}
		}
	}
	if d.Bootstrap.Problem != nil || data == "" {
		return d
	}
	d.Bootstrap.Waiting = waits(o, data)
	// Its provider waits with the VM. A VM of user data that is about to change would
	// be made of the old.
	if d.Bootstrap.Waiting == "" || o.ProviderAwaitsSecret && (o.Token == nil || o.Token.UserData == data) {
		d.Bootstrap.SecretName, d.Bootstrap.Key = names.UserData(o.Machine.Name, o.Machine.UID), clusterv1alpha1.ConnectionUserData
		// That it takes a moment is not worth telling.
		if d.Bootstrap.Waiting == waitingForToken {
			d.Bootstrap.Waiting = ""
		}
	}
	return d
}

// wantsToken until the Node is there. A Machine that failed is not waited for.
func wantsToken(o Observed) bool {
	return !o.NodeJoined && o.Machine.Status.Phase != machinev1alpha1.MachineFailed
}

// waits says what user data waits for, and nothing when it is published.
func waits(o Observed, data string) string {
	switch {
	case o.VMMayExist:
		return ""
	case o.Token != nil && o.Token.Error != "":
		return "waiting for the join token: " + o.Token.Error
	case o.Token == nil, !o.Token.Published, o.Token.UserData != data:
		return waitingForToken
	}
	return ""
}

func render(o Observed, settings Settings) (string, *step.Problem) {
	if o.ClassProblem != nil {
		return "", o.ClassProblem
	}
	m := o.Machine
	b, err := userdata.CloudInit(userdata.Input{
		Hostname:      names.OfMachine(m.Name, m.UID),
		Version:       m.Spec.Version,
		DownloadURL:   o.Class.Spec.OperatingSystem.KubeletDownloadURL,
		Labels:        m.Spec.Metadata.Labels,
		Taints:        m.Spec.Taints,
		StartupTaints: m.Spec.StartupTaints,
		Kubelet:       o.Class.Spec.Kubelet,

		ExternalCloudProvider: settings.ExternalCloudProvider,
		ProviderIDCommand:     settings.ProviderIDCommand,
	})
	if err != nil {
		return "", &step.Problem{Reason: ReasonUserDataInvalid, Message: fmt.Sprintf("class %q: %v", o.Class.Name, err)}
	}
	return string(b), nil
}

func joinToken(m *machinev1alpha1.Machine, data string, revoked bool, settings Settings) *clusterv1alpha1.JoinToken {
	return &clusterv1alpha1.JoinToken{
		TypeMeta: metav1.TypeMeta{APIVersion: clusterv1alpha1.SchemeGroupVersion.String(), Kind: "JoinToken"},
		ObjectMeta: metav1.ObjectMeta{
			Name:   names.OfMachine(m.Name, m.UID),
			Labels: map[string]string{machinev1alpha1.LabelMachine: m.Name},
		},
		Spec: clusterv1alpha1.JoinTokenSpec{
			ManagedResourceSpec: xpv2.ManagedResourceSpec{
				ProviderConfigReference:          &xpv1.ProviderConfigReference{Kind: m.Spec.ClusterRef.Kind, Name: m.Spec.ClusterRef.Name},
				WriteConnectionSecretToReference: &xpv1.LocalSecretReference{Name: names.UserData(m.Name, m.UID)},
			},
			ForProvider: clusterv1alpha1.JoinTokenParameters{
				TTL:         metav1.Duration{Duration: settings.TokenTTL},
				Description: "machine " + m.Namespace + "/" + m.Name,
				Groups:      settings.TokenGroups,
				UserData:    data,
				Revoked:     revoked,

				UserDataEncoding: settings.Encoding,
			},
		},
	}
}
