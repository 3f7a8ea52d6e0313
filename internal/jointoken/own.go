package jointoken

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/userdata"
)

// annotationOwn of the Secret beside the Machine is the OwnUserData that it was filled from.
const annotationOwn = clusterv1alpha1.Group + "/own-user-data"

// OwnUserData describes user data that Drover did not write.
type OwnUserData struct {
	machinev1alpha1.UserDataStatus `json:",inline"`
	// HasToken means that it has a placeholder for the join token.
	HasToken bool `json:"hasToken,omitempty"`
}

// A source is the content of a user's own Secret.
type source struct {
	OwnUserData
	content string
}

// readOwn reads the Secret that a Request names. It is read each time: a user may change it
// until a VM may have been made from it. An error never quotes its content.
func (k *Keeper) readOwn(ctx context.Context, m *machinev1alpha1.Machine, r Request) (*source, error) {
	o := r.OwnUserData
	if o == nil {
		return nil, nil
	}
	problem := func(reason, format string, args ...any) error {
		field := "secretRef"
		if o.Bootstrap != "" {
			field = "bootstrapTemplateRef"
		}
		return &ProblemError{plan.Problem{Reason: reason, Message: fmt.Sprintf("class %q: spec.userData.%s: Secret %q", m.Spec.ClassRef.Key(), field, o.SecretName) + fmt.Sprintf(format, args...)}}
	}
	namespace, label := m.GetNamespace(), machinev1alpha1.UserDataOfNamespace
	if m.Spec.ClassRef.IsCluster() && o.Bootstrap == "" {
		// The Machine's namespace is never the default: users who may write there would choose the user data of the
		// class's VMs. A Secret for MachineClasses of its own namespace is not for Machines of other namespaces.
		namespace, label = o.SecretNamespace, machinev1alpha1.UserDataOfCluster
	}
	s := &corev1.Secret{}
	err := k.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: o.SecretName}, s)
	switch {
	case kerrors.IsNotFound(err):
		return nil, problem(machinev1alpha1.ReasonUserDataNotFound, ": not found in the namespace %s: create it", namespace)
	case err != nil:
		return nil, fmt.Errorf("cannot read Secret %q: %w", o.SecretName, err)
	case o.Bootstrap != "" && !isOfBootstrap(s, o.Bootstrap):
		return nil, problem(machinev1alpha1.ReasonUserDataNotAllowed, ": metadata.ownerReferences must have the Bootstrap of this Machine as the controller: delete the Secret")
	case o.Bootstrap == "" && s.GetLabels()[machinev1alpha1.LabelUserData] != label:
		// This check comes before any part of the content is reported.
		return nil, problem(machinev1alpha1.ReasonUserDataNotAllowed, ": must have the label %s: %q, because its content is brought onto VMs", machinev1alpha1.LabelUserData, label)
	}
	key, err := keyOf(s, o.Key)
	if err != nil {
		return nil, problem(machinev1alpha1.ReasonUserDataNotFound, "%v", err)
	}
	content := s.Data[key]
	check := userdata.CheckOwn
	if o.Bootstrap != "" {
		check = userdata.CheckMade
	}
	if err := check(content, string(s.Data[machinev1alpha1.UserDataKeyFormat]), o.Format); err != nil {
		return nil, problem(machinev1alpha1.ReasonUserDataInvalid, ", key %q: %v", key, err)
	}
	hasToken, err := userdata.InspectOwn(string(content), r.form())
	if err != nil {
		return nil, problem(userdata.ReasonOf(err), ", key %q: %v", key, err)
	}
	return &source{
		OwnUserData: OwnUserData{
			UserDataStatus: machinev1alpha1.UserDataStatus{SecretName: o.SecretName, SecretNamespace: o.SecretNamespace, Key: key, Hash: hashOf(content, s.GetUID())},
			// A bootstrap provider has tokens of its own.
			HasToken: hasToken || o.Bootstrap != "",
		},
		content: string(content),
	}, nil
}

// isOfBootstrap reports whether the Bootstrap with the UID controls a Secret.
func isOfBootstrap(s *corev1.Secret, uid types.UID) bool {
	c := metav1.GetControllerOf(s)
	return c != nil && c.UID == uid
}

// keyOf returns the key of the user data in a Secret.
func keyOf(s *corev1.Secret, wanted string) (string, error) {
	for _, key := range []string{machinev1alpha1.UserDataKey, machinev1alpha1.UserDataKeyClusterAPI} {
		if wanted != "" {
			key = wanted
		}
		if _, ok := s.Data[key]; ok {
			return key, nil
		}
	}
	if wanted != "" {
		return "", fmt.Errorf(": has no key %q", wanted)
	}
	return "", fmt.Errorf(": has neither the key %s nor the key %s", machinev1alpha1.UserDataKey, machinev1alpha1.UserDataKeyClusterAPI)
}

// hashOf returns a hash of the content that only clients with access to the Secret can compute. The UID of the
// Secret is as secret as its content: without it, a client could confirm guesses.
func hashOf(content []byte, uid types.UID) string {
	h := hmac.New(sha256.New, []byte(uid))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// annotation describes the source of user data, empty for a template of Drover.
func (s *source) annotation() (string, error) {
	if s == nil {
		return "", nil
	}
	b, err := json.Marshal(s.OwnUserData)
	return string(b), err
}

// ownIn returns the description in the Secret beside a Machine, nil if Drover wrote the user data. A
// description that cannot be read was changed by a user: it only informs, and no decision depends on it.
func ownIn(s *corev1.Secret) *OwnUserData {
	text := s.GetAnnotations()[annotationOwn]
	if text == "" {
		return nil
	}
	o := &OwnUserData{}
	if json.Unmarshal([]byte(text), o) != nil || o.SecretName == "" {
		return nil
	}
	return o
}
