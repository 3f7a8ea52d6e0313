package release

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestToolsOfARelease(t *testing.T) {
	o := withTools(t, options(t, "registry.example.org/drover", nil))
	o.Only = []string{"drover"}
	folder := build(t, o)
	all := readAll(t, folder)
	t.Run("TheManifestForKrewHasEachPlatformWithItsArchive", func(t *testing.T) { krewHasEachPlatform(t, all) })
	t.Run("AnArchiveHasTheLicensesOfItsProgram", func(t *testing.T) { archiveHasLicenses(t, folder) })
	t.Run("TheTerraformProviderHasTheLayoutOfAMirrorAndOfARegistry", func(t *testing.T) { terraformLayout(t, all) })
	if all["packages/drover/index.json"] == "" || all["packages/"+functionName+"/index.json"] != "" {
		t.Error("there is another package than the one that was asked for, or none")
	}
}

func TestAPackageThatIsAskedForMustExist(t *testing.T) {
	o := options(t, "registry.example.org/drover", nil)
	o.Only = []string{"drovr"}
	if err := Build(t.Context(), o); err == nil || !strings.Contains(err.Error(), `package "drovr": there is none of that name`) {
		t.Error(err)
	}
}

func krewHasEachPlatform(t *testing.T, all map[string]string) {
	t.Helper()
	// The fields that krew requires: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
	m := struct {
		APIVersion string
		Metadata   struct{ Name string }
		Spec       struct {
			Version, ShortDescription string
			Platforms                 []struct {
				URI, SHA256, Bin string
				Files            []struct{ From, To string }
				Selector         struct{ MatchLabels map[string]string }
			}
		}
	}{}
	if err := yaml.Unmarshal([]byte(all["drover.yaml"]), &m); err != nil {
		t.Fatalf("%v\n%s", err, all["drover.yaml"])
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Metadata.Name != "drover" || m.Spec.Version != testVersion || len(m.Spec.Platforms) != 2 {
		t.Fatalf("%+v", m)
	}
	if len(m.Spec.ShortDescription) > 50 {
		t.Errorf("krew's index takes 50 characters: %q", m.Spec.ShortDescription)
	}
	for i, want := range []struct{ os, bin string }{{"linux", "kubectl-drover"}, {"windows", "kubectl-drover.exe"}} {
		p := m.Spec.Platforms[i]
		file := "kubectl-drover-" + testVersion + "-" + want.os + "-amd64.tar.gz"
		if p.URI != "https://example.org/"+testVersion+"/"+file || p.SHA256 != sum([]byte(all[file])) || p.Bin != want.bin || p.Selector.MatchLabels["os"] != want.os {
			t.Errorf("%+v", p)
		}
	}
}

func archiveHasLicenses(t *testing.T, folder string) {
	t.Helper()
	files := untar(t, filepath.Join(folder, "kubectl-drover-"+testVersion+"-linux-amd64.tar.gz"))
	for _, name := range []string{"kubectl-drover", "kubectl_complete-drover", "LICENSE", "licenses/THIRD_PARTY.md"} {
		if files[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	// Its module under MPL-2.0 is offered as that of a package.
	if text := files["licenses/THIRD_PARTY.md"]; !strings.Contains(text, "github.com/hashicorp/errwrap") || !strings.Contains(text, "drover-"+testVersion+"-sources.tar.gz") {
		t.Errorf("THIRD_PARTY.md:\n%s", text)
	}
}

// The layout of https://developer.hashicorp.com/terraform/internals/provider-network-mirror-protocol, of a folder with
// packed providers, and of a release for Terraform's registry.
func terraformLayout(t *testing.T, all map[string]string) {
	t.Helper()
	file := func(name string) string { return all["terraform/registry.terraform.io/drover-dev/drover/"+name] }
	index, list := struct{ Versions map[string]struct{} }{}, struct {
		Archives map[string]struct {
			URL    string
			Hashes []string
		}
	}{}
	if err := json.Unmarshal([]byte(file("index.json")), &index); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(file("0.2.0.json")), &list); err != nil {
		t.Fatal(err)
	}
	if _, ok := index.Versions["0.2.0"]; !ok || len(index.Versions) != 1 || len(list.Archives) != 2 {
		t.Fatalf("%v %v", index, list)
	}
	sums := file("terraform-provider-drover_0.2.0_SHA256SUMS")
	for platform, program := range map[string]string{"linux_amd64": "terraform-provider-drover_v0.2.0", "windows_amd64": "terraform-provider-drover_v0.2.0.exe"} {
		name := "terraform-provider-drover_0.2.0_" + platform + ".zip"
		content := []byte(file(name))
		if a := list.Archives[platform]; a.URL != name || len(a.Hashes) != 1 || a.Hashes[0] != "zh:"+sum(content) {
			t.Errorf("%s: %+v", platform, a)
		}
		if !strings.Contains(sums, sum(content)+"  "+name+"\n") {
			t.Errorf("SHA256SUMS lacks %s:\n%s", name, sums)
		}
		z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			t.Fatal(err)
		}
		if info, err := fs.Stat(z, program); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", program, info, err)
		}
	}
	manifest := file("terraform-provider-drover_0.2.0_manifest.json")
	if !strings.Contains(manifest, `"protocol_versions": ["6.0"]`) || !strings.Contains(sums, sum([]byte(manifest))+"  terraform-provider-drover_0.2.0_manifest.json\n") {
		t.Errorf("%s\n%s", manifest, sums)
	}
}
