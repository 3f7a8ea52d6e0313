package providers

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/terraformcli"
)

// A userDataField is the field by which a Composition passes user data to a VM.
type userDataField struct {
	provider, kind string
	path           string
	// value is a CEL expression.
	value string
}

// userDataFields of all Compositions of Machines.
func userDataFields(t *testing.T) []userDataField {
	t.Helper()
	files, err := filepath.Glob(root + "apis/machine/compositions/machine-*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, cloud := range ofExamples {
		files = append(files, root+"examples/"+cloud+"/composition.yaml")
	}
	var out []userDataField
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := struct {
			Spec struct {
				Pipeline []struct {
					Input fn.Infrastructure `json:"input"`
				} `json:"pipeline"`
			} `json:"spec"`
		}{}
		if err := yaml.Unmarshal(b, &c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		n := len(out)
		for _, s := range c.Spec.Pipeline {
			for _, f := range s.Input.VirtualMachine.Fields {
				if strings.Contains(f.Value, "userData.") {
					out = append(out, userDataField{s.Input.Provider, s.Input.VirtualMachine.Kind, f.Path, f.Value})
				}
			}
			for _, companion := range s.Input.Companions {
				for _, f := range companion.Fields {
					if strings.Contains(f.Value, "userData.") && !isSecretElsewhere(s.Input.Provider, companion) {
						t.Errorf("%s: companion %s has user data in %s: the VM alone needs it", file, companion.Name, f.Path)
					}
				}
			}
		}
		if len(out) != n+1 {
			t.Errorf("%s: %d fields have user data, want 1", file, len(out)-n)
		}
	}
	return out
}

// isSecretElsewhere reports whether a companion is the Secret with the user data in another
// cluster than Drover's. Its Object has the user data in plain text, so a class must request the
// companion.
func isSecretElsewhere(provider string, c fn.CompanionBinding) bool {
	return provider == "kubevirt" && c.Name == "userdata" && c.Kind == "Object" && c.Optional
}

// TestUserDataIsPlainOnlyWhereItIsDocumented compares the Compositions with the list of plain
// fields, in both directions.
func TestUserDataIsPlainOnlyWhereItIsDocumented(t *testing.T) {
	plain := map[string]bool{}
	for _, f := range userDataFields(t) {
		listed, ok := kit.PlainFieldOf(f.provider)
		if isPlain := strings.Contains(f.value, "userData.value"); isPlain != ok {
			t.Errorf("%s: field %s gets user data by the expression %s, and kit.PlainUserData has %v", f.provider, f.path, f.value, listed.Path)
			continue
		}
		plain[f.provider] = ok
		if !ok {
			continue
		}
		// The value may be a map with the last part of the path as a key.
		rest := strings.TrimPrefix(listed.String(), f.path)
		if rest != "" && !strings.Contains(f.value, `"`+strings.TrimPrefix(rest, ".")+`"`) {
			t.Errorf("%s: the Composition sets %s to %s, and kit.PlainUserData has %s", f.provider, f.path, f.value, listed)
		}
	}
	for _, f := range kit.PlainUserData {
		if !plain[f.Provider] {
			t.Errorf("%s: kit.PlainUserData has %s, and no Composition sets it", f.Provider, f)
		}
	}
}

// reference matches the field of any cloud that refers to a Secret with user data.
var reference = regexp.MustCompile(`(?i)(user-?data|custom-?data|metadata|cloud-?init|start-?up-?script).*(secretRef|secretName)`)

// TestAPlainKindHasNoReference detects that a new version of a provider has a field that refers
// to a Secret.
func TestAPlainKindHasNoReference(t *testing.T) {
	files, err := filepath.Glob("crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		crd := readCRD(t, file)
		of := func(f kit.PlainField) bool {
			return f.Resource.Group == crd.Spec.Group && f.Resource.Resource == crd.Spec.Names.Plural
		}
		refs := referencesIn(crd)
		switch isPlain := slices.ContainsFunc(kit.PlainUserData, of); {
		case isPlain && len(refs) > 0:
			t.Errorf("%s: kit.PlainUserData lists it, and the fields %v refer to Secrets", crd.Name, refs)
		case isPlain:
			seen++
		case crd.Name == "linuxvirtualmachines.compute.azure.m.upbound.io" && !slices.Equal(refs, []string{"spec.forProvider.customDataSecretRef"}):
			t.Errorf("%s: references %v: this test does not find references", crd.Name, refs)
		}
	}
	if seen != len(kit.PlainUserData) {
		t.Errorf("%d CRDs are of kinds in kit.PlainUserData, want %d", seen, len(kit.PlainUserData))
	}
}

func readCRD(t *testing.T, file string) *extv1.CustomResourceDefinition {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	crd := &extv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(b, crd); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return crd
}

// referencesIn returns the fields of forProvider that refer to Secrets with user data.
func referencesIn(crd *extv1.CustomResourceDefinition) []string {
	var out []string
	var walk func(path string, s *extv1.JSONSchemaProps)
	walk = func(path string, s *extv1.JSONSchemaProps) {
		for name, p := range s.Properties {
			at := path + "." + name
			if reference.MatchString(strings.TrimPrefix(at, "spec.forProvider.")) && strings.Contains(strings.ToLower(name), "secret") {
				out = append(out, at)
				continue
			}
			walk(at, &p)
		}
		if s.Items != nil && s.Items.Schema != nil {
			walk(path, s.Items.Schema)
		}
	}
	for _, v := range crd.Spec.Versions {
		forProvider := v.Schema.OpenAPIV3Schema.Properties["spec"].Properties["forProvider"]
		walk("spec.forProvider", &forProvider)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// runsTheCLI are the providers that write strings into a main.tf.json and run the Terraform CLI.
// docs/adding-a-provider.md describes how to recognize them.
var runsTheCLI = []string{"digitalocean", "scaleway", "yandex"}

// TestUserDataArrivesAsItWasRendered applies the provider's processing to user data.
func TestUserDataArrivesAsItWasRendered(t *testing.T) {
	for _, f := range kit.PlainUserData {
		t.Run(f.Provider, func(t *testing.T) {
			p := newPlane(t, f.Provider, "")
			vm := rendered(t, p)
			arguments, _, _ := unstructured.NestedMap(vm.Object, "spec", "forProvider")
			if slices.Contains(runsTheCLI, f.Provider) {
				var err error
				if arguments, err = terraformcli.Evaluate(arguments); err != nil {
					t.Fatalf("the provider cannot apply spec.forProvider: %v", err)
				}
			}
			got, _, _ := unstructured.NestedString(arguments, f.Path[2:]...)
			if want := string(p.Connection[machinev1alpha1.ResourceUserData][clusterv1alpha1.ConnectionUserData]); got != want || want == "" {
				t.Errorf("%s arrives as %d bytes, rendered were %d: -want +got:\n%s", f, len(got), len(want), cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
			}
		})
	}
}

// TestTheDocsStateTheSecretElsewhereIsPlain compares the page of KubeVirt with the
// Composition.
func TestTheDocsStateTheSecretElsewhereIsPlain(t *testing.T) {
	page, err := os.ReadFile(root + "docs/providers/kubevirt.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## User data\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, want := range []string{"`companions.userdata`", "`spec.forProvider.manifest.data`", "`--sanitize-secrets`"} {
		if !strings.Contains(section, want) {
			t.Errorf("docs/providers/kubevirt.md: the section \"User data\" must name %s", want)
		}
	}
}

// pageLink is the link to the page of a cloud, in the row of the cloud.
var pageLink = regexp.MustCompile(`^\| \[[^\]]*\]\(([a-z-]+\.md)\)`)

// TestTheDocsListHowUserDataReachesEachCloud compares the Compositions with the table of clouds,
// and with the page of each cloud that has one.
func TestTheDocsListHowUserDataReachesEachCloud(t *testing.T) {
	const folder = root + "docs/providers/"
	table, err := os.ReadFile(folder + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range userDataFields(t) {
		row := regexp.MustCompile(`(?m)^\|.*examples/` + f.provider + `\).*$`).FindString(string(table))
		want, field := "| Secret: ", f.path
		if listed, ok := kit.PlainFieldOf(f.provider); ok {
			want, field = "| plain: ", listed.String()
		}
		if f.provider == "kubevirt" {
			field = "cloudInitNoCloud.secretRef" // The page has the field in a list of the manifest.
		}
		if !strings.Contains(row, want+"`"+field+"`") {
			t.Errorf("docs/providers/README.md: the row of %s must have %q: %s", f.provider, want+"`"+field+"`", row)
		}
		file := f.provider + ".md"
		if link := pageLink.FindStringSubmatch(row); link != nil {
			file = link[1]
		}
		page, err := os.ReadFile(folder + file)
		if os.IsNotExist(err) && (f.provider == "local" || f.provider == "scaleway") {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		_, section, _ := strings.Cut(string(page), "\n## User data\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !strings.Contains(section, "`"+field+"`") {
			t.Errorf("docs/providers/%s: the section \"User data\" must name the field %s: %s", file, field, section)
		}
	}
}
