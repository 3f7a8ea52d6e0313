package crossplane

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// chartDir returns the folder of the chart in the module that is built.
func chartDir(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", "github.com/crossplane/crossplane/v2").Output()
	if err != nil {
		t.Fatal(err)
	}
	version, dir, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if version != Version {
		t.Fatalf("go.mod has Crossplane %s, this package says %s", version, Version)
	}
	if dir == "" {
		t.Fatal("the Crossplane module is not downloaded")
	}
	return filepath.Join(dir, "cluster", "charts", "crossplane")
}

func TestRenderChartGivesCrossplaneItsOwnRoles(t *testing.T) {
	objects, err := renderChart(os.DirFS(chartDir(t)))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, o := range objects {
		got[o.GetKind()+" "+o.GetName()] = true
		for k, v := range o.GetLabels() {
			if strings.Contains(v, "{{") || strings.Contains(v, "<no value>") {
				t.Errorf("%s %s: label %s is %q", o.GetKind(), o.GetName(), k, v)
			}
		}
		if ns := o.GetNamespace(); ns != "" && ns != Namespace {
			t.Errorf("%s %s is in namespace %s", o.GetKind(), o.GetName(), ns)
		}
	}
	for _, want := range []string{
		"ServiceAccount crossplane", "ServiceAccount rbac-manager",
		"ClusterRole crossplane", "ClusterRole crossplane:system:aggregate-to-crossplane", "ClusterRoleBinding crossplane",
		"ClusterRole crossplane-rbac-manager", "ClusterRoleBinding crossplane-rbac-manager",
		"ClusterRole crossplane:allowed-provider-permissions", "ClusterRole crossplane-admin",
		"Secret crossplane-root-ca", "Secret crossplane-tls-server", "Secret crossplane-tls-client",
	} {
		if !got[want] {
			t.Errorf("%s is missing", want)
		}
	}
}
