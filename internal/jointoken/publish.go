package jointoken

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/identity"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/userdata"
)

// Annotations of the Secret beside the Machine, and annotationMinted.
const (
	// annotationTemplate is the hash of the template that the user data was made from.
	annotationTemplate = clusterv1alpha1.Group + "/user-data-template"
	// annotationConfig is the UID of the configuration in the user data.
	annotationConfig = clusterv1alpha1.Group + "/config"
	// annotationExpires is the end of the lease that the token had when the Secret was
	// written. Renewals do not write the Secret.
	annotationExpires = clusterv1alpha1.AnnotationTokenExpires
)

// A publication is the content of the Secret beside the Machine.
type publication struct {
	data        map[string][]byte
	annotations map[string]string
}

func newPublication(m *machinev1alpha1.Machine, c Cluster, r Request, own *source, at endpoint, half credential, l lease) (publication, error) {
	token := tokenOf(m, half)
	p := publication{
		data: map[string][]byte{
			clusterv1alpha1.ConnectionToken:  []byte(token),
			clusterv1alpha1.ConnectionServer: []byte(at.server),
			clusterv1alpha1.ConnectionCA:     at.ca,
		},
		annotations: map[string]string{
			annotationTemplate: r.Hash(),
			annotationConfig:   string(c.ConfigUID),
			annotationMinted:   half.minted.UTC().Format(time.RFC3339),
			annotationExpires:  l.expires.UTC().Format(time.RFC3339),
		},
	}
	values := userdata.Filling{
		Token: token, Server: at.server, CA: at.ca, UID: string(identity.UID(m)), ConfigUID: string(c.ConfigUID),
		Name: identity.NodeName(m),
	}
	var filled []byte
	var err error
	switch {
	case own != nil:
		if p.annotations[annotationOwn], err = own.annotation(); err == nil {
			filled, err = values.FillOwn(own.content, r.form())
		}
	case r.UserData != "":
		filled, err = values.Fill(r.UserData, r.form())
	default:
		return p, nil
	}
	if err != nil {
		return p, &ProblemError{plan.Problem{Reason: userdata.ReasonOf(err), Message: fmt.Sprintf("class %q: %v", m.Spec.ClassRef.Key(), err)}}
	}
	p.data[clusterv1alpha1.ConnectionUserData] = filled
	return p, nil
}

// isIn reports whether the Secret was made from the same sources. The lease may be
// another: it is renewed without a write of the Secret.
func (p publication) isIn(s *corev1.Secret) bool {
	for _, key := range []string{clusterv1alpha1.ConnectionToken, clusterv1alpha1.ConnectionServer, clusterv1alpha1.ConnectionCA} {
		if !bytes.Equal(s.Data[key], p.data[key]) {
			return false
		}
	}
	for _, key := range []string{annotationTemplate, annotationConfig, annotationMinted, annotationOwn} {
		if s.GetAnnotations()[key] != p.annotations[key] {
			return false
		}
	}
	return true
}

// publish returns the Secret beside the Machine with the publication, written if need be.
func (k *Keeper) publish(ctx context.Context, m *machinev1alpha1.Machine, p publication, existing *corev1.Secret) (*corev1.Secret, error) {
	if existing != nil && p.isIn(existing) {
		return existing, nil
	}
	s := userDataSecret(m)
	if existing != nil {
		s = existing.DeepCopy()
	}
	s.Data = p.data
	delete(s.Annotations, annotationOwn)
	for key, value := range p.annotations {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, key, value)
	}
	if existing != nil {
		if err := k.Client.Update(ctx, s); err != nil {
			return nil, fmt.Errorf("cannot update Secret %s: %w", s.GetName(), err)
		}
	} else if err := k.Client.Create(ctx, s); err != nil {
		return nil, fmt.Errorf("cannot create Secret %s: %w", s.GetName(), err)
	}
	s.SetManagedFields(nil)
	return s, nil
}

// userDataSecret returns an empty Secret for the user data of a Machine, which goes with
// the Machine.
func userDataSecret(m *machinev1alpha1.Machine) *corev1.Secret {
	owner := metav1.NewControllerRef(m, machinev1alpha1.MachineGroupVersionKind)
	owner.BlockOwnerDeletion = nil // The Machine need not wait for it.
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.GetNamespace(), Name: names.UserData(m.GetName(), m.GetUID()),
			Labels:          map[string]string{machinev1alpha1.LabelMachine: m.GetName()},
			OwnerReferences: []metav1.OwnerReference{*owner},
		},
		Type: resource.SecretTypeConnection,
	}
}

// readSecret reads the Secret beside the Machine, nil if there is none. One of another
// object is an error: its token may be known to other users.
func (k *Keeper) readSecret(ctx context.Context, m *machinev1alpha1.Machine) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	key := types.NamespacedName{Namespace: m.GetNamespace(), Name: names.UserData(m.GetName(), m.GetUID())}
	err := k.Live.Get(ctx, key, s)
	switch {
	case kerrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read Secret %s: %w", key.Name, err)
	case !metav1.IsControlledBy(s, m):
		return nil, fmt.Errorf("the Secret %s belongs to another object: metadata.ownerReferences has no controller with the UID of this Machine", key.Name)
	}
	s.SetManagedFields(nil)
	return s, nil
}
