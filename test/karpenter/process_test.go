package karpenter

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/localplane"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// machinesNamespace is the namespace in the example, in place of which a test has that of its fleet.
const machinesNamespace = "karpenter-machines"

// A process of drover-karpenter for the target cluster of a fleet.
type process struct {
	env []string
	log string
	// control are the credentials of the control cluster.
	control *kit.Credentials
	cmd     *exec.Cmd
}

func binary() string { return filepath.Join(os.Getenv("DROVER_BIN"), "drover-karpenter") }

// install prepares both clusters by the steps of the example, and returns the process with its rights. It is not started.
func install(t *testing.T, f kit.Fleet) *process {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), binary(), "crds").Output()
	must(t, err)
	crds := filepath.Join(dir, "crds.yaml")
	must(t, os.WriteFile(crds, out, 0o600))
	must(t, localplane.Apply(t.Context(), f.Cluster.Client, crds))
	for file, c := range map[string]*kit.Cluster{"control-cluster.yaml": f.Control, "target-cluster.yaml": f.Cluster} {
		must(t, localplane.Apply(t.Context(), c.Client, example(t, f, dir, file)))
	}
	// The pod of the example has an image that no Node can pull.
	deployment := object("apps/v1", "Deployment", "karpenter")
	deployment.SetNamespace("karpenter")
	must(t, f.Cluster.Client.Delete(t.Context(), deployment))
	control := f.Control.CredentialsOf(t, client.ObjectKey{Namespace: f.Namespace, Name: "karpenter"})
	target := f.Cluster.CredentialsOf(t, client.ObjectKey{Namespace: "karpenter", Name: "karpenter"})
	kubeconfig := func(c *kit.Credentials, name string) string {
		file := filepath.Join(dir, name)
		must(t, os.WriteFile(file, c.Kubeconfig, 0o600))
		return file
	}
	return &process{
		control: control,
		log:     filepath.Join(f.Dir, "logs", "drover-karpenter.log"),
		env: append(os.Environ(),
			"KUBECONFIG="+kubeconfig(target, "target"),
			"CONTROL_KUBECONFIG="+kubeconfig(control, "control"),
			"MACHINE_NAMESPACE="+f.Namespace,
			"LEADER_ELECTION_NAMESPACE=karpenter",
			// A killed leader would keep its lease for 15 seconds.
			"DISABLE_LEADER_ELECTION=true",
			"DISABLE_CLUSTER_STATE_OBSERVABILITY=true",
			"METRICS_PORT=0", "HEALTH_PROBE_PORT=0", "FEATURE_GATES=NodeRepair=true", "LOG_LEVEL=info",
		),
	}
}

// example returns a copy of a file of the example for the namespace of a fleet.
func example(t *testing.T, f kit.Fleet, dir, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(kit.Root(), "examples/karpenter", file))
	must(t, err)
	to := filepath.Join(dir, file)
	must(t, os.WriteFile(to, []byte(strings.ReplaceAll(string(b), machinesNamespace, f.Namespace)), 0o600))
	return to
}

func (p *process) start(t *testing.T) {
	t.Helper()
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(t, err)
	defer out.Close()
	p.cmd = exec.Command(binary())
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = p.env, out, out
	must(t, p.cmd.Start())
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	must(t, p.cmd.Process.Signal(syscall.SIGKILL))
	_ = p.cmd.Wait()
}

// tail of the log, for failures.
func (p *process) tail(context.Context) string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// makeWorkload creates a Deployment whose pods request cpu.
func makeWorkload(t *testing.T, f kit.Fleet, name string, pods int32, cpu string) {
	t.Helper()
	text := fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: %[1]s, name: %[2]s}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata:
      labels: {app: %[2]s}
      annotations: {localcloud.drover.dev/stop-seconds: "1"}
    spec:
      containers: [{name: c, image: example.org/c, resources: {requests: {cpu: %[4]q}}}]`, f.Namespace, name, pods, cpu)
	f.CreateIn(t, f.Cluster, decode(t, text))
}

func awaitWorkload(t *testing.T, f kit.Fleet, p *process, name string, pods int) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		l := &corev1.PodList{}
		if err := f.Cluster.Client.List(ctx, l, client.InNamespace(f.Namespace), client.MatchingLabels{"app": name}); err != nil {
			return err.Error()
		}
		ready := 0
		for _, pod := range l.Items {
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
					ready++
				}
			}
		}
		if ready != pods {
			return fmt.Sprintf("%d of %d pods of %s are ready", ready, pods, name)
		}
		return ""
	}, f.Describe, p.tail)
}

func deleteWorkload(t *testing.T, f kit.Fleet, name string) {
	t.Helper()
	d := object("apps/v1", "Deployment", name)
	d.SetNamespace(f.Namespace)
	must(t, f.Cluster.Client.Delete(t.Context(), d, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}
