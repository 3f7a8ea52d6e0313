package installation

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Options of an installation.
type Options struct {
	// Cloud is one of Clouds, or TargetCluster.
	Cloud string
	// Registry is the prefix of the names of Drover's packages, and Version their version.
	Registry, Version string
	// Mirror is the prefix of a registry that has the packages, if it is another one than Registry.
	Mirror string
	// Joining are the namespaces whose Machines may join the cluster that Drover runs in. Without any, Machines join
	// other clusters only.
	Joining []string
	// Networks are those of the Services and pods of the cluster that Drover runs in, to which no ProviderConfig is
	// connected. The default is that of the shipped runtime configuration.
	Networks []string
}

// Parts of an installation, in the order in which they are applied.
const (
	Rights        = "rights"
	Packages      = "packages"
	Configuration = "configuration"
	// Example is not installed. It can be printed.
	Example = "example"
)

// A Step is a part of an installation, or a piece of one that the next step waits for.
type Step struct {
	Part    string
	Objects []Object
}

// configurationOfThisCluster is how Drover reaches the cluster that it runs in.
const configurationOfThisCluster = "examples/local/clusterproviderconfig.yaml"

// ThisCluster is the name of this configuration, which Machines use by default.
const ThisCluster = "default"

// Plan returns the steps of an installation, and the example of the cloud as the last one.
func Plan(files fs.FS, o Options) ([]Step, error) {
	if o.Cloud == TargetCluster {
		objects, err := readAll(files, o.Registry, "package/provider-drover/rbac-target.yaml", "package/policies/target-cluster.yaml")
		return []Step{{Rights, objects}}, err
	}
	c, err := newCloud(files, o.Cloud)
	if err != nil {
		return nil, err
	}
	rights, err := o.rights(files, c)
	if err != nil {
		return nil, err
	}
	steps := []Step{{Rights, rights}}
	packages, err := o.packages(c)
	if err != nil {
		return nil, err
	}
	// Each waits for the one before: the Configuration is healthy only with the function and the provider in its
	// version, whatever Crossplane upgrades by itself.
	for _, p := range packages {
		steps = append(steps, Step{Packages, []Object{p}})
	}
	configuration, err := o.configuration(files, c)
	if err != nil {
		return nil, err
	}
	if len(configuration) > 0 {
		steps = append(steps, Step{Configuration, configuration})
	}
	var names []string
	for _, f := range []string{"machineclass.yaml", "machinedeployment.yaml", "orphancollector.yaml"} {
		if f = example(c.name, f); exists(files, f) {
			names = append(names, f)
		}
	}
	objects, err := readAll(files, o.Registry, names...)
	return append(steps, Step{Example, objects}), err
}

// rights, policies and the runtime configuration of provider-drover.
func (o Options) rights(files fs.FS, c cloud) ([]Object, error) {
	names := append([]string{"package/provider-drover/rbac.yaml"}, c.rights(files)...)
	names = append(names, "package/provider-drover/rbac-users.yaml", "package/provider-drover/rbac-policies.yaml")
	if len(o.Joining) > 0 {
		names = append(names, "package/provider-drover/rbac-target.yaml", "package/provider-drover/rbac-injected-identity.yaml", "package/policies/target-cluster.yaml")
	}
	// The policies require the rights above.
	names = append(names, "package/policies/control-cluster.yaml", "package/provider-drover/runtime.yaml")
	objects, err := readAll(files, o.Registry, names...)
	if err != nil {
		return nil, err
	}
	for i, u := range objects {
		if u.GetKind() != "DeploymentRuntimeConfig" {
			continue
		}
		if objects[i], err = o.WithArguments(u, nil); err != nil {
			return nil, err
		}
	}
	if o.Mirror == "" || o.Mirror == o.Registry {
		return objects, nil
	}
	mirror, err := newObject(map[string]any{
		"apiVersion": "pkg.crossplane.io/v1beta1", "kind": "ImageConfig",
		"metadata": map[string]any{"name": "drover-mirror"},
		"spec": map[string]any{
			"matchImages":  []any{map[string]any{"type": "Prefix", "prefix": o.Registry + "/"}},
			"rewriteImage": map[string]any{"prefix": o.Mirror + "/"},
		},
	})
	return append(objects, mirror), err
}

// ownPackage is the beginning of the name of Drover's packages in a Composition.
const ownPackage = "$REGISTRY/"

// packages in the order in which they are installed and upgraded.
func (o Options) packages(c cloud) ([]Object, error) {
	type pkg struct{ kind, name, reference string }
	own := func(kind, name string) pkg {
		// Compositions name the function by this name, whatever the organization in the registry is.
		return pkg{kind, "drover-" + name, o.Registry + "/" + name + ":" + o.Version}
	}
	all := []pkg{own("Function", "function-drover"), own("Provider", "provider-drover"), own("Configuration", "drover")}
	for _, reference := range c.packages {
		if name, ok := strings.CutPrefix(reference, ownPackage); ok {
			all = append(all, own("Provider", strings.TrimSuffix(name, ":$VERSION")))
			continue
		}
		all = append(all, pkg{"Provider", publishedName(reference), reference})
	}
	var out []Object
	for _, p := range all {
		object, err := newObject(map[string]any{
			"apiVersion": "pkg.crossplane.io/v1", "kind": p.kind,
			"metadata": map[string]any{"name": p.name},
			"spec":     map[string]any{"package": p.reference},
		})
		if err != nil {
			return nil, err
		}
		out = append(out, object)
	}
	return out, nil
}

// publishedName is the name of a package's object, as "crossplane xpkg install" gives it: its repository without the
// registry.
func publishedName(reference string) string {
	_, repository, _ := strings.Cut(Source(reference), "/")
	return strings.ReplaceAll(repository, "/", "-")
}

// Source is the name of a package without its version.
func Source(reference string) string {
	reference, _, _ = strings.Cut(reference, "@")
	if i := strings.LastIndex(reference, ":"); i > strings.LastIndex(reference, "/") {
		return reference[:i]
	}
	return reference
}

// configuration of the cloud, and of this cluster if Machines join it.
func (o Options) configuration(files fs.FS, c cloud) ([]Object, error) {
	var out []Object
	if f := example(c.name, "providerconfig.yaml"); exists(files, f) {
		var err error
		if out, err = read(files, f, o.Registry); err != nil {
			return nil, err
		}
	}
	if len(o.Joining) == 0 {
		return out, nil
	}
	objects, err := read(files, configurationOfThisCluster, o.Registry)
	if err != nil {
		return nil, err
	}
	for _, u := range objects {
		spec, ok := u.Object["spec"].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: spec: must be an object", configurationOfThisCluster)
		}
		spec["allowedNamespaces"] = list(o.Joining)
		object, err := newObject(u.Object)
		if err != nil {
			return nil, err
		}
		out = append(out, object)
	}
	return out, nil
}

func list(words []string) []any {
	out := make([]any, 0, len(words))
	for _, w := range words {
		out = append(out, w)
	}
	return out
}

// Select returns the steps of some parts.
func Select(steps []Step, parts ...string) []Step {
	return slices.DeleteFunc(slices.Clone(steps), func(s Step) bool { return !slices.Contains(parts, s.Part) })
}
