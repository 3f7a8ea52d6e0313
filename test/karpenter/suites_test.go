package karpenter

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/karpenter"
)

var (
	suite = flag.String("suite", "", "a suite of Karpenter's own: regression. Empty: none is run")
	focus = flag.String("focus", "", "the specs of the suite to run, as a regular expression. Empty: all that docs/karpenter.md does not excuse")
)

// A pass is a run of a suite. The specs of CapacityBuffers need a NodeClass of their own.
type pass struct{ name, nodeClass, focus, skip string }

const buffers = "CapacityBuffer"

var passes = map[string][]pass{
	"regression": {{"all", "nodeclass.yaml", "", buffers}, {"buffers", "nodeclass-two.yaml", buffers, ""}},
}

// TestKarpentersOwnSuite runs a suite of Karpenter, as it is, against drover-karpenter. They judge what each provider must do,
// and take an hour, most of which they wait.
func TestKarpentersOwnSuite(t *testing.T) {
	if *suite == "" {
		t.Skip("make karpenter-suites runs it")
	}
	all, ok := passes[*suite]
	if !ok {
		t.Fatalf("-suite=%s: must be regression", *suite)
	}
	f := plane.NewTargetFleet(t)
	for name, size := range map[string]string{"one": "small", "two": "medium", "four": "large", "sixteen": "xlarge"} {
		for _, suffix := range []string{"", "-spot"} {
			c := f.Class(name+suffix, "local", fmt.Sprintf(`{"image":"ubuntu-24.04","size":%q}`, size))
			// The suites count on some overhead of each Node.
			c.Spec.Kubelet.Configuration = &runtime.RawExtension{Raw: []byte(`{"systemReserved":{"cpu":"100m"}}`)}
			f.Create(t, c)
		}
	}
	p := karpenter.Install(t, f)
	p.Env = append(p.Env, "FEATURE_GATES=NodeRepair=true,StaticCapacity=true,CapacityBuffer=true")
	p.Start(t)
	t.Cleanup(func() { p.Kill(t) })
	excused := excusedSpecs(t, *suite)
	for _, pass := range all {
		if step := *focus; step != "" {
			if pass.focus != "" != strings.Contains(step, buffers) {
				continue
			}
			pass.focus = step
		}
		t.Run(pass.name, func(t *testing.T) { runSuite(t, f, pass, excused) })
	}
	p.Control.Revoke(t)
	f.AwaitNothing(t)
}

// runSuite runs the binary of a suite, and reports its specs.
func runSuite(t *testing.T, f kit.Fleet, p pass, excused []string) {
	t.Helper()
	dir := t.TempDir()
	report := filepath.Join(dir, "report.json")
	args := []string{
		"--ginkgo.timeout=6h", "--ginkgo.grace-period=5m", "--ginkgo.no-color", "--ginkgo.v", "--ginkgo.json-report=" + report, "--ginkgo.focus=" + p.focus,
		"--default-nodeclass=" + versioned(t, dir, p.nodeClass), "--default-nodepool=" + versioned(t, dir, "nodepool.yaml"),
	}
	if p.skip != "" {
		args = append(args, "--ginkgo.skip="+p.skip)
	}
	for _, spec := range excused {
		args = append(args, "--ginkgo.skip="+regexp.QuoteMeta(spec)+"$")
	}
	log, err := os.Create(filepath.Join(f.Dir, "logs", "karpenter-"+*suite+"-"+p.name+".log"))
	must(t, err)
	defer log.Close()
	cmd := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("DROVER_BIN"), "karpenter-"+*suite+".test"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.Cluster.Kubeconfig, "OUTPUT_DIR="+dir)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, dir
	failed := cmd.Run()
	specs := readReport(t, report)
	for _, s := range specs {
		switch s.State {
		case "passed":
			if s.LeafNodeText == "" {
				continue // It is a node around the specs, such as BeforeSuite.
			}
			t.Logf("passed after %s: %s", s.RunTime.Round(time.Second), s.name())
		case "skipped", "pending":
		default:
			t.Errorf("%s after %s: %s: %s", s.State, s.RunTime.Round(time.Second), s.name(), s.Failure.Message)
		}
	}
	if failed != nil && !t.Failed() {
		t.Errorf("the suite failed: %v", failed)
	}
}

// A spec in Ginkgo's report.
type spec struct {
	ContainerHierarchyTexts []string
	LeafNodeText, State     string
	RunTime                 time.Duration
	Failure                 struct{ Message string }
}

func (s spec) name() string {
	return strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " ")
}

func readReport(t *testing.T, file string) []spec {
	t.Helper()
	b, err := os.ReadFile(file)
	must(t, err)
	var out []struct{ SpecReports []spec }
	must(t, json.Unmarshal(b, &out))
	if len(out) != 1 {
		t.Fatalf("the report has %d suites", len(out))
	}
	return out[0].SpecReports
}

// versioned returns a copy of a file in testdata for the version of the kubelets.
func versioned(t *testing.T, dir, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", file))
	must(t, err)
	to := filepath.Join(dir, file)
	must(t, os.WriteFile(to, []byte(strings.ReplaceAll(string(b), "VERSION", kit.NewVersion)), 0o600))
	return to
}

// excusedSpecs returns the specs of a suite in the table of docs/karpenter.md: | suite | spec | reason |.
func excusedSpecs(t *testing.T, suite string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(kit.Root(), "docs/karpenter.md"))
	must(t, err)
	var out []string
	for _, m := range regexp.MustCompile("(?m)^\\| "+suite+" \\| (.+?) \\| .+ \\|$").FindAllStringSubmatch(string(b), -1) {
		out = append(out, m[1])
	}
	return out
}
