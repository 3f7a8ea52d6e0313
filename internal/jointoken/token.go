package jointoken

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/identity"
)

// annotationMinted on the token and on the Secret beside the Machine is when the secret half was minted. If the
// two times differ, the earlier one counts.
const annotationMinted = clusterv1alpha1.AnnotationMinted

// errForeign is the cause of errors about a token that belongs to another object.
var errForeign = errors.New("the bootstrap token belongs to another object")

// A credential is the secret half of a token.
type credential struct {
	secret string // empty if there is none
	minted time.Time
}

// A lease is the state of the token in the target cluster. It is renewed after half of its duration, until the
// total life of the secret half ends: see Request. A Machine without a VM gets another secret half before that,
// and user data with it. If there may be a VM, the token is left to expire, and may be gone already: a VM that
// has not joined by then cannot join any more.
type lease struct {
	uid             types.UID
	groups          string
	minted, expires time.Time
}

// isCurrent reports whether the token may stay as it is.
func (l lease) isCurrent(r Request, now time.Time) bool {
	if r.Frozen && r.isSpent(l.minted, now) {
		return true // It is left to expire.
	}
	renewal := r.renewal(l, now)
	return l.groups == r.groups() && (renewal.IsZero() || now.Before(renewal))
}

// leaseOf a token.
func leaseOf(s *corev1.Secret, minted time.Time) lease {
	return lease{uid: s.GetUID(), groups: string(s.Data[bootstrapapi.BootstrapTokenExtraGroupsKey]), minted: minted, expires: expiration(s)}
}

// choose returns the secret half of the token. That is the published one, which a VM may have, while its total
// life lasts, or else that of a token whose Secret was not written before a crash. It is empty if a new one has
// to be minted.
func (r Request) choose(published, inTarget credential, now time.Time) credential {
	if published.secret == inTarget.secret {
		published.minted = earlierKnown(published.minted, inTarget.minted)
		inTarget = published
	}
	for _, c := range []credential{published, inTarget} {
		if c.secret != "" && (r.Frozen || !r.isSpent(c.minted, now)) {
			return c
		}
	}
	return credential{}
}

func mint(now time.Time) (credential, error) {
	token, err := bootstraputil.GenerateBootstrapToken()
	if err != nil {
		return credential{}, err
	}
	_, secret, _ := strings.Cut(token, ".")
	return credential{secret: secret, minted: now.UTC().Truncate(time.Second)}, nil
}

// credentialIn the token of a Machine.
func credentialIn(s *corev1.Secret, id string) credential {
	if s == nil {
		return credential{}
	}
	token := bootstraputil.TokenFromIDAndSecret(id, string(s.Data[bootstrapapi.BootstrapTokenSecretKey]))
	return credential{secret: secretHalf(id, token), minted: mintedAt(s)}
}

// secretHalf of a token with the ID, empty if it is not valid or has another ID.
func secretHalf(id, token string) string {
	if !bootstraputil.IsValidBootstrapToken(token) || !strings.HasPrefix(token, id+".") {
		return ""
	}
	return strings.TrimPrefix(token, id+".")
}

// tokenOf a Machine, as a kubelet presents it.
func tokenOf(m *machinev1alpha1.Machine, c credential) string {
	return bootstraputil.TokenFromIDAndSecret(identity.TokenID(m), c.secret)
}

// tokenSecret returns the Secret that is the token: the existing one, changed as
// requested, or a new one.
func tokenSecret(m *machinev1alpha1.Machine, c Cluster, r Request, half credential, existing *corev1.Secret, now time.Time) *corev1.Secret {
	id := identity.TokenID(m)
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: bootstraputil.BootstrapTokenSecretName(id)},
		Type:       bootstrapapi.SecretTypeBootstrapToken,
	}
	if existing != nil {
		s = existing.DeepCopy()
	}
	metav1.SetMetaDataLabel(&s.ObjectMeta, clusterv1alpha1.LabelJoinToken, string(identity.UID(m)))
	metav1.SetMetaDataLabel(&s.ObjectMeta, clusterv1alpha1.LabelConfig, string(c.ConfigUID))
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, annotationMinted, half.minted.Format(time.RFC3339))
	setData(s, bootstrapapi.BootstrapTokenIDKey, id)
	setData(s, bootstrapapi.BootstrapTokenSecretKey, half.secret)
	setData(s, bootstrapapi.BootstrapTokenUsageAuthentication, "true")
	setData(s, bootstrapapi.BootstrapTokenDescriptionKey, "machine "+m.GetNamespace()+"/"+m.GetName())
	setData(s, bootstrapapi.BootstrapTokenExtraGroupsKey, r.groups())
	setData(s, bootstrapapi.BootstrapTokenExpirationKey, nextExpiration(r, half, existing, now).UTC().Format(time.RFC3339))
	return s
}

// nextExpiration returns the current expiration of a token with the same secret half until it has to be
// renewed.
func nextExpiration(r Request, half credential, existing *corev1.Secret, now time.Time) time.Time {
	next := r.expiration(half.minted, now)
	if existing == nil || string(existing.Data[bootstrapapi.BootstrapTokenSecretKey]) != half.secret {
		return next
	}
	l := leaseOf(existing, half.minted)
	if renewal := r.renewal(l, now); renewal.IsZero() || now.Before(renewal) {
		return earlier(l.expires, r.endOfLife(half.minted))
	}
	return next
}

func setData(s *corev1.Secret, key, value string) {
	if value == "" {
		delete(s.Data, key)
		return
	}
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	s.Data[key] = []byte(value)
}

// expiration returns the expiration of a token; zero if it has none that can be read, which the API server
// treats as expired.
func expiration(s *corev1.Secret) time.Time {
	return parseTime(string(s.Data[bootstrapapi.BootstrapTokenExpirationKey]))
}

// mintedAt returns when the secret half in a Secret was minted, zero if it is not known.
func mintedAt(s *corev1.Secret) time.Time { return parseTime(s.GetAnnotations()[annotationMinted]) }

func parseTime(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

// earlierKnown returns the earlier one of two times, either of which may be zero.
func earlierKnown(a, b time.Time) time.Time {
	switch {
	case a.IsZero():
		return b
	case b.IsZero():
		return a
	}
	return earlier(a, b)
}

// token returns the token of a Machine in the target cluster, nil if there is none. If it belongs to another
// object, that is an error.
func (c Cluster) token(ctx context.Context, m *machinev1alpha1.Machine) (*corev1.Secret, error) {
	id := identity.TokenID(m)
	s, err := c.Kube.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, bootstraputil.BootstrapTokenSecretName(id), metav1.GetOptions{})
	switch {
	case kerrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, c.Classify(err)
	case s.Type != bootstrapapi.SecretTypeBootstrapToken || s.GetLabels()[clusterv1alpha1.LabelJoinToken] != string(identity.UID(m)):
		return nil, fmt.Errorf("bootstrap token %s in the target cluster: label %s is not the UID of this Machine: %w", id, clusterv1alpha1.LabelJoinToken, errForeign)
	}
	return s, nil
}

// deleteToken deletes the token with the name and UID.
func (c Cluster) deleteToken(ctx context.Context, name string, uid types.UID) error {
	err := c.Kube.CoreV1().Secrets(metav1.NamespaceSystem).Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(uid))})
	if err == nil || kerrors.IsNotFound(err) {
		return nil
	}
	return c.Classify(err)
}
