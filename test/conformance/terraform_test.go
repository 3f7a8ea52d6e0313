package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localplane"
	"github.com/drover-dev/drover/internal/terraform/plugin/plugintest"
	"github.com/drover-dev/drover/test/examples"
	"github.com/drover-dev/drover/test/kit"
)

// This file has the clouds of provider-terraform: from its package, it runs their real Terraform
// providers. They share one Composition.

// terraformLabel is the label of that Composition.
const terraformLabel = "terraform"

// labelOf returns the label of the Composition of a cloud.
func labelOf(c Cloud) string {
	if strings.HasPrefix(c.Provider(), terraformLabel) {
		return terraformLabel
	}
	if _, ok := c.(*realOpenStack); ok {
		return "openstack"
	}
	return c.Provider()
}

// cannotTerraform returns the cases that a Terraform provider cannot have, and those that its cloud
// cannot have.
func cannotTerraform(ofCloud map[string]string) map[string]string {
	out := map[string]string{
		CaseOrphan:    "The plugin protocol lists no VMs of an account, so there is no inventory for the collector",
		CaseMissing:   "The provider of the VM reports that it is gone: the case `Lost` has it",
		CaseSlowCloud: "The provider looks at a VM that is not Ready every 30 seconds at least, whatever its poll interval",
		CaseRestart:   "One process has the VMs of several clouds here. `TestProviderTerraformIsKilledWhileItCreatesAVM` kills it when no other case runs",
	}
	maps.Copy(out, ofCloud)
	return out
}

// A terraformProvider is built from this repository or from its module.
type terraformProvider struct {
	address, version, pkg string
}

var (
	localcloudProvider = terraformProvider{"drover-dev/localcloud", "0.1.0", "./cmd/terraform-provider-localcloud"}
	hcloudProvider     = terraformProvider{"hetznercloud/hcloud", "1.68.0", "github.com/hetznercloud/terraform-provider-hcloud"}
	openstackProvider  = terraformProvider{"terraform-provider-openstack/openstack", "3.4.0", "github.com/terraform-provider-openstack/terraform-provider-openstack/v3"}
)

// plugins is the directory of the Terraform providers.
var plugins = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "plugins-") })

// installTerraform installs provider-terraform on the plane, once for all clouds.
var installTerraform = sync.OnceValue(func() error {
	p, err := plane()
	if err != nil {
		return err
	}
	dir, err := plugins()
	if err != nil {
		return err
	}
	ctx := context.Background()
	runtimeConfig := object("pkg.crossplane.io/v1beta1", "DeploymentRuntimeConfig", "provider-terraform", map[string]any{
		"deploymentTemplate": map[string]any{"spec": map[string]any{"selector": map[string]any{}, "template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "package-runtime", "env": []any{map[string]any{"name": "PLUGIN_DIR", "value": dir}}}},
		}}}},
	})
	imageConfig := object("pkg.crossplane.io/v1beta1", "ImageConfig", "provider-terraform", map[string]any{
		"matchImages": []any{map[string]any{"type": "Prefix", "prefix": localplane.Registry + "/provider-terraform"}},
		"runtime":     map[string]any{"configRef": map[string]any{"name": "provider-terraform"}},
	})
	for _, o := range []*unstructured.Unstructured{runtimeConfig, imageConfig} {
		if err := p.Client.Create(ctx, o); err != nil {
			return err
		}
	}
	return installProvider(ctx, p, terraformLabel, "VirtualMachine", "ClusterProviderConfig")
})

func object(apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

// install builds and installs the Terraform provider, and provider-terraform that runs it. It
// returns the digest of the program.
func (p terraformProvider) install(ctx context.Context) (string, error) {
	dir, err := plugins()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, filepath.Base(p.address))
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, p.pkg)
	cmd.Dir, cmd.Env = kit.Root(), append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, b)
	}
	digest, err := plugintest.Place(dir, p.address, p.version, program)
	if err != nil {
		return "", err
	}
	return digest, installTerraform()
}

// configOf returns the spec of an example, for a program with the digest and with additional
// configuration.
func configOf(t *testing.T, file, digest string, configuration map[string]any) map[string]any {
	t.Helper()
	b, err := examples.Read(filepath.Join(kit.Root(), file))
	must(t, err)
	u := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal(b, &u.Object))
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	delete(spec, "allowedNamespaces")
	must(t, unstructured.SetNestedStringSlice(spec, []string{digest}, "provider", "sha256"))
	there, _, _ := unstructured.NestedMap(spec, "configuration")
	if there == nil {
		there = map[string]any{}
	}
	maps.Copy(there, configuration)
	spec["configuration"] = there
	return spec
}

func init() {
	register(terraformLocal{})
	register(&terraformHetzner{hetzner: hetzner{entry: "hcloud"}})
	register(&terraformOpenStack{openStack: openStack{entry: "openstack"}})
}

// terraformLocal is the local cloud by its Terraform provider.
type terraformLocal struct{}

func (terraformLocal) Provider() string          { return "terraform-local" }
func (terraformLocal) Backing() Backing          { return realCloud }
func (terraformLocal) Cannot() map[string]string { return cannotTerraform(entry("local").Cannot()) }
func (terraformLocal) Close()                    { removePlugins() }

func (terraformLocal) Install(ctx context.Context, _ *kit.Plane) error {
	digest, err := localcloudProvider.install(ctx)
	localcloudDigest = digest
	return err
}

// localcloudDigest is the digest of the program.
var localcloudDigest string

func removePlugins() {
	if dir, err := plugins(); err == nil {
		_ = os.RemoveAll(dir)
	}
}

func (terraformLocal) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	a := &terraformLocalAccount{localAccount: &localAccount{fleet: f, faults: map[string]string{}, provider: "provider-terraform"}}
	a.SetCredentials(t, CredentialsRight)
	a.lifted = newLiftedAccount(t, f, terraformLabel, localcloudSpec(localcloudDigest))
	return a
}

// localcloudSpec returns the spec of a ClusterProviderConfig. The provider does not wait for its
// VMs: otherwise it would also wait until a refusal ends.
func localcloudSpec(digest string) map[string]any {
	spec := `
provider: {source: drover-dev/localcloud, version: 0.1.0}
configuration: {wait: false}
virtualMachines:
- type: localcloud_virtual_machine
  arguments:
  - {argument: name, value: name}
  - {argument: tags, value: tags}
  - {argument: zone, value: 'failureDomain != "" ? optional.of(failureDomain) : optional.none()'}
  userData: {argument: user_data}
  outputs:
    providerID: state.provider_id
    addresses: state.addresses
    running: state.state == "Running"
    failed: 'state.state == "Failed" ? state.error.code + ": " + state.error.message : ""'
`
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &out); err != nil {
		panic(err)
	}
	if err := unstructured.SetNestedStringSlice(out, []string{digest}, "provider", "sha256"); err != nil {
		panic(err)
	}
	return out
}

type terraformLocalAccount struct {
	*localAccount
	lifted *liftedAccount
}

func (a *terraformLocalAccount) VMKind() schema.GroupVersionKind { return a.lifted.VMKind() }

func (a *terraformLocalAccount) Class(t *testing.T) *machinev1alpha1.MachineClass {
	t.Helper()
	c := a.localAccount.Class(t)
	c.Spec.Provider = terraformLabel
	arguments, err := json.Marshal(map[string]any{"arguments": map[string]any{"image": "ubuntu-24.04", "size": "small"}})
	must(t, err)
	c.Spec.ForProvider.Raw = arguments
	return c
}

// Leaks returns 1: the provider never learns the ID of the server, whose Machine is Failed.
func (*terraformHetzner) Leaks() int { return 1 }

// terraformHetzner is Hetzner Cloud by its Terraform provider.
type terraformHetzner struct {
	hetzner
	digest string
}

func (*terraformHetzner) Provider() string            { return "terraform-hcloud" }
func (h *terraformHetzner) Cannot() map[string]string { return cannotTerraform(h.entry.Cannot()) }
func (*terraformHetzner) IsOnlyInLong() bool          { return true }

func (h *terraformHetzner) Install(ctx context.Context, p *kit.Plane) (err error) {
	h.serve(p)
	h.digest, err = hcloudProvider.install(ctx)
	return err
}

func (h *terraformHetzner) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	a := &terraformHetznerAccount{hetznerAccount{hetzner: &h.hetzner}}
	h.cloud.SetToken(token64("token-of-"+f.Namespace), f.Namespace, false)
	a.liftedAccount = newLiftedAccount(t, f, terraformLabel, configOf(t, "examples/terraform/providerconfig.yaml", h.digest, map[string]any{"endpoint": h.server.URL + "/v1"}))
	a.SetCredentials(t, CredentialsRight)
	return a
}

type terraformHetznerAccount struct{ hetznerAccount }

// Leaks returns the number of the cloud: unlike provider-hcloud, the provider does not find a
// server that it did not record.
func (*terraformHetznerAccount) Leaks() int { return (*terraformHetzner)(nil).Leaks() }

// token64 pads a token to the length that the provider requires.
func token64(text string) string { return text + strings.Repeat("0", max(0, 64-len(text))) }

func (a *terraformHetznerAccount) SetCredentials(t *testing.T, c Credentials) {
	t.Helper()
	token := "token-of-" + a.fleet.Namespace
	if c == CredentialsWrong {
		token = "not-the-token-of-any-project"
	}
	a.setSecret(t, c, map[string]string{"token": token64(token)})
}

func (a *terraformHetznerAccount) Class(t *testing.T) *machinev1alpha1.MachineClass {
	t.Helper()
	return classOf(t, a.fleet, "examples/terraform/machineclass.yaml", a.ProviderConfig())
}

// terraformOpenStack is an OpenStack by its Terraform provider.
type terraformOpenStack struct {
	openStack
	digest string
}

func (*terraformOpenStack) Provider() string { return "terraform-openstack" }
func (o *terraformOpenStack) Cannot() map[string]string {
	return cannotTerraform(o.entry.Cannot())
}
func (*terraformOpenStack) IsOnlyInLong() bool { return true }
func (*terraformOpenStack) Backing() Backing   { return fakedAPI }

func (o *terraformOpenStack) Install(ctx context.Context, p *kit.Plane) (err error) {
	o.serve(p)
	o.digest, err = openstackProvider.install(ctx)
	return err
}

func (o *terraformOpenStack) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	a := &terraformOpenStackAccount{openStackAccount{openStack: &o.openStack}}
	o.cloud.SetCredential(f.Namespace, f.Namespace)
	a.liftedAccount = newLiftedAccount(t, f, terraformLabel, configOf(t, "examples/terraform/providerconfig-openstack.yaml", o.digest, map[string]any{"auth_url": o.server.URL + "/identity/v3"}))
	a.SetCredentials(t, CredentialsRight)
	return a
}

type terraformOpenStackAccount struct{ openStackAccount }

// Leaks returns 1: unlike provider-openstack, the provider does not find a server that it did not record. Its Machine is Failed.
func (*terraformOpenStack) Leaks() int { return 1 }

// Leaks returns the number of the cloud.
func (*terraformOpenStackAccount) Leaks() int { return (*terraformOpenStack)(nil).Leaks() }

// ShowsFailure returns false: the provider reports that the instance is in the state ERROR, but not
// the reason.
func (a *terraformOpenStackAccount) ShowsFailure() bool { return false }

func (a *terraformOpenStackAccount) Class(t *testing.T) *machinev1alpha1.MachineClass {
	t.Helper()
	return classOf(t, a.fleet, "examples/terraform/machineclass-openstack.yaml", a.ProviderConfig())
}

func (a *terraformOpenStackAccount) SetCredentials(t *testing.T, c Credentials) {
	t.Helper()
	secret := "secret-of-" + a.fleet.Namespace
	if c == CredentialsWrong {
		secret = "not-the-secret-of-any"
	}
	a.setSecret(t, c, map[string]string{"application_credential_id": a.fleet.Namespace, "application_credential_secret": secret})
}

// TestMachinesOfATerraformProviderRoll creates three Machines at the local cloud, rolls them to
// another version, and deletes them. Meanwhile it kills the processes of the Terraform provider,
// which restart.
func TestMachinesOfATerraformProviderRoll(t *testing.T) {
	w := newWorld(t, terraformLocal{})
	md := w.deployment("workers", 3)
	w.Create(t, md)
	w.AwaitDeployment(t, md.Name)
	states := w.terraformStates(t)
	if len(states) != 3 {
		t.Errorf("%d states of 3 VMs", len(states))
	}
	began := time.Now()
	w.Patch(t, md, fmt.Sprintf(`{"spec": {"template": {"spec": {"version": %q}}}}`, kit.NewVersion))
	killPlugins(t)
	w.AwaitDeployment(t, md.Name)
	t.Logf("rolled 3 Machines in %s", time.Since(began).Round(time.Second))
	w.end(t, md)
	if left := w.terraformStates(t); len(left) != 0 {
		t.Errorf("states %v are left", left)
	}
}

// terraformStates returns the VMs of the world that have a Secret with their state.
func (w *world) terraformStates(t *testing.T) []string {
	t.Helper()
	l := &corev1.SecretList{}
	must(t, w.Client.List(t.Context(), l, client.MatchingLabels{"terraform.drover.dev/state": "true"}))
	var out []string
	for _, s := range l.Items {
		of := s.Annotations["terraform.drover.dev/virtual-machine"]
		if s.Namespace == w.Namespace {
			t.Errorf("Secret %s, the state of %s, is where users may write", s.Name, of)
		}
		if strings.HasPrefix(of, w.Namespace+"/") {
			out = append(out, of)
		}
	}
	return out
}

// killPlugins kills the processes of the local cloud's Terraform provider. Only the control plane
// of this package uses them.
func killPlugins(t *testing.T) {
	t.Helper()
	dir, err := plugins()
	must(t, err)
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	must(t, err)
	killed := 0
	for _, link := range links {
		program, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(program, dir+"/") || !strings.Contains(program, "localcloud") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		must(t, err)
		must(t, syscall.Kill(pid, syscall.SIGKILL))
		killed++
	}
	if killed == 0 {
		t.Errorf("no process of %s was there to be killed", dir)
	}
}

// TestWrongArgumentsOfATerraformProviderCostNoVM uses a class with an argument that the resource
// does not have.
func TestWrongArgumentsOfATerraformProviderCostNoVM(t *testing.T) {
	w := newWorld(t, terraformLocal{})
	class := w.class.DeepCopy()
	class.ObjectMeta = metav1.ObjectMeta{Namespace: w.Namespace, Name: "wrong"}
	class.Spec.ForProvider.Raw = []byte(`{"arguments": {"image": "ubuntu-24.04", "size": "small", "flavour": "sweet"}}`)
	w.Create(t, class)
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "wrong"}}
	m.Spec = w.MachineSpec(kit.NewVersion)
	m.Spec.ClassRef.Name = class.Name
	w.Create(t, m)
	w.await(t, m, func(m *machinev1alpha1.Machine) string {
		return reported(m.Status.Conditions, "InfrastructureReady", string(fn.ErrorInvalidRequest), "arguments.flavour: unknown argument")
	})
	w.Throughout(t, w.noVMs)
	w.end(t, m)
}

// TestProviderTerraformIsKilledWhileItCreatesAVM runs the case Restart when no other case runs: the
// process that it kills has the VMs of all clouds.
func TestProviderTerraformIsKilledWhileItCreatesAVM(t *testing.T) {
	for _, c := range tested {
		if labelOf(c) == terraformLabel && !(kit.IsShort() && isCloudOnlyInLong(c)) {
			t.Run(c.Provider(), func(t *testing.T) { restart(t, c, nil) })
		}
	}
}
