package examples

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/kubectl/installation"
)

const root = "../../examples"

// files returns the YAML files of the examples.
func files(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(root + "/*/*.yaml")
	if err != nil || len(all) < 50 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	return all
}

func TestEachPlaceholderHasAValueAndEachValueAPlaceholder(t *testing.T) {
	used := map[string]bool{}
	for _, file := range files(t) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Fill(file, b); err != nil {
			t.Error(err)
		}
		for _, p := range installation.Placeholder.FindAllString(string(b), -1) {
			used[filepath.Base(filepath.Dir(file))+" "+p] = true
		}
	}
	for folder, of := range values() {
		for p := range of {
			if !used[folder+" "+p] {
				t.Errorf("no example of %s has %s", folder, p)
			}
		}
	}
}

// specific are values that exist at one customer only: IDs, accounts, keys, and addresses.
var specific = map[string]*regexp.Regexp{
	"an ID of AWS":               regexp.MustCompile(`\b(ami|subnet|sg|vpc|i)-[0-9a-f]{8,}\b`),
	"a UUID":                     regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`),
	"an SSH key":                 regexp.MustCompile(`\bssh-(rsa|ed25519) `),
	"a fingerprint":              regexp.MustCompile(`\b([0-9a-f]{2}:){15}`),
	"a numeric ID":               regexp.MustCompile(`(?i)\b[a-z_]*ids?: *\n? *(- )?[0-9]+\b`),
	"an ID of Alibaba Cloud":     regexp.MustCompile(`\b(vsw|sg)-[a-z0-9]{8,}\b`),
	"a service account":          regexp.MustCompile(`@[a-z-]+\.iam\.gserviceaccount\.com`),
	"an address of a management": regexp.MustCompile(`(?m)^ +(server|authURL|auth_url): (https?://)?[a-z]`),
}

// A value like these applies without an error, and fails later: at the cloud, or as a VM in the network of another
// customer.
func TestNoExampleHasAnIDThatWouldApply(t *testing.T) {
	for _, file := range files(t) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range strings.SplitSeq(string(b), "\n---\n") {
			object := map[string]any{}
			if err := yaml.Unmarshal([]byte(doc), &object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			switch object["kind"] {
			case "MachineClass", "ClusterMachineClass", "ClusterProviderConfig", "ProviderConfig":
			default:
				continue
			}
			// Without comments.
			plain, err := yaml.Marshal(object["spec"])
			if err != nil {
				t.Fatal(err)
			}
			for what, pattern := range specific {
				if m := pattern.Find(plain); m != nil {
					t.Errorf("%s has %s, %q: write a placeholder", file, what, m)
				}
			}
		}
	}
}

// The policy that refuses placeholders lists the groups of all configurations: a pattern of groups does not exist.
func TestThePolicyCoversTheConfigurationsOfAllGroups(t *testing.T) {
	b, err := os.ReadFile("../../package/policies/control-cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, policy, _ := strings.Cut(string(b), "name: drover-placeholders\n")
	policy, _, _ = strings.Cut(policy, "\n---\n")
	crds, err := filepath.Glob("../../package/*/crds/*_clusterproviderconfigs.yaml")
	if err != nil || len(crds) < 15 {
		t.Fatalf("%d CRDs, %v", len(crds), err)
	}
	for _, crd := range crds {
		if group, _, _ := strings.Cut(filepath.Base(crd), "_"); !regexp.MustCompile(`[\[ ]` + regexp.QuoteMeta(group) + `[,\]]`).MatchString(policy) {
			t.Errorf("drover-placeholders does not list %s", group)
		}
	}
}

func TestEachCloudHasAMachineDeploymentOfItsClass(t *testing.T) {
	classes, err := filepath.Glob(root + "/*/machineclass.yaml")
	if err != nil || len(classes) < 15 {
		t.Fatalf("%d classes, %v", len(classes), err)
	}
	for _, file := range classes {
		class, deployment := readNames(t, file), readNames(t, filepath.Join(filepath.Dir(file), "machinedeployment.yaml"))
		if got := deployment.Spec.Template.Spec.ClassRef.Name; got != class.Metadata.Name {
			t.Errorf("%s: class %q, and its MachineDeployment names %q", file, class.Metadata.Name, got)
		}
		if s := string(class.text); strings.Contains(uncommented(s), "spot") || strings.Contains(uncommented(s), "preempt") {
			t.Errorf("%s: the cloud may take back the VM of the example", file)
		}
	}
}

type names struct {
	Metadata struct{ Name string }
	Spec     struct {
		Template struct {
			Spec struct {
				ClassRef struct{ Name string } `json:"classRef"`
			}
		}
	}
	text []byte
}

func readNames(t *testing.T, file string) names {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n := names{text: b}
	if err := yaml.Unmarshal(b, &n); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return n
}

var comment = regexp.MustCompile(`(?m)#.*$`)

func uncommented(text string) string { return strings.ToLower(comment.ReplaceAllString(text, "")) }

func TestACopyHasNoPlaceholders(t *testing.T) {
	to := t.TempDir()
	if err := Copy(root, to); err != nil {
		t.Fatal(err)
	}
	n := 0
	err := filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		b, err := os.ReadFile(path)
		if p := installation.Placeholder.Find(b); p != nil {
			t.Errorf("%s has %s", path, p)
		}
		return err
	})
	if err != nil || n < 50 {
		t.Errorf("%d files, %v", n, err)
	}
}

// spotFields are those that make a VM a spot VM, in the kinds of all clouds.
var spotFields = []string{"spot", "spotStrategy", "scheduling", "schedulingPolicy", "instanceMarketOptions", "evictionPolicy", "maxBidPrice", "priority"}

func TestASpotVMHasTheFieldsThatItsCommentShows(t *testing.T) {
	files, err := filepath.Glob(root + "/*/machineclass.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		plain, err := Read(file)
		if err != nil {
			t.Fatal(err)
		}
		filled, err := ReadSpot(file)
		if err != nil {
			t.Fatal(err)
		}
		var before, after map[string]any
		if err := yaml.UnmarshalStrict(plain, &before); err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(filled, &after); err != nil {
			t.Fatalf("%s: %v\n%s", file, err, filled)
		}
		of := func(class map[string]any) map[string]any {
			fields, _, _ := unstructured.NestedMap(class, "spec", "forProvider")
			return fields
		}
		added := slices.DeleteFunc(slices.Sorted(maps.Keys(of(after))), func(k string) bool { _, ok := of(before)[k]; return ok })
		isAbout := strings.Contains(strings.ToLower(string(plain)), "# a spot vm") || strings.Contains(string(plain), "preemptible")
		if isAbout != (len(added) > 0) {
			t.Errorf("%s: a spot VM adds %q, and a comment on it exists: %t", file, added, isAbout)
		}
		for _, k := range added {
			if !slices.Contains(spotFields, k) {
				t.Errorf("%s: a spot VM adds %s, want one of %q", file, k, spotFields)
			}
		}
		found += min(len(added), 1)
	}
	if found == 0 {
		t.Error("no example shows a spot VM")
	}
}
