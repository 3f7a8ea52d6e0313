// Package karpenter runs drover-karpenter for a fleet of a test, with exactly the rights of the example.
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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/localplane"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// machinesNamespace is the namespace in the example, in place of which a test has that of its fleet.
const machinesNamespace = "karpenter-machines"

// A Process of drover-karpenter for the target cluster of a fleet.
type Process struct {
	// Log is the file of its log.
	Log string
	// Control are the credentials of the control cluster.
	Control *kit.Credentials

	// Env of the next start. Its last value of a variable counts.
	Env []string

	fleet kit.Fleet
	cmd   *exec.Cmd
}

// Binary is the path of drover-karpenter.
func Binary() string { return filepath.Join(os.Getenv("DROVER_BIN"), "drover-karpenter") }

// Install prepares both clusters by the steps of the example, and returns the process with its rights. It is not started.
func Install(t *testing.T, f kit.Fleet) *Process {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), Binary(), "crds").Output()
	must(t, err)
	crds := filepath.Join(dir, "crds.yaml")
	must(t, os.WriteFile(crds, out, 0o600))
	must(t, localplane.Apply(t.Context(), f.Cluster.Client, crds))
	for file, c := range map[string]*kit.Cluster{"control-cluster.yaml": f.Control, "target-cluster.yaml": f.Cluster} {
		must(t, localplane.Apply(t.Context(), c.Client, Example(t, f, dir, file)))
	}
	// The pod of the example has an image that no Node can pull.
	deployment := Object("apps/v1", "Deployment", "karpenter")
	deployment.SetNamespace("karpenter")
	must(t, f.Cluster.Client.Delete(t.Context(), deployment))
	control := f.Control.CredentialsOf(t, client.ObjectKey{Namespace: f.Namespace, Name: "karpenter"})
	target := f.Cluster.CredentialsOf(t, client.ObjectKey{Namespace: "karpenter", Name: "karpenter"})
	kubeconfig := func(c *kit.Credentials, name string) string {
		file := filepath.Join(dir, name)
		must(t, os.WriteFile(file, c.Kubeconfig, 0o600))
		return file
	}
	return &Process{
		Control: control,
		fleet:   f,
		Log:     filepath.Join(f.Dir, "logs", "drover-karpenter.log"),
		Env: append(os.Environ(),
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

// Example returns a copy of a file of the example for the namespace of a fleet.
func Example(t *testing.T, f kit.Fleet, dir, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(kit.Root(), "examples/karpenter", file))
	must(t, err)
	to := filepath.Join(dir, file)
	must(t, os.WriteFile(to, []byte(strings.ReplaceAll(string(b), machinesNamespace, f.Namespace)), 0o600))
	return to
}

// Start the process.
func (p *Process) Start(t *testing.T) {
	t.Helper()
	out, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(t, err)
	defer out.Close()
	p.cmd = exec.Command(Binary())
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = p.Env, out, out
	must(t, p.cmd.Start())
}

// Kill the process.
func (p *Process) Kill(t *testing.T) {
	t.Helper()
	must(t, p.cmd.Process.Signal(syscall.SIGKILL))
	_ = p.cmd.Wait()
}

// Tail of the log, for failures.
func (p *Process) Tail(context.Context) string {
	b, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// MakeWorkload creates a Deployment whose pods request cpu.
func (p *Process) MakeWorkload(t *testing.T, name string, pods int32, cpu string) {
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
      containers: [{name: c, image: example.org/c, resources: {requests: {cpu: %[4]q}}}]`, p.fleet.Namespace, name, pods, cpu)
	p.fleet.CreateIn(t, p.fleet.Cluster, Decode(t, text))
}

// AwaitWorkload waits until that many pods of a Deployment are ready.
func (p *Process) AwaitWorkload(t *testing.T, name string, pods int) {
	t.Helper()
	f := p.fleet
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
	}, f.Describe, p.Tail)
}

// DeleteWorkload deletes a Deployment.
func (p *Process) DeleteWorkload(t *testing.T, name string) {
	t.Helper()
	f := p.fleet
	d := Object("apps/v1", "Deployment", name)
	d.SetNamespace(f.Namespace)
	must(t, f.Cluster.Client.Delete(t.Context(), d, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// AwaitReady waits until a DroverNodeClass has the condition Ready with the status, and a condition with the reason.
func (p *Process) AwaitReady(t *testing.T, class *unstructured.Unstructured, status, reason string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		now := class.DeepCopy()
		if err := p.fleet.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(class), now); err != nil {
			return err.Error()
		}
		s, r := Condition(now, "Ready")
		if s != status {
			return fmt.Sprintf("Ready is %q: %s", s, r)
		}
		all, _, _ := unstructured.NestedSlice(now.Object, "status", "conditions")
		if !strings.Contains(fmt.Sprint(all), "reason:"+reason) {
			return fmt.Sprintf("the conditions are %v", all)
		}
		return ""
	}, p.Tail)
}

// List returns the objects of a kind in the target cluster.
func (p *Process) List(ctx context.Context, apiVersion, kind string) ([]unstructured.Unstructured, error) {
	l := &unstructured.UnstructuredList{}
	l.SetAPIVersion(apiVersion)
	l.SetKind(kind + "List")
	err := p.fleet.Cluster.Client.List(ctx, l)
	return l.Items, err
}

// Condition returns the status of a condition, and its reason and message.
func Condition(u *unstructured.Unstructured, typ string) (status, reason string) {
	all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range all {
		if m, ok := c.(map[string]any); ok && m["type"] == typ {
			return fmt.Sprint(m["status"]), fmt.Sprint(m["reason"], ": ", m["message"])
		}
	}
	return "", "there is no condition " + typ
}

// Object returns an object without a spec.
func Object(apiVersion, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetName(name)
	return u
}

// Decode returns an object of YAML.
func Decode(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(text), &u.Object))
	return u
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
