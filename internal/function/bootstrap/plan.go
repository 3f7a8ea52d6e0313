package bootstrap

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"time"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	xpv2 "github.com/crossplane/crossplane-runtime/v2/apis/common/v2"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/userdata"
)

// userDataKey is the key of the user data in its Secret.
const userDataKey = "userData"

// waitingForToken is one text for two short moments: each change of a status costs.
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
	// UserData is what the user data Secret holds, nil while there is none.
	UserData map[string][]byte
	// VMMayExist from the moment that its provider began to create it.
	VMMayExist bool
	// NodeJoined once the Node was there.
	NodeJoined bool
	// ProviderAwaitsSecret means that the VM need not wait for the Secret.
	ProviderAwaitsSecret bool
}

// A Token is an observed JoinToken.
type Token struct {
	Token, Server, CA []byte
	// UID of the JoinToken, and of the configuration that it was made through.
	UID, ConfigUID string
	// Ready means that the token can be used.
	Ready bool
	// Ending means that it is being deleted, and let go of by its controller.
	Ending bool
	// Error says why it is not there yet.
	Error string
}

func (t *Token) complete() bool {
	return t != nil && len(t.Token) > 0 && len(t.Server) > 0 && len(t.CA) > 0
}

// Desired is what the step wants.
type Desired struct {
	// JoinToken and Secret are nil when they are not wanted.
	JoinToken *clusterv1alpha1.JoinToken
	Secret    *corev1.Secret
	// SecretReady means that the Secret is there as it is desired.
	SecretReady bool

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
	// Base64 is how the Secret holds the user data.
	Base64 bool
}

// Plan decides what a Machine needs to join.
func Plan(o Observed, settings Settings) Desired {
	d := Desired{}
	if wantsToken(o) {
		d.JoinToken = joinToken(o.Machine, settings)
		// Its controller would add it with a write of its own. Nothing may be added to
		// what is being deleted.
		if o.Token == nil || !o.Token.Ending {
			d.JoinToken.Finalizers = []string{managed.FinalizerName}
		}
	}

	data := o.UserData
	if !o.VMMayExist {
		rendered, problem, waiting := render(o, settings)
		d.Bootstrap.Problem, d.Bootstrap.Waiting = problem, waiting
		if rendered != nil {
			data = rendered
		}
	}
	// What cannot be rendered now stays as it is. What vanished when a VM was made
	// from it already is not made again: the VM would not read it.
	if data == nil {
		return d
	}
	d.Secret = secret(o.Machine, data)
	d.SecretReady = bytes.Equal(data[userDataKey], o.UserData[userDataKey])
	switch {
	case d.Bootstrap.Problem != nil || d.Bootstrap.Waiting != "":
	case !d.SecretReady && !(o.ProviderAwaitsSecret && o.UserData == nil):
		// A provider that reads a Secret that is not there yet may take it for an
		// empty one.
		d.Bootstrap.Waiting = waitingForToken
	default:
		d.Bootstrap.SecretName, d.Bootstrap.Key = d.Secret.Name, userDataKey
	}
	return d
}

// wantsToken until the Node is there. A Machine that failed is not waited for.
func wantsToken(o Observed) bool {
	return !o.NodeJoined && o.Machine.Status.Phase != machinev1alpha1.MachineFailed
}

func render(o Observed, settings Settings) (data map[string][]byte, problem *step.Problem, waiting string) {
	switch {
	case o.ClassProblem != nil:
		return nil, o.ClassProblem, ""
	case !o.Token.complete() && o.Token != nil && o.Token.Error != "":
		return nil, nil, "waiting for the join token: " + o.Token.Error
	case !o.Token.complete():
		return nil, nil, waitingForToken
	}
	m := o.Machine
	b, err := userdata.CloudInit(userdata.Input{
		Hostname:      names.OfMachine(m.Name, m.UID),
		Version:       m.Spec.Version,
		DownloadURL:   o.Class.Spec.OperatingSystem.KubeletDownloadURL,
		Server:        string(o.Token.Server),
		CA:            o.Token.CA,
		Token:         string(o.Token.Token),
		Labels:        nodeLabels(m.Spec.Metadata.Labels, o.Token),
		Taints:        m.Spec.Taints,
		StartupTaints: m.Spec.StartupTaints,
		Kubelet:       o.Class.Spec.Kubelet,

		ExternalCloudProvider: settings.ExternalCloudProvider,
		ProviderIDCommand:     settings.ProviderIDCommand,
	})
	if err != nil {
		return nil, &step.Problem{Reason: ReasonUserDataInvalid, Message: fmt.Sprintf("class %q: %v", o.Class.Name, err)}, ""
	}
	if settings.Base64 {
		b = base64.StdEncoding.AppendEncode(nil, b)
	}
	return map[string][]byte{userDataKey: b}, nil, ""
}

// nodeLabels that a Node registers with. By those of its token Drover knows a Node that
// joined when nobody waited for it any more.
func nodeLabels(wanted map[string]string, t *Token) map[string]string {
	if t.UID == "" || t.ConfigUID == "" {
		return wanted
	}
	out := map[string]string{}
	maps.Copy(out, wanted)
	out[clusterv1alpha1.LabelJoinToken], out[clusterv1alpha1.LabelConfig] = t.UID, t.ConfigUID
	return out
}

func joinToken(m *machinev1alpha1.Machine, settings Settings) *clusterv1alpha1.JoinToken {
	return &clusterv1alpha1.JoinToken{
		TypeMeta: metav1.TypeMeta{APIVersion: clusterv1alpha1.SchemeGroupVersion.String(), Kind: "JoinToken"},
		ObjectMeta: metav1.ObjectMeta{
			Name:   names.OfMachine(m.Name, m.UID),
			Labels: map[string]string{machinev1alpha1.LabelMachine: m.Name},
		},
		Spec: clusterv1alpha1.JoinTokenSpec{
			ManagedResourceSpec: xpv2.ManagedResourceSpec{
				ProviderConfigReference:          &xpv1.ProviderConfigReference{Kind: m.Spec.ClusterRef.Kind, Name: m.Spec.ClusterRef.Name},
				WriteConnectionSecretToReference: &xpv1.LocalSecretReference{Name: names.JoinConnection(m.Name, m.UID)},
			},
			ForProvider: clusterv1alpha1.JoinTokenParameters{
				TTL:         metav1.Duration{Duration: settings.TokenTTL},
				Description: "machine " + m.Namespace + "/" + m.Name,
				Groups:      settings.TokenGroups,
			},
		},
	}
}

func secret(m *machinev1alpha1.Machine, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Name:   names.UserData(m.Name, m.UID),
			Labels: map[string]string{machinev1alpha1.LabelMachine: m.Name},
		},
		Type: corev1.SecretTypeOpaque,
		Data: data,
	}
}
