package e2e

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/rightstest"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// TestUsersOfTheShippedRoles asks the API server for the rights of users who are bound, in their
// namespace, to the roles of Kubernetes that Drover's roles aggregate to.
func TestUsersOfTheShippedRoles(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	type may struct {
		verb, resource string
		roles          []string
	}
	all, writers, operators := []string{"view", "edit", "admin"}, []string{"edit", "admin"}, []string{"admin"}
	rights := []may{
		{"list", "nodepools.machine.drover.dev", all},
		{"create", "nodepools.machine.drover.dev", writers},
		{"patch", "nodepools/scale.machine.drover.dev", writers},
		{"patch", "nodepools/status.machine.drover.dev", nil},
		{"list", "machinedeployments.machine.drover.dev", all},
		{"get", "machines.machine.drover.dev", all},
		{"get", "machinedeployments/scale.machine.drover.dev", all},
		{"get", "machineclasses.machine.drover.dev", all},
		{"create", "machinedeployments.machine.drover.dev", writers},
		{"patch", "machinesets.machine.drover.dev", writers},
		{"delete", "machines.machine.drover.dev", writers},
		{"patch", "machinedeployments/scale.machine.drover.dev", writers},
		{"update", "machinesets/scale.machine.drover.dev", writers},
		{"create", "machineclasses.machine.drover.dev", operators},
		{"create", "clustermachineclasses.machine.drover.dev", operators},
		{"update", "machineclasses.guard.machine.drover.dev", operators},
		{"create", "providerconfigs.cluster.drover.dev", operators},
		{"create", "providerconfigs.local.drover.dev", operators},
		{"update", "installations.guard.machine.drover.dev", operators},
		{"patch", "machines/status.machine.drover.dev", nil},
		{"update", "machines/status.guard.machine.drover.dev", nil},
		{"create", "machinegroups.machine.drover.dev", nil},
		{"create", "virtualmachines.local.drover.dev", nil},
		{"update", "virtualmachines.guard.local.drover.dev", nil},
	}
	for _, role := range all {
		user := tenantName(t, f, role)
		for _, r := range rights {
			resource, group, _ := strings.Cut(r.resource, ".")
			resource, sub, _ := strings.Cut(resource, "/")
			want := slices.Contains(r.roles, role)
			patience.Eventually(t, func(ctx context.Context) string {
				may, err := userMay(ctx, user, authorizationv1.ResourceAttributes{
					Namespace: f.Namespace, Verb: r.verb, Group: group, Resource: resource, Subresource: sub,
				})
				switch {
				case err != nil:
					return err.Error()
				case may != want:
					return fmt.Sprintf("%s may %s %s: %v, want %v", role, r.verb, r.resource, may, want)
				}
				return ""
			})
		}
	}
	t.Run("AnOperatorOfANamespaceMayWriteClasses", func(t *testing.T) {
		must(t, tenant(t, f, "drover:operator").Create(t.Context(), f.Class("large", "local", `{"image":"ubuntu-24.04","size":"large"}`)))
	})
}

// TestWhatCrossplaneGeneratesForEditors compares the rights on Drover's kinds that Crossplane's
// RBAC manager grants with a list that a reviewer can read. A policy must refuse each new right,
// unless tenants may have it.
func TestWhatCrossplaneGeneratesForEditors(t *testing.T) {
	t.Parallel()
	roles := &rbacv1.ClusterRoleList{}
	must(t, plane.Client.List(t.Context(), roles, client.MatchingLabels{"rbac.crossplane.io/aggregate-to-edit": "true"}))
	list := rightstest.List{}
	revision := regexp.MustCompile(`^(crossplane:provider:.*)-[0-9a-f]+:`)
	for _, r := range roles.Items {
		for _, rule := range r.Rules {
			if slices.ContainsFunc(rule.APIGroups, func(g string) bool { return strings.HasSuffix(g, "drover.dev") }) {
				list.Add(revision.ReplaceAllString(r.Name, "$1:"), "", rule)
			}
		}
	}
	const golden = "testdata/generated-roles.txt"
	if *update {
		must(t, os.WriteFile(golden, []byte(list.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if d := cmp.Diff(string(want), list.String()); d != "" {
		t.Errorf("the generated roles allow what %s does not list, or the other way round (-want +got); -update writes:\n%s", golden, d)
	}
}

// tenant returns a client of an account that is bound to a ClusterRole in the namespace of
// a fleet, and has no other rights.
func tenant(t *testing.T, f kit.Fleet, role string) client.Client {
	t.Helper()
	return f.Control.As(t, tenantName(t, f, role), "system:serviceaccounts", "system:serviceaccounts:"+f.Namespace)
}

// tenantName binds an account to a ClusterRole in the namespace of a fleet, and returns its user
// name once the binding is effective.
func tenantName(t *testing.T, f kit.Fleet, role string) string {
	t.Helper()
	name := "tenant-" + strings.ReplaceAll(role, ":", "-")
	b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name}}
	b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	b.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.Namespace, Name: name}}
	must(t, f.Client.Create(t.Context(), b))
	user := "system:serviceaccount:" + f.Namespace + ":" + name
	awaitBinding(t, user, f.Namespace)
	return user
}

// everywhere returns a client of an account that is bound to a ClusterRole in all
// namespaces, until the test ends.
func everywhere(t *testing.T, f kit.Fleet, role string) client.Client {
	t.Helper()
	name := f.Namespace + "-" + strings.ReplaceAll(role, ":", "-")
	b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	b.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.Namespace, Name: name}}
	must(t, f.Client.Create(t.Context(), b))
	t.Cleanup(func() { _ = f.Client.Delete(context.Background(), b) })
	user := "system:serviceaccount:" + f.Namespace + ":" + name
	awaitBinding(t, user, f.Namespace)
	return f.Control.As(t, user, "system:serviceaccounts", "system:serviceaccounts:"+f.Namespace)
}

// awaitBinding waits until a user of one of Drover's roles may read Machines: the API server's
// authorizer learns of bindings by a watch.
func awaitBinding(t *testing.T, user, namespace string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		may, err := userMay(ctx, user, authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "get", Group: "machine.drover.dev", Resource: "machines",
		})
		switch {
		case err != nil:
			return err.Error()
		case !may:
			return user + " may not read Machines yet"
		}
		return ""
	})
}

// userMay asks the API server whether a user has a right.
func userMay(ctx context.Context, user string, a authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &a}}
	err := plane.Client.Create(ctx, review)
	return review.Status.Allowed, err
}
