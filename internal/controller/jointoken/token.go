package jointoken

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// renewAt is the part of a token's life after which it is given a new one.
const renewAt = 0.5

// minTTL keeps renewals rare.
const minTTL = time.Minute

// checkID says what is wrong with an external name that a user gave.
func checkID(id string) error {
	if !bootstraputil.IsValidBootstrapTokenID(id) {
		return fmt.Errorf("annotation crossplane.io/external-name: invalid value %q: must be the ID of a bootstrap token, 6 characters of a-z and 0-9", id)
	}
	return nil
}

func checkTTL(ttl time.Duration) error {
	if ttl < minTTL {
		return fmt.Errorf("spec.forProvider.ttl: invalid value %s: must be %s or more", ttl, minTTL)
	}
	return nil
}

// secretFor returns the Secret that is the token, in the target cluster.
func secretFor(jt *v1alpha1.JoinToken, config types.UID, id, secret string, now time.Time) *corev1.Secret {
	p := jt.Spec.ForProvider
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem,
			Name:      bootstraputil.BootstrapTokenSecretName(id),
			Labels:    map[string]string{v1alpha1.LabelJoinToken: string(jt.GetUID()), v1alpha1.LabelConfig: string(config)},
		},
		Type: bootstrapapi.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			bootstrapapi.BootstrapTokenIDKey:               []byte(id),
			bootstrapapi.BootstrapTokenSecretKey:           []byte(secret),
			bootstrapapi.BootstrapTokenUsageAuthentication: []byte("true"),
		},
	}
	setParameters(s, p)
	setExpiration(s, now.Add(p.TTL.Duration))
	return s
}

func setParameters(s *corev1.Secret, p v1alpha1.JoinTokenParameters) {
	for key, value := range map[string]string{
		bootstrapapi.BootstrapTokenDescriptionKey: p.Description,
		bootstrapapi.BootstrapTokenExtraGroupsKey: strings.Join(slices.Sorted(slices.Values(p.Groups)), ","),
	} {
		if value == "" {
			delete(s.Data, key)
			continue
		}
		s.Data[key] = []byte(value)
	}
}

func setExpiration(s *corev1.Secret, at time.Time) {
	s.Data[bootstrapapi.BootstrapTokenExpirationKey] = []byte(at.UTC().Format(time.RFC3339))
}

// expiration of the token; zero if it has none that can be read, which the API
// server takes for expired.
func expiration(s *corev1.Secret) time.Time {
	t, err := time.Parse(time.RFC3339, string(s.Data[bootstrapapi.BootstrapTokenExpirationKey]))
	if err != nil {
		return time.Time{}
	}
	return t
}

// renewal is when the token should be given a new life.
func renewal(s *corev1.Secret, ttl time.Duration) time.Time {
	return expiration(s).Add(-time.Duration(float64(ttl) * (1 - renewAt)))
}

// upToDate reports whether the token is what the JoinToken wants, for now.
func upToDate(s *corev1.Secret, p v1alpha1.JoinTokenParameters, now time.Time) bool {
	want := s.DeepCopy()
	setParameters(want, p)
	for _, key := range []string{bootstrapapi.BootstrapTokenDescriptionKey, bootstrapapi.BootstrapTokenExtraGroupsKey} {
		if string(s.Data[key]) != string(want.Data[key]) {
			return false
		}
	}
	return now.Before(renewal(s, p.TTL.Duration))
}

// ours reports whether the JoinToken made the token.
func ours(s *corev1.Secret, jt *v1alpha1.JoinToken) bool {
	return s.GetLabels()[v1alpha1.LabelJoinToken] == string(jt.GetUID())
}

// tokenOf returns the token as a kubelet presents it.
func tokenOf(s *corev1.Secret) string {
	return bootstraputil.TokenFromIDAndSecret(string(s.Data[bootstrapapi.BootstrapTokenIDKey]), string(s.Data[bootstrapapi.BootstrapTokenSecretKey]))
}

// secretHalf returns the secret half of a token that was published as this ID's,
// empty if there was none.
func secretHalf(id string, published []byte) string {
	token := string(published)
	if !bootstraputil.IsValidBootstrapToken(token) || !strings.HasPrefix(token, id+".") {
		return ""
	}
	return strings.TrimPrefix(token, id+".")
}

// newSecretHalf returns a random secret half.
func newSecretHalf() (string, error) {
	token, err := bootstraputil.GenerateBootstrapToken()
	if err != nil {
		return "", err
	}
	_, secret, _ := strings.Cut(token, ".")
	return secret, nil
}
