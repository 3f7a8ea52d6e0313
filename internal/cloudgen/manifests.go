package main

import (
	"os"
	"path/filepath"

	"github.com/drover-dev/drover/internal/clouds"
)

// writeManifests writes the rights to create VMs of a cloud, and the metadata of its package. The rights of published
// providers are in their examples or in rbac-inventory.yaml.
func writeManifests(root string, c clouds.Cloud) error {
	if c.Frame == clouds.Published {
		return nil
	}
	dir := filepath.Join(root, "package", c.Provider())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := execute(filepath.Join(dir, "crossplane.yaml"), "crossplane.yaml", c); err != nil || c.BuiltIn {
		return err
	}
	return execute(filepath.Join(root, "package/provider-drover", "rbac-"+c.Name+".yaml"), "rbac-cloud.yaml", c)
}

// published returns the clouds whose VMs are resources of other providers.
func published(all []clouds.Cloud) []clouds.Cloud {
	var out []clouds.Cloud
	for _, c := range all {
		if c.Frame == clouds.Published {
			out = append(out, c)
		}
	}
	return out
}
