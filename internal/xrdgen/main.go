// Command xrdgen writes the schemas that are installed: it runs controller-gen
// over Drover's API types, completes the descriptions by defaults and units, bounds the schemas to the values that the
// types can decode, turns the CRDs of composite resources into XRDs, and writes each file where its package is built from.
//
// It is run by go generate in the apis folder.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/schemabounds"
	"github.com/drover-dev/drover/internal/schemadocs"
)

// composites are the kinds that become XRDs, with their default Composition. An OrphanCollector has none, since
// its provider decides. A NodePool has none, since the platform team decides on its offers.
var composites = map[string]string{
	"NodePool":          "",
	"MachineDeployment": "machinedeployment",
	"MachineSet":        "machineset",
	"OrphanCollector":   "",
}

const header = "# Generated from the Go types. Do not edit.\n"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "xrdgen:", err)
		os.Exit(1)
	}
}

func run() error {
	for paths, dir := range map[string]string{
		"./machine/...":    "../package/provider-drover/crds",
		"./cluster/...":    "../package/provider-drover/crds",
		"./vsphere/...":    "../package/provider-vsphere/crds",
		"./proxmox/...":    "../package/provider-proxmox/crds",
		"./nutanix/...":    "../package/provider-nutanix/crds",
		"./alibaba/...":    "../package/provider-alibaba/crds",
		"./vcd/...":        "../package/provider-vcd/crds",
		"./metalstack/...": "../package/provider-metalstack/crds",
		"./terraform/...":  "../package/provider-terraform/crds",

		"./aws/...":          "../package/provider-inventory/crds",
		"./azure/...":        "../package/provider-inventory/crds",
		"./digitalocean/...": "../package/provider-inventory/crds",
		"./gcp/...":          "../package/provider-inventory/crds",
		"./kubevirt/...":     "../package/provider-inventory/crds",
		"./yandex/...":       "../package/provider-inventory/crds",

		"./fn/...": "../package/function-drover/input",
	} {
		crds, err := generate(paths)
		if err != nil {
			return err
		}
		for _, crd := range crds {
			if err := write(crd, dir); err != nil {
				return fmt.Errorf("%s: %w", crd.GetName(), err)
			}
		}
	}
	return nil
}

func generate(paths string) ([]*extv1.CustomResourceDefinition, error) {
	cmd := exec.Command("go", "tool", "controller-gen", "crd", "paths="+paths, "output:crd:stdout") //nolint:noctx // It ends by itself.
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("controller-gen %s: %w", paths, err)
	}
	var crds []*extv1.CustomResourceDefinition
	for _, doc := range bytes.Split(out, []byte("\n---\n")) {
		if len(bytes.TrimSpace(doc)) == 0 {
			continue
		}
		crd := &extv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(doc, crd); err != nil {
			return nil, fmt.Errorf("controller-gen %s: %w", paths, err)
		}
		for _, v := range crd.Spec.Versions {
			if err := schemadocs.Apply(v.Schema.OpenAPIV3Schema); err != nil {
				return nil, fmt.Errorf("%s: %w", crd.GetName(), err)
			}
			schemabounds.Apply(v.Schema.OpenAPIV3Schema)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

func write(crd *extv1.CustomResourceDefinition, dir string) error {
	var obj any = clean(crd)
	if defaultComposition, ok := composites[crd.Spec.Names.Kind]; ok {
		xrd, err := toXRD(crd, defaultComposition)
		if err != nil {
			return err
		}
		obj, dir = xrd, "machine/xrds"
	}
	if crd.Spec.Names.Kind == claimed {
		if err := writeClaims(crd); err != nil {
			return err
		}
	}
	return marshal(obj, filepath.Join(dir, fmt.Sprintf("%s_%s.yaml", crd.Spec.Group, crd.Spec.Names.Plural)))
}

func marshal(obj any, file string) error {
	b, err := yaml.Marshal(obj)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte(header), b...), 0o644)
}

// claimed is the kind that an example also offers as a claim.
const claimed = "NodePool"

// writeClaims writes an XRD of Crossplane v1 with the fields of a kind, and a claim of it.
func writeClaims(crd *extv1.CustomResourceDefinition) error {
	const group = "platform.example.org"
	xrd, err := toXRD(crd, "")
	if err != nil {
		return err
	}
	spec, ok := xrd["spec"].(map[string]any)
	if !ok {
		return fmt.Errorf("the XRD has no spec")
	}
	delete(spec, "scope")
	spec["group"] = group
	spec["names"] = map[string]any{"kind": "X" + claimed, "plural": "x" + crd.Spec.Names.Plural}
	spec["claimNames"] = map[string]any{"kind": claimed, "plural": crd.Spec.Names.Plural}
	spec["defaultCompositeDeletePolicy"] = "Foreground"
	xrd["apiVersion"], xrd["metadata"] = "apiextensions.crossplane.io/v1", map[string]any{"name": "x" + crd.Spec.Names.Plural + "." + group}
	return marshal(xrd, "../examples/claims/definition.yaml")
}

// clean leaves out the fields that only a server writes.
func clean(crd *extv1.CustomResourceDefinition) map[string]any {
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": crd.GetName(), "annotations": crd.GetAnnotations()},
		"spec":       crd.Spec,
	}
}

// toXRD keeps the fields of a CRD that an XRD may have, and leaves out those that Crossplane adds to each
// composite resource.
func toXRD(crd *extv1.CustomResourceDefinition, defaultComposition string) (map[string]any, error) {
	versions := make([]any, 0, len(crd.Spec.Versions))
	for _, v := range crd.Spec.Versions {
		schema := v.Schema.OpenAPIV3Schema.DeepCopy()
		for _, p := range []string{"apiVersion", "kind", "metadata"} {
			delete(schema.Properties, p)
		}
		status := schema.Properties["status"]
		delete(status.Properties, "conditions")

		version := map[string]any{
			"name":          v.Name,
			"served":        v.Served,
			"referenceable": v.Storage,
			"schema":        map[string]any{"openAPIV3Schema": schema},
		}
		if len(v.AdditionalPrinterColumns) > 0 {
			version["additionalPrinterColumns"] = v.AdditionalPrinterColumns
		}
		if v.Subresources != nil && v.Subresources.Scale != nil {
			version["subresources"] = map[string]any{"scale": v.Subresources.Scale}
		}
		versions = append(versions, version)
	}
	spec := map[string]any{
		"scope":    crd.Spec.Scope,
		"group":    crd.Spec.Group,
		"names":    crd.Spec.Names,
		"versions": versions,
	}
	if defaultComposition != "" {
		spec["defaultCompositionRef"] = map[string]any{"name": defaultComposition}
	}
	return map[string]any{
		"apiVersion": "apiextensions.crossplane.io/v2",
		"kind":       "CompositeResourceDefinition",
		"metadata":   map[string]any{"name": strings.ToLower(crd.GetName())},
		"spec":       spec,
	}, nil
}
