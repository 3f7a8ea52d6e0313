// Generate creates, from the upjet configuration of each cloud, the API types, their methods and
// the CRDs. It needs no network, and runs in the root of the module.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	ujconfig "github.com/crossplane/upjet/v2/pkg/config"
	"github.com/crossplane/upjet/v2/pkg/pipeline"
	"github.com/crossplane/upjet/v2/pkg/types"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/config/hcloud"
	"github.com/drover-dev/drover/config/local"
	"github.com/drover-dev/drover/config/openstack"
	"github.com/drover-dev/drover/internal/lift"
	"github.com/drover-dev/drover/internal/schemabounds"
	"github.com/drover-dev/drover/internal/schemadocs"
)

const header = "hack/boilerplate.go.txt"

// clouds are the providers that upjet generates. Their files are in apis/<name> and
// package/provider-<name>.
var clouds = map[string]func(context.Context) (*ujconfig.Provider, error){
	"hcloud":    func(context.Context) (*ujconfig.Provider, error) { return hcloud.Provider() },
	"local":     local.Provider,
	"openstack": func(context.Context) (*ujconfig.Provider, error) { return openstack.Provider() },
}

func main() {
	log.SetFlags(0)
	if _, err := os.Stat(header); err != nil {
		log.Fatalf("run me in the root of the module: %v", err)
	}
	for name, configure := range clouds {
		if err := generate(context.Background(), name, configure); err != nil {
			log.Fatalf("%s: %v", name, err)
		}
	}
}

func generate(ctx context.Context, name string, configure func(context.Context) (*ujconfig.Provider, error)) error {
	pc, err := configure(ctx)
	if err != nil {
		return err
	}
	apis := filepath.Join("apis", name)
	if err := removeGenerated(apis); err != nil {
		return err
	}
	if err := generateTypes(ctx, name, pc); err != nil {
		return err
	}
	pkgs := "./" + apis + "/..."
	crds := filepath.Join("package", "provider-"+name, "crds")
	if err := os.RemoveAll(crds); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"run", "./internal/storedgen", apis + "/*"},
		{"tool", "controller-gen", "object:headerFile=" + header, "paths=" + pkgs},
		{"tool", "-modfile=tools/go.mod", "angryjet", "generate-methodsets", "--header-file=" + header, pkgs},
		{"tool", "controller-gen", "crd:crdVersions=v1", "paths=" + pkgs, "output:crd:artifacts:config=" + crds},
	} {
		if err := run(ctx, "go", args...); err != nil {
			return err
		}
	}
	return bound(crds)
}

// numbers are the descriptions of the fields of the Terraform providers that are numbers and have none, by name.
var numbers = map[string]string{
	"bootIndex":  "Position of the device in the boot order, from 0 on. The VM does not boot from a device with -1.",
	"volumeSize": "Size of the volume in GiB.",
	"ipVersion":  "IP version of the option: 4 or 6.",
	"networkId":  "ID of the network.",
	"ipv4":       "ID of the primary IPv4 address.",
	"ipv6":       "ID of the primary IPv6 address.",
}

// describe adds the descriptions of numbers to a schema.
func describe(s *extv1.JSONSchemaProps) {
	for name, p := range s.Properties {
		if (p.Type == "integer" || p.Type == "number") && p.Description == "" {
			p.Description = numbers[name]
		}
		describe(&p)
		s.Properties[name] = p
	}
	if s.Items != nil && s.Items.Schema != nil {
		describe(s.Items.Schema)
	}
}

// bound completes the descriptions of all CRDs in a folder, and narrows their schemas to the values that the types can decode.
func bound(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		crd := &extv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(b, crd); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, v := range crd.Spec.Versions {
			describe(v.Schema.OpenAPIV3Schema)
			if err := schemadocs.Apply(v.Schema.OpenAPIV3Schema); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			schemabounds.Apply(v.Schema.OpenAPIV3Schema)
		}
		b, err = yaml.Marshal(map[string]any{
			"apiVersion": crd.APIVersion, "kind": crd.Kind, "spec": crd.Spec,
			"metadata": map[string]any{"name": crd.Name, "annotations": crd.Annotations},
		})
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, append([]byte("---\n"), b...), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generateTypes runs upjet in a temporary folder, and keeps only the types: [lift.Setup] replaces
// the generated controllers, and the examples are written by hand.
func generateTypes(ctx context.Context, name string, pc *ujconfig.Provider) error {
	scratch, err := os.MkdirTemp("", "generate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if err := pathToGoimports(ctx); err != nil {
		return err
	}
	(&pipeline.PipelineRunner{
		DirAPIs:               filepath.Join(scratch, "apis"),
		DirControllers:        filepath.Join(scratch, "controllers"),
		DirExamples:           filepath.Join(scratch, "examples"),
		DirHack:               filepath.Dir(header),
		ModulePathAPIs:        lift.Module + "/apis",
		ModulePathControllers: lift.Module + "/internal/controller",
		Scope:                 types.CRDScopeNamespaced,
	}).Run(pc)
	generated := filepath.Join(scratch, "apis", name)
	if err := rewrite(generated); err != nil {
		return err
	}
	return os.CopyFS("apis/"+name, os.DirFS(generated))
}

// pathToGoimports adds the goimports of go.mod to PATH, where upjet looks for it.
func pathToGoimports(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "go", "tool", "-n", "goimports").Output()
	if err != nil {
		return fmt.Errorf("cannot build goimports: %w", err)
	}
	dir := filepath.Dir(strings.TrimSpace(string(out)))
	return os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func removeGenerated(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*", "zz_*.go"))
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	return nil
}

func run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}
