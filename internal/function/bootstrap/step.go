package bootstrap

import (
	"bytes"
	"slices"
	"time"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/userdata"
)

// Defaults are those of the input's schema, which Crossplane does not apply.
const defaultTokenTTL = time.Hour

// defaultTokenGroup is what kubeadm lets join.
const defaultTokenGroup = "system:bootstrappers:kubeadm:default-node-token"

// Run the step. An error means that nothing can be said of the Machine, and that
// all shall stay as it is.
func Run(_ time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	input := &fn.Bootstrap{}
	if err := step.Input(req, input); err != nil {
		return nil, err
	}
	o, err := observe(req)
	if err != nil {
		return nil, err
	}

	o.ProviderAwaitsSecret = input.ProviderAwaitsSecret

	rsp := step.NewResponse(req)
	if !o.VMMayExist {
		rsp.RequireClass(o.Machine)
		var looked bool
		if o.Class, o.ClassProblem, looked = step.Class(req, o.Machine, "spec.classRef.name"); !looked {
			return rsp.RunFunctionResponse, nil
		}
	}

	d := Plan(o, settingsOf(input))
	if d.JoinToken != nil {
		if err := rsp.Compose(machinev1alpha1.ResourceJoinToken, d.JoinToken, o.Token != nil && o.Token.Ready); err != nil {
			return nil, err
		}
	}
	return rsp.RunFunctionResponse, rsp.SetContext(step.ContextBootstrap, d.Bootstrap)
}

func settingsOf(input *fn.Bootstrap) Settings {
	s := Settings{
		TokenTTL: input.TokenTTL.Duration, TokenGroups: input.TokenGroups,
		ExternalCloudProvider: input.CloudProvider == fn.ExternalCloudProvider,
		ProviderIDCommand:     input.ProviderIDCommand,
		Encoding:              input.Encoding,
	}
	if s.TokenTTL <= 0 {
		s.TokenTTL = defaultTokenTTL
	}
	if s.TokenGroups == nil {
		s.TokenGroups = []string{defaultTokenGroup}
	}
	return s
}

func observe(req *fnv1.RunFunctionRequest) (Observed, error) {
	o := Observed{Machine: &machinev1alpha1.Machine{}}
	if err := step.Composite(req, o.Machine); err != nil {
		return o, err
	}
	observed := step.Observed(req)

	if t, ok := observed[machinev1alpha1.ResourceJoinToken]; ok {
		o.Token = observeToken(t)
	}
	// The Machine remembers what its composed resources may have been forgotten
	// with, or lost.
	vm, ok := observed[machinev1alpha1.ResourceVM]
	o.VMMayExist = o.Machine.Status.ProviderID != "" || ok && step.CreationBegan(vm)
	o.NodeJoined = o.Machine.Status.NodeRef != nil
	if wn, ok := observed[machinev1alpha1.ResourceWorkerNode]; ok {
		name, _, _ := unstructured.NestedString(wn.Object, "status", "atProvider", "nodeName")
		o.NodeJoined = o.NodeJoined || name != ""
	}
	return o, nil
}

// observeToken reads a JoinToken. One that cannot be decoded is one that is there
// and of which nothing is known.
func observeToken(o step.Object) *Token {
	jt, err := step.As[clusterv1alpha1.JoinToken](o)
	if err != nil {
		return &Token{Error: err.Error()}
	}
	t := &Token{
		UserData:  jt.Spec.ForProvider.UserData,
		Published: published(jt, o.Connection),
		Revoked:   jt.Spec.ForProvider.Revoked,
		Ready:     jt.Status.GetCondition(xpv1.TypeReady).Status == corev1.ConditionTrue,
		Ending:    jt.DeletionTimestamp != nil && !slices.Contains(jt.Finalizers, managed.FinalizerName),
	}
	if c := jt.Status.GetCondition(xpv1.TypeSynced); c.Status == corev1.ConditionFalse {
		t.Error = c.Message
	}
	return t
}

// published says whether the user data is what is made of the template with all that it
// needs. Details may be older than the JoinToken.
func published(jt *clusterv1alpha1.JoinToken, details map[string][]byte) bool {
	f := userdata.Filling{
		Token:  string(details[clusterv1alpha1.ConnectionToken]),
		Server: string(details[clusterv1alpha1.ConnectionServer]),
		CA:     details[clusterv1alpha1.ConnectionCA],
		UID:    string(jt.UID), ConfigUID: jt.Status.AtProvider.ConfigUID,
	}
	p := jt.Spec.ForProvider
	return p.UserData != "" && f.IsComplete() && bytes.Equal(details[clusterv1alpha1.ConnectionUserData], f.Fill(p))
}
