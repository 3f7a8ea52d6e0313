package move

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Save writes each object into a file of its own in a directory, in the form that another control cluster
// gets. The directory must be empty, or not exist.
func Save(dir string, o Objects) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(there) > 0 {
		return fmt.Errorf("the directory %s is not empty", dir)
	}
	for i, obj := range o.All() {
		b, err := yaml.Marshal(copyOf(obj).Object)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%05d-%s-%s.yaml", i, obj.GetKind(), obj.GetName())
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Load reads the saved objects of a namespace.
func Load(dir, namespace string) (Objects, error) {
	o := Objects{}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return o, err
	}
	if len(files) == 0 {
		return o, fmt.Errorf("the directory %s has no file *.yaml", dir)
	}
	slices.Sort(files)
	for _, f := range files {
		b, err := os.ReadFile(f) //nolint:gosec // The user names the directory.
		if err != nil {
			return o, err
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(b, &u.Object); err != nil {
			return o, fmt.Errorf("%s: %w", f, err)
		}
		if u.GetNamespace() != namespace {
			return o, fmt.Errorf("%s: metadata.namespace: invalid value %q: must be %q", f, u.GetNamespace(), namespace)
		}
		switch kind := u.GroupVersionKind(); {
		case kind == machinev1alpha1.MachineGroupVersionKind:
			o.Machines = append(o.Machines, u)
		case kind == machinev1alpha1.MachineSetGroupVersionKind:
			o.Sets = append(o.Sets, u)
		case kind == machinev1alpha1.MachineDeploymentGroupVersionKind:
			o.Deployments = append(o.Deployments, u)
		case kind == machinev1alpha1.NodePoolGroupVersionKind:
			o.Pools = append(o.Pools, u)
		case isInfrastructure(u):
			o.Resources = append(o.Resources, u)
		default:
			return o, fmt.Errorf("%s: %s is no object of a move", f, describe(u))
		}
	}
	return o, nil
}
