package target

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	authv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	manifests "github.com/drover-dev/drover/package/provider-drover"
)

// rightsAgain is when complete rights are checked again. Missing ones are checked each time.
const rightsAgain = 10 * time.Minute

// rights of one set of credentials.
type rights struct {
	needed []authv1.ResourceAttributes

	mu      sync.Mutex
	checked time.Time
	missing []authv1.ResourceAttributes
}

// lacking returns which of the shipped rights the credentials lack, by requests to the API server.
func (r *rights) lacking(ctx context.Context, kube kubernetes.Interface, now time.Time) ([]authv1.ResourceAttributes, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ask := r.missing
	if len(ask) == 0 {
		if !r.checked.IsZero() && now.Sub(r.checked) < rightsAgain {
			return nil, nil
		}
		ask = r.needed
	}
	var missing []authv1.ResourceAttributes
	for _, a := range ask {
		review := &authv1.SelfSubjectAccessReview{Spec: authv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}
		answer, err := kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		if !answer.Status.Allowed {
			missing = append(missing, a)
		}
	}
	r.missing, r.checked = missing, now
	return missing, nil
}

// needed returns the rights of the shipped roles, each on its own, without those for approving certificates
// that Drover does not decide on.
func needed(c v1alpha1.Certificates) []authv1.ResourceAttributes {
	signers := requiredSigners(c)
	return slices.DeleteFunc(slices.Clone(shipped()), func(a authv1.ResourceAttributes) bool {
		if a.Group != certificatesv1.GroupName {
			return false
		}
		return len(signers) == 0 || a.Resource == "signers" && !slices.Contains(signers, a.Name)
	})
}

var shipped = sync.OnceValue(func() []authv1.ResourceAttributes {
	var out []authv1.ResourceAttributes
	for _, file := range [][]byte{manifests.TargetRights, manifests.ClientCertificateRights} {
		for _, doc := range strings.Split(string(file), "\n---\n") {
			role := &rbacv1.Role{} // A ClusterRole has the same fields that matter here.
			if err := yaml.Unmarshal([]byte(doc), role); err != nil {
				panic(fmt.Sprintf("shipped rights: %v", err)) // They are embedded, and tested.
			}
			if role.Kind != "Role" && role.Kind != "ClusterRole" {
				continue
			}
			for _, rule := range role.Rules {
				out = append(out, attributesOf(role.GetNamespace(), rule)...)
			}
		}
	}
	return out
})

func attributesOf(namespace string, rule rbacv1.PolicyRule) []authv1.ResourceAttributes {
	var out []authv1.ResourceAttributes
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			resource, subresource, _ := strings.Cut(resource, "/")
			for _, name := range names {
				for _, verb := range rule.Verbs {
					out = append(out, authv1.ResourceAttributes{
						Namespace: namespace, Group: group, Resource: resource, Subresource: subresource, Name: name, Verb: verb,
					})
				}
			}
		}
	}
	return out
}

// textOf returns a right in the usual form: "create pods/eviction".
func textOf(a authv1.ResourceAttributes) string {
	s := a.Verb + " " + a.Resource
	if a.Subresource != "" {
		s += "/" + a.Subresource
	}
	if a.Group != "" {
		s += "." + a.Group
	}
	if a.Name != "" {
		s += " " + a.Name
	}
	if a.Namespace != "" {
		s += " in " + a.Namespace
	}
	return s
}
