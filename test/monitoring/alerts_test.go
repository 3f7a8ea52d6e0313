package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/test/kit/tools"
)

// TestAlertsFireWhenTheyShould checks the rules and runs the cases of testdata/alerts.yaml, both
// by Prometheus' own promtool.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	promtool := tools.Path(t, "promtool", "prometheus", "the alerts")
	object := struct {
		Spec any `json:"spec"`
	}{}
	if err := yaml.Unmarshal([]byte(read(t, examples+"prometheusrule.yaml")), &object); err != nil {
		t.Fatal(err)
	}
	rules, err := yaml.Marshal(object.Spec)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for file, content := range map[string]string{"rules.yaml": string(rules), "alerts.yaml": read(t, "testdata/alerts.yaml")} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", "--lint-fatal", "rules.yaml"}, {"test", "rules", "alerts.yaml"}} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}
