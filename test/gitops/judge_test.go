package gitops

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/test/kit"
)

// A verdict of Argo CD and Flux on one object: see clients/judge.
type verdict struct {
	Argo, ArgoMessage string
	// Flux is the verdict with the shipped Kustomization, and Kstatus the verdict without
	// healthCheckExprs.
	Flux, FluxMessage       string
	Kstatus, KstatusMessage string
	OutOfSync               bool
}

// judge objects as Argo CD with the shipped health checks does, and as Flux does. Manifests, if
// there are any, are compared with the objects of the same index.
func judge(t *testing.T, objects, manifests []map[string]any, ignore any) []verdict {
	t.Helper()
	cm := struct{ Data map[string]string }{}
	decode(t, "argocd/argocd-cm.yaml", &cm)
	customizations := cm.Data["resource.customizations"]
	if customizations == "" {
		t.Fatal("examples/argocd/argocd-cm.yaml has no resource.customizations")
	}
	in, err := json.Marshal(map[string]any{"customizations": customizations, "ignoreDifferences": ignore, "healthCheckExprs": healthCheckExprs(t), "objects": objects, "manifests": manifests})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary("gitops-judge"))
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("gitops-judge: %v", err)
	}
	var verdicts []verdict
	if err := json.Unmarshal(out, &verdicts); err != nil {
		t.Fatalf("gitops-judge: %v\n%s", err, out)
	}
	if len(verdicts) != len(objects) {
		t.Fatalf("%d verdicts on %d objects", len(verdicts), len(objects))
	}
	return verdicts
}

// decode a file of examples.
func decode(t *testing.T, file string, into any) {
	t.Helper()
	decodeFile(t, filepath.Join(kit.Root(), "examples", file), into)
}

func decodeFile(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// filesOf the repository.
func filesOf(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(kit.Root(), filepath.FromSlash(pattern)))
	if err != nil || len(files) == 0 {
		t.Fatalf("no file %s: %v", pattern, err)
	}
	return files
}

// ignoreDifferences of the shipped Application.
func ignoreDifferences(t *testing.T) any {
	t.Helper()
	app := struct {
		Spec struct{ IgnoreDifferences []any }
	}{}
	decode(t, "argocd/application.yaml", &app)
	if len(app.Spec.IgnoreDifferences) == 0 {
		t.Fatal("the Application ignores no differences")
	}
	return app.Spec.IgnoreDifferences
}

// healthCheckExprs of the shipped Kustomization of the machines.
func healthCheckExprs(t *testing.T) []any {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(kit.Root(), "examples", "flux", "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for doc := range strings.SplitSeq(string(b), "\n---\n") {
		k := struct {
			Metadata struct{ Name string }
			Spec     struct{ HealthCheckExprs []any }
		}{}
		if err := yaml.Unmarshal([]byte(doc), &k); err != nil {
			t.Fatal(err)
		}
		if k.Metadata.Name == "workers" {
			return k.Spec.HealthCheckExprs
		}
	}
	t.Fatal("examples/flux/kustomization.yaml has no Kustomization workers")
	return nil
}
