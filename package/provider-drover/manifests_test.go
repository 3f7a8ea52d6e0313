package manifests

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/rightstest"
)

var update = flag.Bool("update", false, "write testdata/rights.txt")

// TestRights compares the rights in the shipped manifests with a list that a reviewer can read. A
// change that widens a right must change the list too.
func TestRights(t *testing.T) {
	files, err := filepath.Glob("rbac*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all objects
	for _, f := range files {
		all.read(t, f)
	}
	got := all.text(t)
	const golden = "testdata/rights.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the manifests allow what %s does not list, or the other way round; go test -update writes:\n%s", golden, got)
	}
}

// TestNoRightIsForEverything fails for rights that no component of Drover may ever have.
func TestNoRightIsForEverything(t *testing.T) {
	var all objects
	files, err := filepath.Glob("rbac*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		all.read(t, f)
	}
	for _, r := range all.roles {
		for _, rule := range r.Rules {
			for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs) {
				if word == "*" {
					t.Errorf("%s: %v allows everything", r.Name, rule)
				}
			}
			for _, verb := range []string{"bind", "escalate", "impersonate"} {
				if slices.Contains(rule.Verbs, verb) {
					t.Errorf("%s: %v is a way to any right", r.Name, rule)
				}
			}
		}
	}
}

// role is a Role or a ClusterRole.
type role struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Rules             []rbacv1.PolicyRule     `json:"rules"`
	AggregationRule   *rbacv1.AggregationRule `json:"aggregationRule"`
	file              string
}

// binding is a RoleBinding or a ClusterRoleBinding.
type binding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Subjects          []rbacv1.Subject `json:"subjects"`
	RoleRef           rbacv1.RoleRef   `json:"roleRef"`
	file              string
}

type objects struct {
	roles    []role
	bindings []binding
}

// TestEveryRoleIsBoundOrAggregates fails for a role that the list of rights would omit.
func TestEveryRoleIsBoundOrAggregates(t *testing.T) {
	var all objects
	files, err := filepath.Glob("rbac*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		all.read(t, f)
	}
	for _, r := range all.roles {
		bound := slices.ContainsFunc(all.bindings, func(b binding) bool { return b.RoleRef.Kind == r.Kind && b.RoleRef.Name == r.Name })
		if !bound && len(r.Labels) == 0 {
			t.Errorf("%s: %s %s is not bound, and aggregates to nothing", r.file, r.Kind, r.Name)
		}
	}
}

func (o *objects) read(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range bytes.Split(b, []byte("\n---\n")) {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(doc, &kind); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		switch kind.Kind {
		case "Role", "ClusterRole":
			r := role{file: file}
			if err := yaml.Unmarshal(doc, &r); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			o.roles = append(o.roles, r)
		case "RoleBinding", "ClusterRoleBinding":
			r := binding{file: file}
			if err := yaml.Unmarshal(doc, &r); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			o.bindings = append(o.bindings, r)
		case "Namespace", "ServiceAccount", "DeploymentRuntimeConfig", "ImageConfig":
		default:
			t.Fatalf("%s: a %s, of which this test does not know what it allows", file, kind.Kind)
		}
	}
}

// text lists all rights by their subjects.
func (o *objects) text(t *testing.T) string {
	t.Helper()
	list := rightstest.List{}
	for _, b := range o.bindings {
		for _, s := range b.Subjects {
			list.Add(fmt.Sprintf("%s %s/%s, by %s", s.Kind, s.Namespace, s.Name, b.file), b.Namespace, o.rulesOf(t, b)...)
		}
	}
	for _, r := range o.roles {
		for label := range r.Labels {
			// Rights of Drover's own aggregated roles are listed with their bindings.
			if _, aggregates := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-"); aggregates || label == "rbac.crossplane.io/aggregate-to-crossplane" {
				list.Add(fmt.Sprintf("%s %s, %s, by %s", r.Kind, r.Name, label, r.file), "", r.Rules...)
			}
		}
	}
	return list.String()
}

func (o *objects) rulesOf(t *testing.T, b binding) []rbacv1.PolicyRule {
	t.Helper()
	for _, r := range o.roles {
		if r.Kind != b.RoleRef.Kind || r.Name != b.RoleRef.Name || r.Kind == "Role" && r.Namespace != b.Namespace {
			continue
		}
		rules := r.Rules
		if r.AggregationRule == nil {
			return rules
		}
		for _, selector := range r.AggregationRule.ClusterRoleSelectors {
			s, err := metav1.LabelSelectorAsSelector(&selector)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range o.roles {
				if part.Kind == "ClusterRole" && s.Matches(labels.Set(part.Labels)) {
					rules = append(rules, part.Rules...)
				}
			}
		}
		return rules
	}
	t.Fatalf("%s %s binds %s %s, which no file has", b.Kind, b.Name, b.RoleRef.Kind, b.RoleRef.Name)
	return nil
}

// TestThePackageOfEachVMCanBeGuarded checks that a role that lets provider-drover create VMs of an
// API group also lets it change the ClusterUsage of their package. provider-drover could not delete
// such a ClusterUsage otherwise, and the package would be protected forever.
func TestThePackageOfEachVMCanBeGuarded(t *testing.T) {
	files, err := filepath.Glob("rbac*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Glob("../../examples/*/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all objects
	for _, f := range append(files, examples...) {
		all.read(t, f)
	}
	groups := 0
	for _, r := range all.roles {
		if r.Labels["rbac.drover.dev/aggregate-to-machine-controller"] != "true" {
			continue
		}
		for _, rule := range r.Rules {
			if !slices.Contains(rule.Verbs, "create") {
				continue
			}
			for _, group := range rule.APIGroups {
				groups++
				if !slices.ContainsFunc(r.Rules, func(u rbacv1.PolicyRule) bool {
					return slices.Contains(u.Resources, "clusterusages") && slices.Contains(u.ResourceNames, "drover-machines."+group) &&
						slices.Contains(u.Verbs, "update") && slices.Contains(u.Verbs, "delete")
				}) {
					t.Errorf("%s: may create objects of %s, and not update and delete the ClusterUsage drover-machines.%s", r.Name, group, group)
				}
			}
		}
	}
	if groups < 10 {
		t.Errorf("%d API groups: this shows nothing", groups)
	}
}
