package kit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/patience"
)

// tenantAccount is the ServiceAccount of a Tenant in its namespace.
const tenantAccount = "tenant"

// editSuffix ends the names of the ClusterRoles that Crossplane's RBAC manager generates for
// users who may write the objects of a package.
const editSuffix = ":aggregate-to-edit"

// A Tenant is a ServiceAccount that has exactly the rights in its namespace that Crossplane's
// RBAC manager generates for Drover's kinds.
type Tenant struct {
	// As is the Tenant's client of the control cluster.
	As client.Client

	f Fleet
}

// NewTenant creates a Tenant of the fleet's namespace. It has no access to Secrets until
// MayUseSecrets.
func (f Fleet) NewTenant(t testing.TB) *Tenant {
	t.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: tenantAccount}}
	f.Create(t, sa)
	for _, role := range f.editRoles(t) {
		f.Create(t, f.bind(role))
	}
	user := "system:serviceaccount:" + f.Namespace + ":" + tenantAccount
	tenant := &Tenant{As: f.Control.As(t, user, "system:serviceaccounts", "system:serviceaccounts:"+f.Namespace), f: f}
	tenant.await(t, &machinev1alpha1.MachineList{}, &machinev1alpha1.MachineDeploymentList{}, &clusterv1alpha1.ProviderConfigList{})
	return tenant
}

// MayUseSecrets grants the Tenant access to the Secrets of its namespace.
func (tenant *Tenant) MayUseSecrets(t testing.TB) {
	t.Helper()
	f := tenant.f
	r := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "secrets"}}
	r.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{rbacv1.VerbAll}}}
	f.Create(t, r)
	b := f.bind(r.Name)
	b.RoleRef.Kind = "Role"
	f.Create(t, b)
	tenant.await(t, &corev1.SecretList{})
}

// await the rights: the API server applies a RoleBinding with a short delay.
func (tenant *Tenant) await(t testing.TB, lists ...client.ObjectList) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		for _, l := range lists {
			if err := tenant.As.List(ctx, l, client.InNamespace(tenant.f.Namespace)); err != nil {
				return err.Error()
			}
		}
		return ""
	})
}

func (f Fleet) bind(role string) *rbacv1.RoleBinding {
	b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: strings.ReplaceAll(role, ":", ".")}}
	b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	b.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.Namespace, Name: tenantAccount}}
	return b
}

// editRoles returns the roles that only cover kinds of Drover that are independent of clouds.
func (f Fleet) editRoles(t testing.TB) []string {
	t.Helper()
	var out []string
	patience.Eventually(t, func(ctx context.Context) string {
		out = nil
		l := &rbacv1.ClusterRoleList{}
		if err := f.Client.List(ctx, l); err != nil {
			return err.Error()
		}
		missing := map[string]bool{"machines/status": true, "machinesets/status": true, "machinedeployments/status": true, "orphancollectors": true, "providerconfigs": true}
		for _, r := range l.Items {
			if !strings.HasSuffix(r.Name, editSuffix) || !isDrovers(r.Rules) {
				continue
			}
			out = append(out, r.Name)
			for _, rule := range r.Rules {
				for _, resource := range rule.Resources {
					delete(missing, resource)
				}
			}
		}
		if len(missing) > 0 {
			return fmt.Sprintf("the RBAC manager generated no role with %v yet, only %v", missing, out)
		}
		return ""
	})
	return out
}

func isDrovers(rules []rbacv1.PolicyRule) bool {
	groups := []string{machinev1alpha1.Group, clusterv1alpha1.Group}
	return len(rules) > 0 && !slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.ContainsFunc(r.APIGroups, func(g string) bool { return !slices.Contains(groups, g) })
	})
}

// Refused reports whether an API server refused a request because of missing rights, a policy or
// the schema. Any other error means that the test is wrong.
func Refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
}
