package docs

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localplane"
	"github.com/drover-dev/drover/test/examples"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

var (
	planesMu sync.Mutex
	planes   []*kit.Plane
)

// up starts a control plane that stops when the tests end.
func up(t *testing.T, o kit.Options) *kit.Plane {
	t.Helper()
	o.Args = kit.Limits
	p, err := kit.Up(context.Background(), o)
	planesMu.Lock()
	defer planesMu.Unlock()
	planes = append(planes, p)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMain(m *testing.M) {
	shim()
	code := m.Run()
	for _, p := range planes {
		if code != 0 && p != nil {
			p.KeepLogs()
		}
		p.Down()
	}
	os.Exit(code)
}

// A world is the environment of the pages' scripts: a control plane, a folder with the files of
// the repository, and values for the names that the reader chooses.
type world struct {
	plane *kit.Plane
	dir   string
	env   []string
	names []name
}

// A name that a reader replaces.
type name struct {
	placeholder *regexp.Regexp
	value       string
}

// newWorld on a control plane. Scripts write files to their own folder. The reader has replaced the placeholders of the
// examples.
func newWorld(t *testing.T, p *kit.Plane) *world {
	t.Helper()
	w := &world{plane: p, dir: t.TempDir()}
	entries, err := os.ReadDir(kit.Root())
	must(t, err)
	for _, e := range entries {
		if e.Name() == "examples" {
			must(t, examples.Copy(filepath.Join(kit.Root(), "examples"), filepath.Join(w.dir, "examples")))
			continue
		}
		must(t, os.Symlink(filepath.Join(kit.Root(), e.Name()), filepath.Join(w.dir, e.Name())))
	}
	tools := t.TempDir()
	self, err := os.Executable()
	must(t, err)
	for tool := range shims {
		must(t, os.Symlink(self, filepath.Join(tools, tool)))
	}
	kubeconfig := filepath.Join(tools, "kubeconfig")
	must(t, clientcmd.WriteToFile(*contexts(t, p), kubeconfig))
	w.env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig,
		"EDITOR=true", "REGISTRY="+localplane.Registry, "VERSION="+localplane.Version)
	return w
}

// contexts returns a kubeconfig with the contexts control and target. The first is the current
// one.
func contexts(t *testing.T, p *kit.Plane) *clientcmdapi.Config {
	t.Helper()
	all := clientcmdapi.NewConfig()
	for context, c := range map[string]*kit.Cluster{"control": p.Control, "target": p.Target} {
		if c == nil {
			continue
		}
		cfg, err := clientcmd.LoadFromFile(c.Kubeconfig)
		must(t, err)
		must(t, clientcmd.ResolveLocalPaths(cfg))
		of := cfg.Contexts[cfg.CurrentContext]
		all.Clusters[context], all.AuthInfos[context] = cfg.Clusters[of.Cluster], cfg.AuthInfos[of.AuthInfo]
		all.Contexts[context] = &clientcmdapi.Context{Cluster: context, AuthInfo: context, Namespace: metav1.NamespaceDefault}
	}
	all.CurrentContext = "control"
	return all
}

// replace a placeholder of scripts by a value.
func (w *world) replace(placeholder, value string) {
	w.names = append(w.names, name{regexp.MustCompile(placeholder), value})
}

// run the script of a block, and return its output.
func (w *world) run(ctx context.Context, b Block, env ...string) (string, error) {
	script := b.Script
	for _, n := range w.names {
		script = n.placeholder.ReplaceAllString(script, n.value)
	}
	ctx, cancel := context.WithTimeout(ctx, patience.Limit())
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = w.dir, append(w.env, env...)
	// A command that waits for ever, such as a deletion that is held, ends with all that the block started.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("it did not end: %w", cmp.Or(err, ctx.Err()))
	}
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s\n%s", b, err, script, out)
	}
	return string(out), err
}

// furnish creates the objects that the pages name.
func (w *world) furnish(t *testing.T) {
	t.Helper()
	ctx, c := t.Context(), w.plane.Client
	for _, ns := range []string{"argocd", "cluster-autoscaler"} {
		must(t, c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	}
	must(t, client.IgnoreAlreadyExists(w.plane.Target.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cluster-autoscaler"}})))
	must(t, w.plane.Target.Client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "drover-system", Name: "drover-1", Annotations: map[string]string{corev1.ServiceAccountNameKey: "drover"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}))
	must(t, c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "argocd-cm"}}))
	must(t, c.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "workers-user-data"},
		StringData: map[string]string{"userData": "#!/bin/sh\n"},
	}))
	for _, file := range []string{"nodepool/clustermachineclass.yaml", "nodepool/composition.yaml", "local/machineclass.yaml", "local/machinedeployment.yaml", "local/orphancollector.yaml"} {
		must(t, localplane.Apply(ctx, c, filepath.Join(kit.Root(), "examples", file)))
	}
	// A page waits until the provider is healthy, which it is only with its configuration.
	must(t, localplane.Apply(ctx, c, filepath.Join(kit.Root(), "examples/terraform/runtime.yaml")))
	f := kit.Fleet{Plane: w.plane, Namespace: metav1.NamespaceDefault}
	machine := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "w"}}
	machine.Spec = machinev1alpha1.MachineSpec{ClassRef: machinev1alpha1.ClassReference{Name: "small"}, Version: kit.NewVersion}
	must(t, c.Create(ctx, machine))
	must(t, localplane.Apply(ctx, c, filepath.Join(kit.Root(), "examples/nodepool/nodepool.yaml")))
	f.AwaitDeployment(t, "workers")
	w.await(t, f)
	w.mirrorNode(t, f)
	w.placeholders(t, f)
}

// mirrorNode creates a Node in the target cluster with the name of the Node that Machine w has in
// the control cluster. Some pages read this Node with "--context target", other pages in the
// current context.
func (w *world) mirrorNode(t *testing.T, f kit.Fleet) {
	t.Helper()
	m := &machinev1alpha1.Machine{}
	must(t, f.Client.Get(t.Context(), client.ObjectKey{Namespace: f.Namespace, Name: "w"}, m))
	must(t, w.plane.Target.Client.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Status.NodeRef.Name}}))
}

// await the Node of the Machine w.
func (w *world) await(t *testing.T, f kit.Fleet) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		m := &machinev1alpha1.Machine{}
		if err := f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: "w"}, m); err != nil || m.Status.NodeRef == nil {
			return fmt.Sprintf("Machine w has no Node, error %v", err)
		}
		return ""
	})
}

// placeholders replaces the placeholders of pages by values that exist.
func (w *world) placeholders(t *testing.T, f kit.Fleet) {
	t.Helper()
	m := &machinev1alpha1.Machine{}
	must(t, f.Client.Get(t.Context(), client.ObjectKey{Namespace: f.Namespace, Name: "w"}, m))
	revision, err := w.plane.Kubectl(t, "get", "providerrevisions", "-o", "name", "-l", "pkg.crossplane.io/package=drover-provider-local")
	must(t, err)
	w.replace(`\bNAMESPACE\b`, f.Namespace)
	w.replace(`\b(ma[ /]|machine[ /]|machines\.machine\.drover\.dev )NAME\b`, "${1}w")
	w.replace(`\b(md[ /])NAME\b`, "${1}workers")
	w.replace(`\b(node )NAME\b|\bNODE\b`, "${1}"+m.Status.NodeRef.Name)
	w.replace(`(clusterproviderconfigs.cluster.drover.dev )NAME\b`, "${1}default")
	w.replace(`(providerrevision )NAME\b`, "${1}"+strings.TrimPrefix(strings.Fields(revision)[0], "providerrevision.pkg.crossplane.io/"))
	w.replace(`\bUPDATE-TO\b`, "u-1")
	w.replace(`=FILE\b`, "="+w.plane.Kubeconfig)
	must(t, os.MkdirAll(filepath.Join(w.dir, "schemas"), 0o700))
}

// serveFunction starts a function-drover that renders, and passes its address to the world's
// scripts.
func (w *world) serveFunction(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := l.Addr().String()
	_ = l.Close()
	cmd := exec.CommandContext(t.Context(), binary("function-drover"), "--insecure", "--address", address, "--metrics-address", "")
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	patience.Eventually(t, func(ctx context.Context) string {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err.Error()
		}
		_ = c.Close()
		return ""
	})
	w.env = append(w.env, envFunction+"="+address)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
