package installation

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	drover "github.com/drover-dev/drover"
)

const registry = "registry.example.org/team"

func planOf(t *testing.T, o Options) []Step {
	t.Helper()
	o.Registry, o.Version = registry, "v0.2.0"
	steps, err := Plan(drover.Manifests, o)
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// find an object of steps by KIND.GROUP/NAME.
func find(steps []Step, name string) *Object {
	for _, s := range steps {
		for i := range s.Objects {
			if s.Objects[i].Name() == name {
				return &s.Objects[i]
			}
		}
	}
	return nil
}

// packagesOf are the packages of a plan, in their order.
func packagesOf(steps []Step) []string {
	var out []string
	for _, s := range Select(steps, Packages) {
		for _, o := range s.Objects {
			p, _, _ := unstructured.NestedString(o.Object, "spec", "package")
			out = append(out, o.GetKind()+" "+o.GetName()+" "+p)
		}
	}
	return out
}

func TestDroverIsInstalledBeforeTheProviderOfTheCloud(t *testing.T) {
	own := []string{
		"Function drover-function-drover " + registry + "/function-drover:v0.2.0",
		"Provider drover-provider-drover " + registry + "/provider-drover:v0.2.0",
		"Configuration drover-drover " + registry + "/drover:v0.2.0",
	}
	for cloud, want := range map[string]string{
		"hcloud":    "Provider drover-provider-hcloud " + registry + "/provider-hcloud:v0.2.0",
		"aws":       "Provider drover-provider-aws " + registry + "/provider-aws:v0.2.0",
		"upjet-aws": "Provider crossplane-contrib-provider-aws-ec2 xpkg.crossplane.io/crossplane-contrib/provider-aws-ec2:v2.7.0",
	} {
		if got := packagesOf(planOf(t, Options{Cloud: cloud})); !slices.Equal(got, append(slices.Clone(own), want)) {
			t.Errorf("%s: %q", cloud, got)
		}
	}
}

func TestEachCloudHasRightsPackagesAndAnExample(t *testing.T) {
	clouds := Clouds(drover.Manifests)
	if len(clouds) < 15 {
		t.Fatalf("clouds %q", clouds)
	}
	for _, cloud := range clouds {
		t.Run(cloud, func(t *testing.T) {
			steps := planOf(t, Options{Cloud: cloud})
			if role := "clusterrole.rbac.authorization.k8s.io/drover:machine-controller:" + cloud; cloud != "local" && find(steps, role) == nil {
				t.Errorf("no %s", role)
			}
			if n := len(packagesOf(steps)); n < 4 {
				t.Errorf("%d packages", n)
			}
			kinds := ""
			for _, o := range steps[len(steps)-1].Objects {
				kinds += o.GetKind() + " "
			}
			if !strings.HasPrefix(kinds, "MachineClass MachineDeployment ") {
				t.Errorf("the example has %s", kinds)
			}
			c, err := newCloud(drover.Manifests, cloud)
			if err != nil || !strings.HasPrefix(c.packages[0], ownPackage) {
				return
			}
			if s := Select(steps, Configuration); len(s) == 1 && usesIdentity(s[0].Objects[0]) {
				return
			}
			if s := Select(steps, Configuration); len(s) != 1 || CredentialOf(s[0].Objects[0]) == nil || CredentialOf(s[0].Objects[0]).Form == "" {
				t.Errorf("the configuration does not name its Secret, or not what that has: %v", s)
			}
		})
	}
}

// usesIdentity reports whether a configuration has the identity of the provider's pod in place of a Secret.
func usesIdentity(o Object) bool {
	source, _, _ := unstructured.NestedString(o.Object, "spec", "credentials", "source")
	return source == "InjectedIdentity"
}

// A folder of Compositions and the docs have the same clouds.
func TestACloudThatIsUnknownIsRefusedWithThoseThatAre(t *testing.T) {
	for cloud, want := range map[string]string{
		"hetzner":   `cloud "hetzner": must be one of alibaba, aws,`,
		"terraform": "docs/providers/terraform.md",
	} {
		if _, err := Plan(drover.Manifests, Options{Cloud: cloud}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", cloud, err, want)
		}
	}
}

func TestNoObjectNamesAnotherRegistry(t *testing.T) {
	for _, s := range planOf(t, Options{Cloud: "hcloud", Mirror: "mirror.example.org/drover"}) {
		for _, o := range s.Objects {
			if strings.Contains(o.Text, DefaultRegistry) || strings.Contains(fmt.Sprint(o.Object), DefaultRegistry) {
				t.Errorf("%s names %s", o.Name(), DefaultRegistry)
			}
		}
	}
}

func TestAMirrorIsRewrittenTo(t *testing.T) {
	o := find(planOf(t, Options{Cloud: "hcloud", Mirror: "mirror.example.org/drover"}), "imageconfig.pkg.crossplane.io/drover-mirror")
	if o == nil || !strings.Contains(o.Text, "prefix: "+registry+"/\n") || !strings.Contains(o.Text, "prefix: mirror.example.org/drover/\n") {
		t.Errorf("%v", o)
	}
	if o := find(planOf(t, Options{Cloud: "hcloud", Mirror: registry}), "imageconfig.pkg.crossplane.io/drover-mirror"); o != nil {
		t.Error("the registry itself is no mirror")
	}
}

func TestMachinesJoinThisClusterOnlyIfTheyMay(t *testing.T) {
	const configuration = "clusterproviderconfig.cluster.drover.dev/default"
	without := planOf(t, Options{Cloud: "hcloud"})
	if find(without, configuration) != nil || find(without, "clusterrolebinding.rbac.authorization.k8s.io/drover:target-cluster:injected-identity") != nil {
		t.Error("Machines may join without being asked for")
	}
	with := planOf(t, Options{Cloud: "hcloud", Joining: []string{"team-a", "team-b"}})
	o := find(with, configuration)
	if o == nil || !strings.Contains(o.Text, "allowedNamespaces:\n  - team-a\n  - team-b\n") {
		t.Errorf("%v", o)
	}
	config := find(with, "deploymentruntimeconfig.pkg.crossplane.io/provider-drover")
	if args := argumentsOf(config.Unstructured); !slices.Contains(args, "--injected-identity-for=default") {
		t.Errorf("arguments %q", args)
	}
}

// The rights that the policies require come first: with the policies alone, Drover could write nothing.
func TestPoliciesComeAfterTheirRights(t *testing.T) {
	last := 0
	for i, o := range planOf(t, Options{Cloud: "hcloud", Joining: []string{"default"}})[0].Objects {
		switch o.GetKind() {
		case "ValidatingAdmissionPolicy":
			if last == 0 {
				last = i
			}
		case "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
			if last != 0 && o.GetName() != "drover:target-cluster" {
				t.Errorf("%s comes after a policy", o.Name())
			}
		}
	}
}

func TestArgumentsOfAUserStay(t *testing.T) {
	shipped := []string{"--deny-target-networks=10.96.0.0/12", "--concurrency=20"}
	for name, tc := range map[string]struct {
		live, set, want []string
	}{
		"ThereIsNone":             {nil, nil, shipped},
		"AValueStays":             {[]string{"--deny-target-networks=10.0.0.0/8", "--concurrency=20"}, nil, []string{"--deny-target-networks=10.0.0.0/8", "--concurrency=20"}},
		"AnotherFlagStays":        {[]string{"--concurrency=20", "--debug"}, nil, []string{"--concurrency=20", "--debug", "--deny-target-networks=10.96.0.0/12"}},
		"WhatIsAskedForWins":      {[]string{"--deny-target-networks=10.0.0.0/8", "--concurrency=20"}, []string{"--deny-target-networks=192.168.0.0/16"}, []string{"--deny-target-networks=192.168.0.0/16", "--concurrency=20"}},
		"WhatIsAskedForIsAddedTo": {nil, []string{"--injected-identity-for=default"}, append(slices.Clone(shipped), "--injected-identity-for=default")},
	} {
		t.Run(name, func(t *testing.T) {
			if got := arguments(shipped, tc.live, tc.set); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestPlaceholdersAreNamedWithTheirFields(t *testing.T) {
	o, err := newObject(map[string]any{"kind": "MachineClass", "spec": map[string]any{"forProvider": map[string]any{
		"network": []any{map[string]any{"networkId": "REPLACE-NETWORK-ID"}}, "image": "ubuntu-24.04", "pnId": "fr-par/REPLACE-ID", "note": "no REPLACE",
	}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"spec.forProvider.network[0].networkId: REPLACE-NETWORK-ID", "spec.forProvider.pnId: REPLACE-ID"}
	if got := o.Placeholders(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAPackageIsReadyInItsVersionOnly(t *testing.T) {
	pkg := func(current string, conditions ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{"package": "r/a:v2"}, "status": map[string]any{"currentIdentifier": current, "conditions": conditions},
		}}
	}
	is := func(of, status, message string) any {
		return map[string]any{"type": of, "status": status, "message": message}
	}
	for name, tc := range map[string]struct {
		pkg  *unstructured.Unstructured
		want string
	}{
		"New":                {pkg(""), "not unpacked yet"},
		"CannotBePulled":     {pkg("", is("Installed", "False", "no such host")), "not unpacked yet: no such host"},
		"TheVersionOfBefore": {pkg("r/a:v1", is("Installed", "True", ""), is("Healthy", "True", "")), "not unpacked yet"},
		"NotInstalled":       {pkg("r/a:v2", is("Installed", "False", "inactive")), "not installed: inactive"},
		"NotHealthy":         {pkg("r/a:v2", is("Installed", "True", ""), is("Healthy", "False", "no pod")), "not healthy: no pod"},
		"UnknownHealth":      {pkg("r/a:v2", is("Installed", "True", "")), "not healthy"},
		"Ready":              {pkg("r/a:v2", is("Installed", "True", ""), is("Healthy", "True", "")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Waits(tc.pkg); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSourceOfAReference(t *testing.T) {
	for reference, want := range map[string]string{
		"registry.example.org:5000/a/b:v1": "registry.example.org:5000/a/b", "registry.example.org:5000/a/b": "registry.example.org:5000/a/b",
		"r/a@sha256:00": "r/a", "r/a:v1@sha256:00": "r/a",
	} {
		if got := Source(reference); got != want {
			t.Errorf("%s: got %s", reference, got)
		}
	}
}

func TestWhatRemains(t *testing.T) {
	for name, tc := range map[string]struct {
		o       Options
		facts   Facts
		has     []string
		hasNone []string
	}{
		"CredentialsThatAreMissing": {Options{Cloud: "hcloud"}, Facts{}, []string{`{"token": "..."}`, "kubectl -n crossplane-system create secret generic hcloud --from-file=credentials=FILE", "--join-this-cluster"}, []string{"REPLACE-SSH"}},
		"CredentialsThatAreThere":   {Options{Cloud: "hcloud"}, Facts{Secrets: map[string]bool{"crossplane-system/hcloud": true}}, nil, []string{"create secret"}},
		"PlaceholdersOfAServer":     {Options{Cloud: "openstack"}, Facts{Context: " --context=prod"}, []string{"spec.authURL: REPLACE-KEYSTONE-URL", "kubectl --context=prod apply -f openstack.yaml"}, nil},
		"AnotherProvider":           {Options{Cloud: "digitalocean"}, Facts{}, []string{"The configuration of the provider of digitalocean"}, nil},
		"ThisClusterIsJoined":       {Options{Cloud: "hcloud", Joining: []string{"default"}}, Facts{}, nil, []string{"--join-this-cluster"}},
		"ATargetCluster":            {Options{Cloud: TargetCluster}, Facts{}, []string{"drover-system/drover"}, []string{"workers.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := ""
			for _, todo := range Remains(tc.o, planOf(t, tc.o), tc.facts) {
				text += todo.Text + "\n" + strings.Join(todo.Commands, "\n") + "\n"
			}
			for _, s := range tc.has {
				if !strings.Contains(text, s) {
					t.Errorf("no %q in\n%s", s, text)
				}
			}
			for _, s := range tc.hasNone {
				if strings.Contains(text, s) {
					t.Errorf("%q in\n%s", s, text)
				}
			}
		})
	}
}

// Comments of a file explain its values, so they are printed.
func TestTheExampleIsPrintedWithItsComments(t *testing.T) {
	steps := planOf(t, Options{Cloud: "hcloud"})
	file, err := fs.ReadFile(drover.Manifests, path.Join("examples", "hcloud", "machineclass.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if got := steps[len(steps)-1].Objects[0].Text; got != string(file) {
		t.Errorf("got\n%s", got)
	}
}
