package providers

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/drover-dev/drover/internal/clouds"
)

const (
	// fieldsPage compares the fields of Drover with those of other systems.
	fieldsPage = "docs/providers/fields.md"
	// openRows is the section that explains the settings that Drover lacks.
	openRows = "Open rows"
	// none is the cell of a system that has no field for a setting.
	none = "–"
)

// sections are the sections of the page that have a table of fields, with their cloud: that of each cloud has its title. The
// first one has fields of the class, whatever its cloud is.
var sections = func() map[string]string {
	out := map[string]string{"All clouds": ""}
	for _, c := range clouds.All() {
		if !slices.Contains(withoutFields, c.Name) {
			out[c.Title] = c.Name
		}
	}
	return out
}()

// withoutFields are the Compositions whose VM kinds no other system has, or whose cloud has another Composition in the page.
var withoutFields = []string{"clusterapi", "local", "terraform", "upjet-aws"}

// A fieldRow is a row of a table of the page.
type fieldRow struct {
	line  int
	cells []string
}

// setting is the first cell of the row.
func (r fieldRow) setting() string { return r.cells[0] }

var (
	// codeCell is a cell that consists of paths.
	codeCell = regexp.MustCompile("^`[^`]+`(, `[^`]+`)*$")
	// classPath is a path of a class in the text of a cell.
	classPath = regexp.MustCompile("`((?:forProvider|companions|operatingSystem)\\.[^`]+)`")
)

// paths returns the paths in Drover's cell of a row. It has none if Drover lacks the setting.
func (r fieldRow) paths() []string {
	if r.cells[1] == none {
		return nil
	}
	var out []string
	for path := range strings.SplitSeq(r.cells[1], ", ") {
		out = append(out, strings.Trim(path, "`"))
	}
	return out
}

// fieldTables returns the rows of the tables of a page whose first column is "setting", by section.
// A section below another one has the name of both, separated by a slash.
func fieldTables(text string) map[string][]fieldRow {
	out := map[string][]fieldRow{}
	upper, section, inTable := "", "", false
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "## "):
			upper = strings.TrimPrefix(line, "## ")
			section, inTable = upper, false
		case strings.HasPrefix(line, "### "):
			section, inTable = upper+"/"+strings.TrimPrefix(line, "### "), false
		case !strings.HasPrefix(line, "| "):
			inTable = inTable && strings.HasPrefix(line, "|---")
		case strings.HasPrefix(line, "| setting |"):
			inTable = true
		case inTable:
			cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
			out[section] = append(out[section], fieldRow{line: i + 1, cells: cells})
		}
	}
	return out
}

// readFieldTables returns the tables of the page.
func readFieldTables(t *testing.T) map[string][]fieldRow {
	t.Helper()
	b, err := os.ReadFile(root + fieldsPage)
	if err != nil {
		t.Fatal(err)
	}
	return fieldTables(string(b))
}

// specOf returns the schema of the spec in the CRD of a kind with one version, and the kind.
func specOf(t *testing.T, file string) (extv1.JSONSchemaProps, string) {
	t.Helper()
	crd := readCRD(t, file)
	if len(crd.Spec.Versions) != 1 {
		t.Fatalf("%s has %d versions: the schema of the VMs is unknown", file, len(crd.Spec.Versions))
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"], crd.Spec.Names.Kind
}

// classFields are the fields that a class of a cloud may have below its spec.
type classFields struct {
	class, forProvider extv1.JSONSchemaProps
	// manifest is the schema of forProvider.manifest, which is open in the schema of an Object. It
	// is nil at all clouds but KubeVirt.
	manifest *extv1.JSONSchemaProps
	// companions have the schemas of their forProvider.
	companions map[string]extv1.JSONSchemaProps
}

// classFieldsOf returns the fields of a cloud. If the cloud is empty, only those of the class exist.
func classFieldsOf(t *testing.T, cloud string) classFields {
	t.Helper()
	f := classFields{companions: map[string]extv1.JSONSchemaProps{}}
	f.class, _ = specOf(t, root+"package/provider-drover/crds/machine.drover.dev_machineclasses.yaml")
	if cloud == "" {
		return f
	}
	crd, ok := crds[cloud]
	switch cloud {
	case "kubevirt":
		crd, ok = "kubernetes.m.crossplane.io_objects.yaml", true
		spec, _ := specOf(t, filepath.Join("crds", "kubevirt.io_virtualmachines.yaml"))
		f.manifest = &extv1.JSONSchemaProps{Properties: map[string]extv1.JSONSchemaProps{"spec": spec}}
	case "vsphere":
		crd, ok = "../../../package/provider-vsphere/crds/vsphere.drover.dev_virtualmachines.yaml", true
	}
	if !ok {
		t.Fatalf("the CRD of the VMs of %s is unknown", cloud)
	}
	spec, _ := specOf(t, filepath.Join("crds", crd))
	f.forProvider = spec.Properties["forProvider"]

	kinds := map[string]extv1.JSONSchemaProps{}
	for _, file := range companionCRDs[cloud] {
		spec, kind := specOf(t, filepath.Join("crds", file))
		kinds[kind] = spec.Properties["forProvider"]
	}
	for name, kind := range companionKinds(t, cloud) {
		if schema, ok := kinds[kind]; ok {
			f.companions[name] = schema
		}
	}
	return f
}

// companionKinds returns the kinds of the companions that a cloud's Composition has.
func companionKinds(t *testing.T, cloud string) map[string]string {
	t.Helper()
	composition := readYAML(t, root+"apis/machine/compositions/machine-"+cloud+".yaml")
	steps, _, _ := unstructured.NestedSlice(composition.Object, "spec", "pipeline")
	out := map[string]string{}
	for _, step := range steps {
		companions, _, _ := unstructured.NestedSlice(step.(map[string]any), "input", "companions")
		for _, c := range companions {
			c := c.(map[string]any)
			out[c["name"].(string)] = c["kind"].(string)
		}
	}
	return out
}

// check returns an error if a class cannot have a field at a path.
func (f classFields) check(path string) error {
	if rest, ok := strings.CutPrefix(path, "forProvider.manifest."); ok && f.manifest != nil {
		return checkField(*f.manifest, rest)
	}
	if rest, ok := strings.CutPrefix(path, "forProvider."); ok {
		return checkField(f.forProvider, rest)
	}
	if rest, ok := strings.CutPrefix(path, "companions."); ok {
		name, rest, _ := strings.Cut(rest, ".")
		schema, ok := f.companions[name]
		if !ok {
			return fmt.Errorf("no companion %s; there are %s", name, slices.Sorted(maps.Keys(f.companions)))
		}
		rest, ok = strings.CutPrefix(rest, "forProvider.")
		if !ok {
			return fmt.Errorf("a companion has only fields below forProvider")
		}
		return checkField(schema, rest)
	}
	return checkField(f.class, path)
}

// checkField returns an error that names the part of a path that a schema does not have. A field
// of the elements of a list is behind "[]", and a map has any key.
func checkField(schema extv1.JSONSchemaProps, path string) error {
	for part := range strings.SplitSeq(path, ".") {
		name, isElement := strings.CutSuffix(part, "[]")
		next, ok := schema.Properties[name]
		if !ok && schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
			next, ok = *schema.AdditionalProperties.Schema, true
		}
		if !ok {
			return fmt.Errorf("no field %q; there are %s", name, slices.Sorted(maps.Keys(schema.Properties)))
		}
		if isElement {
			if next.Items == nil || next.Items.Schema == nil {
				return fmt.Errorf("%q is not a list", name)
			}
			next = *next.Items.Schema
		}
		schema = next
	}
	return nil
}

func TestEachFieldOfDroverOnThePageExists(t *testing.T) {
	tables := readFieldTables(t)
	for section, cloud := range sections {
		t.Run(section, func(t *testing.T) {
			if len(tables[section]) == 0 {
				t.Fatalf("%s has no table in the section %q", fieldsPage, section)
			}
			fields := classFieldsOf(t, cloud)
			for _, row := range tables[section] {
				for _, path := range row.paths() {
					if err := fields.check(path); err != nil {
						t.Errorf("%s:%d: %s: `%s` does not exist: %v", fieldsPage, row.line, row.setting(), path, err)
					}
				}
			}
		})
	}
}

func TestAPathThatDoesNotExistIsFound(t *testing.T) {
	cases := map[string]struct {
		cloud, path string
		// want is a part of the error, empty for a path that exists.
		want   string
		reason string
	}{
		"AFieldOfTheVM":                              {"aws", "forProvider.rootVolume.sizeGiB", "", "The kind has the field."},
		"AFieldThatTheVMDoesNotHave":                 {"aws", "forProvider.rootVolume.size", `no field "size"`, "The name is that of another system."},
		"AFieldOfAListWithItsBrackets":               {"hcloud", "forProvider.network[].networkId", "", "The field is one of the elements."},
		"AFieldOfAListWithoutItsBrackets":            {"hcloud", "forProvider.network.networkId", `no field "networkId"`, "A list has no fields."},
		"BracketsBehindAFieldThatIsNotAList":         {"hcloud", "forProvider.location[]", "is not a list", "A string has no elements."},
		"AKeyOfAMap":                                 {"upjet-gcp", "forProvider.metadata.ssh-keys", "", "A map has any key."},
		"AFieldOfACompanion":                         {"upjet-azure", "companions.nic.forProvider.dnsServers", "", "The kind of the companion has the field."},
		"AFieldThatTheCompanionDoesNotHave":          {"upjet-azure", "companions.nic.forProvider.dns", `no field "dns"`, "The kind of the companion has another field."},
		"ACompanionThatTheCompositionDoesNotHave":    {"upjet-azure", "companions.disk.forProvider.diskSizeGb", "no companion disk", "The companion has another name."},
		"ACompanionOfAnotherCloud":                   {"upjet-aws", "companions.nic.forProvider.dnsServers", "no companion nic", "Only Azure has this companion."},
		"AFieldOfACompanionOutsideOfItsForProvider":  {"upjet-azure", "companions.nic.dnsServers", "below forProvider", "The class validates nothing else."},
		"AFieldOfTheManifestOfKubeVirt":              {"kubevirt", "forProvider.manifest.spec.template.spec.domain.cpu.cores", "", "KubeVirt has the field."},
		"AFieldOfTheManifestThatKubeVirtDoesNotHave": {"kubevirt", "forProvider.manifest.spec.template.spec.cpu", `no field "cpu"`, "The Object accepts it, and KubeVirt does not."},
		"AFieldOfTheClass":                           {"", "operatingSystem.ssh.authorizedKeys", "", "The class has the field."},
		"AFieldThatTheClassDoesNotHave":              {"", "operatingSystem.sshKeys", `no field "sshKeys"`, "The class has another field."},
		"AFieldOfTheVMInATableWithoutACloud":         {"", "forProvider.instanceType", `no field "instanceType"`, "The fields of a VM depend on its cloud."},
		"AFieldOfTheClassInTheTableOfACloud":         {"openstack", "operatingSystem.ssh.authorizedKeys", "", "A class of a cloud has the fields of all classes."},
		"APathThatLeavesOutForProvider":              {"openstack", "flavorName", `no field "flavorName"`, "The path begins below the spec of the class."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := classFieldsOf(t, tc.cloud).check(tc.path)
			if tc.want == "" && err != nil {
				t.Errorf("%s: %s: %v", tc.reason, tc.path, err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: %s: the error is %v, not %q", tc.reason, tc.path, err, tc.want)
			}
		})
	}
}

func TestEachRowOfThePageIsASettingOfASystem(t *testing.T) {
	tables := readFieldTables(t)
	for section := range sections {
		t.Run(section, func(t *testing.T) {
			seen := map[string]bool{}
			for _, row := range tables[section] {
				at := fmt.Sprintf("%s:%d: %s", fieldsPage, row.line, row.setting())
				if len(row.cells) != 5 {
					t.Errorf("%s: the row has %d cells, not the setting and four systems", at, len(row.cells))
					continue
				}
				if seen[row.setting()] {
					t.Errorf("%s: the section has two rows of this setting", at)
				}
				seen[row.setting()] = true
				if !slices.ContainsFunc(row.cells[1:], func(cell string) bool { return cell != none }) {
					t.Errorf("%s: no system has the setting", at)
				}
				if cell := row.cells[1]; cell != none && !codeCell.MatchString(cell) {
					t.Errorf("%s: the cell of Drover has neither %s nor paths with commas between them: %s", at, none, cell)
				}
				for _, cell := range row.cells[2:] {
					if cell != none && !strings.Contains(cell, "`") {
						t.Errorf("%s: a cell has neither %s nor a field: %q", at, none, cell)
					}
				}
			}
		})
	}
}

// TestTheOpenRowsAreThoseThatDroverLacks compares the section of open rows with the tables, in both
// directions.
func TestTheOpenRowsAreThoseThatDroverLacks(t *testing.T) {
	tables := readFieldTables(t)
	for section := range tables {
		if name, ok := strings.CutPrefix(section, openRows+"/"); ok {
			if _, ok := sections[name]; !ok {
				t.Errorf("%s: %q has open rows, but no table of fields", fieldsPage, name)
			}
		}
	}
	for section, cloud := range sections {
		t.Run(section, func(t *testing.T) {
			fields := classFieldsOf(t, cloud)
			lacking := map[string]bool{}
			for _, row := range tables[section] {
				if len(row.paths()) == 0 {
					lacking[row.setting()] = true
				}
			}
			for _, row := range tables[openRows+"/"+section] {
				if len(row.cells) != 3 || slices.Contains(row.cells, "") || slices.Contains(row.cells, none) {
					t.Errorf("%s:%d: an open row has the setting, why it is open, and what to do today: %q", fieldsPage, row.line, row.cells)
				}
				if !lacking[row.setting()] {
					t.Errorf("%s:%d: %s is no open row of the table, or is named twice", fieldsPage, row.line, row.setting())
				}
				delete(lacking, row.setting())
				for _, m := range classPath.FindAllStringSubmatch(strings.Join(row.cells, " "), -1) {
					if err := fields.check(m[1]); err != nil {
						t.Errorf("%s:%d: %s: `%s` does not exist: %v", fieldsPage, row.line, row.setting(), m[1], err)
					}
				}
			}
			for _, setting := range slices.Sorted(maps.Keys(lacking)) {
				t.Errorf("%s: %s is not named below %q", fieldsPage, setting, openRows)
			}
		})
	}
}

func TestThePageHasATableForEachCloudWithAComposition(t *testing.T) {
	files, err := filepath.Glob(root + "apis/machine/compositions/machine-*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("Compositions %v, error %v", files, err)
	}
	compared := slices.Collect(maps.Values(sections))
	for _, file := range files {
		cloud := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "machine-"), ".yaml")
		if !slices.Contains(compared, cloud) && !slices.Contains(withoutFields, cloud) {
			t.Errorf("%s: %s has no section", fieldsPage, cloud)
		}
	}
}
