package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/rightstest"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

var update = flag.Bool("update", false, "write testdata/rights.txt")

// TestWhatEachComponentMayDo compares the rights that each component of Drover has at the API
// servers, by any binding, with a list that a reviewer can read. All tests of this package run
// with exactly these rights.
func TestWhatEachComponentMayDo(t *testing.T) {
	t.Parallel()
	list := rightstest.List{}
	for account, component := range accounts(t) {
		list.Add(component+", in the control cluster", "")
		collect(t, plane.Control, account, component+", in the control cluster", list)
	}
	collect(t, plane.Target, corev1.ObjectReference{Namespace: "drover-system", Name: "drover"}, "provider-drover, in a target cluster", list)

	const golden = "testdata/rights.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(list.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := list.String(); got != string(want) {
		t.Errorf("the components may do what %s does not list, or the other way round; -update writes:\n%s", golden, got)
	}
}

// TestTheRightsOfItsOwnAreEnough checks the case that Machines join the cluster that Drover runs
// in.
func TestTheRightsOfItsOwnAreEnough(t *testing.T) {
	t.Parallel()
	patience.Eventually(t, func(ctx context.Context) string {
		pc := &clusterv1alpha1.ClusterProviderConfig{}
		if err := plane.Client.Get(ctx, client.ObjectKey{Name: "default"}, pc); err != nil {
			return err.Error()
		}
		if c := pc.Status.GetCondition(clusterv1alpha1.ConditionAuthorized); c.Status != corev1.ConditionTrue {
			return fmt.Sprintf("condition %+v", c)
		}
		return ""
	})
}

// accounts of the packages, with the package names.
func accounts(t *testing.T) map[corev1.ObjectReference]string {
	t.Helper()
	out := map[corev1.ObjectReference]string{{Namespace: "crossplane-system", Name: "provider-drover"}: "provider-drover"}
	for _, kind := range []string{"ProviderRevision", "FunctionRevision"} {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(schema.GroupVersionKind{Group: "pkg.crossplane.io", Version: "v1", Kind: kind})
		if err := plane.Client.List(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		for _, r := range l.Items {
			name := r.GetLabels()["pkg.crossplane.io/package"]
			if name == "drover-function-tagger" {
				continue // The account of a user's function, which another test installs.
			}
			out[corev1.ObjectReference{Namespace: "crossplane-system", Name: r.GetName()}] = strings.TrimPrefix(name, "drover-")
		}
	}
	if len(out) != 4 {
		t.Fatalf("accounts %v, want those of provider-drover (its own, and the revision's), provider-local and function-drover", out)
	}
	return out
}

func collect(t *testing.T, c *kit.Cluster, account corev1.ObjectReference, who string, list rightstest.List) {
	t.Helper()
	var everywhere rbacv1.ClusterRoleBindingList
	var somewhere rbacv1.RoleBindingList
	for _, l := range []client.ObjectList{&everywhere, &somewhere} {
		if err := c.Client.List(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range everywhere.Items {
		if has(b.Subjects, account) {
			list.Add(who, "", rulesOf(t, c, "", b.RoleRef)...)
		}
	}
	for _, b := range somewhere.Items {
		if has(b.Subjects, account) {
			list.Add(who, b.Namespace, rulesOf(t, c, b.Namespace, b.RoleRef)...)
		}
	}
}

// has reports whether a binding is for the account or for its groups. Rights of all authenticated
// users are not listed: Drover does not grant them.
func has(subjects []rbacv1.Subject, account corev1.ObjectReference) bool {
	for _, s := range subjects {
		switch {
		case s.Kind == rbacv1.ServiceAccountKind && s.Namespace == account.Namespace && s.Name == account.Name,
			s.Kind == rbacv1.GroupKind && (s.Name == "system:serviceaccounts" || s.Name == "system:serviceaccounts:"+account.Namespace),
			s.Kind == rbacv1.UserKind && s.Name == fmt.Sprintf("system:serviceaccount:%s:%s", account.Namespace, account.Name):
			return true
		}
	}
	return false
}

func rulesOf(t *testing.T, c *kit.Cluster, namespace string, ref rbacv1.RoleRef) []rbacv1.PolicyRule {
	t.Helper()
	if ref.Kind == "Role" {
		r := &rbacv1.Role{}
		if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: ref.Name}, r); err != nil {
			t.Fatal(err)
		}
		return r.Rules
	}
	r := &rbacv1.ClusterRole{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: ref.Name}, r); err != nil {
		t.Fatal(err)
	}
	return r.Rules
}
