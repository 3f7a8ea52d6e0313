package installation

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// TargetCluster is not a cloud: it installs the rights and the policy of Drover in a cluster that Machines join, and
// that Drover does not run in.
const TargetCluster = "target-cluster"

// others are the Compositions whose provider cannot be installed without an image of the user's.
var others = map[string]string{"terraform": "its provider needs an image with the programs of Terraform providers: see docs/providers/terraform.md"}

// compositions is the folder with the Composition of each cloud.
const compositions = "apis/machine/compositions"

// Clouds returns the names of all clouds that Install accepts, sorted.
func Clouds(files fs.FS) []string {
	var out []string
	paths, _ := fs.Glob(files, compositions+"/machine-*.yaml")
	for _, p := range paths {
		name := strings.TrimSuffix(strings.TrimPrefix(path.Base(p), "machine-"), ".yaml")
		if others[name] == "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// A cloud has the parts that are installed for it beside Drover itself.
type cloud struct {
	name string
	// packages are those of its providers, as its Composition names them: Drover's own begin with $REGISTRY.
	packages []string
}

// newCloud reads the Composition of a cloud. Each kind in it names the package that brings it.
func newCloud(files fs.FS, name string) (cloud, error) {
	c := cloud{name: name}
	if !slices.Contains(Clouds(files), name) {
		if why := others[name]; why != "" {
			return c, fmt.Errorf("%s cannot be installed by one command: %s", name, why)
		}
		return c, fmt.Errorf("cloud %q: must be one of %s, or %s", name, strings.Join(Clouds(files), ", "), TargetCluster)
	}
	b, err := fs.ReadFile(files, path.Join(compositions, "machine-"+name+".yaml"))
	if err != nil {
		return c, err
	}
	composition := struct {
		Spec struct {
			Pipeline []struct {
				Input struct {
					VirtualMachine vmKind `json:"virtualMachine"`
					// Optional companions are of packages that the user adds.
					Companions []vmKind `json:"companions"`
				} `json:"input"`
			} `json:"pipeline"`
		} `json:"spec"`
	}{}
	if err := yaml.Unmarshal(b, &composition); err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	for _, s := range composition.Spec.Pipeline {
		for _, k := range append([]vmKind{s.Input.VirtualMachine}, s.Input.Companions...) {
			if k.Package != "" && !k.Optional && !slices.Contains(c.packages, k.Package) {
				c.packages = append(c.packages, k.Package)
			}
		}
	}
	return c, nil
}

// A vmKind is the part of a binding that names a package.
type vmKind struct {
	Package  string `json:"package"`
	Optional bool   `json:"optional"`
}

// rights are the files that allow provider-drover to use the cloud's kinds, and the cloud's provider to use those of
// another system. rbac.yaml has those of the local cloud.
func (c cloud) rights(files fs.FS) []string {
	var out []string
	for _, f := range []string{"package/provider-drover/rbac-" + c.name + ".yaml", "package/provider-drover/rbac-provider-" + c.name + ".yaml", example(c.name, "rbac.yaml")} {
		if exists(files, f) {
			out = append(out, f)
		}
	}
	return out
}
