package conformance

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterapi "github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localplane"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/guest"
)

// clusterAPI is the unmodified in-memory provider of Cluster API, built from its module and without Cluster API's own
// controllers. The user data of an InfraMachine that it reports as provisioned boots at the local cloud.
type clusterAPI struct {
	entry
	guests
	plane *kit.Plane
	dir   string
	cmd   *exec.Cmd
	stop  context.CancelFunc
	done  sync.WaitGroup
}

const (
	devGroup = "infrastructure.cluster.x-k8s.io"
	// devAccount is the ServiceAccount of the kubeconfig with which provider-clusterapi reaches the cluster.
	devAccount = "clusterapi-conformance"
)

var devMachine = schema.GroupVersionKind{Group: devGroup, Version: "v1beta2", Kind: "DevMachine"}

func init() { register(&clusterAPI{entry: "clusterapi"}) }

func (*clusterAPI) Backing() Backing { return inMemory }

// Install builds the provider, and runs it beside the CRDs of Cluster API.
func (m *clusterAPI) Install(ctx context.Context, p *kit.Plane) error {
	m.plane, m.host = p, newHost(p)
	var err error
	if m.dir, err = os.MkdirTemp("", "clusterapi-"); err != nil {
		return err
	}
	core, err := coreTools.module("sigs.k8s.io/cluster-api")
	if err != nil {
		return err
	}
	infra, err := coreTools.module("sigs.k8s.io/cluster-api/test")
	if err != nil {
		return err
	}
	for _, pattern := range []string{filepath.Join(core, "config/crd/bases/cluster.x-k8s.io_*.yaml"), filepath.Join(infra, "infrastructure/docker/config/crd/bases/*.yaml")} {
		if err := createCRDs(ctx, p.Client, pattern, contracts); err != nil {
			return err
		}
	}
	for _, k := range []schema.GroupVersionKind{devMachine, devMachine.GroupVersion().WithKind("DevCluster"), {Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine"}} {
		if err := awaitServed(ctx, p.Client, k); err != nil {
			return err
		}
	}
	if err := localplane.Apply(ctx, p.Client, filepath.Join(kit.Root(), "package/provider-drover/rbac-provider-clusterapi.yaml")); err != nil {
		return err
	}
	if err := m.grant(ctx, p.Client); err != nil {
		return err
	}
	if err := m.run(ctx); err != nil {
		return err
	}
	watch, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.done.Go(func() { m.boot(watch) })
	return installLifted(ctx, p, "clusterapi")
}

// tools are a folder whose module has programs as tools.
type tools string

// coreTools are what Cluster API itself has.
const coreTools tools = "tools/cluster-api"

func (d tools) dir() string { return filepath.Join(kit.Root(), string(d)) }

// module returns the folder of a module.
func (d tools) module(module string) (string, error) {
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module)
	cmd.Dir = d.dir()
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", cmd, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// contracts are the labels of CRDs in the kustomizations of Cluster API: the versions of its contracts, and of the kinds that
// fulfill them.
var contracts = map[string]string{"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"}

// createCRDs creates CRDs with the labels of a kustomization. Without webhooks nothing converts versions.
func createCRDs(ctx context.Context, c client.Client, pattern string, labels map[string]string) error {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s: no files, %w", pattern, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(bytes.TrimPrefix(b, []byte("---\n")), &crd.Object); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		crd.SetLabels(labels)
		if err := client.IgnoreAlreadyExists(c.Create(ctx, crd)); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
	}
	return nil
}

// grant gives the account of the kubeconfig the rights of rbac-provider-clusterapi.yaml, and those on the kinds of the provider in
// the form of the example.
func (*clusterAPI) grant(ctx context.Context, c client.Client) error {
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "drover:provider-clusterapi:dev", Labels: map[string]string{"rbac.drover.dev/aggregate-to-provider-clusterapi": "true"}},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{devGroup}, Resources: []string{"devmachines"}, Verbs: []string{"get", "list", "create", "delete"}},
			{APIGroups: []string{devGroup}, Resources: []string{"devclusters"}, Verbs: []string{"get", "patch"}},
		},
	}
	if err := c.Create(ctx, role); err != nil {
		return err
	}
	for _, name := range []string{"drover:provider-clusterapi:core", "drover:provider-clusterapi:infrastructure"} {
		if err := c.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: devAccount + ":" + name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: devAccount}},
		}); err != nil {
			return err
		}
	}
	return nil
}

// run builds and starts the provider.
func (m *clusterAPI) run(ctx context.Context) (err error) {
	m.cmd, err = ofCore("in-memory", "sigs.k8s.io/cluster-api/test/infrastructure/docker", "--concurrency=5").start(ctx, m.plane, m.dir)
	return err
}

// installedClusterAPI returns the cloud clusterapi, installed on the control plane.
func installedClusterAPI(t *testing.T) (*clusterAPI, *kit.Plane) {
	t.Helper()
	capi, ok := registered["clusterapi"].(*clusterAPI)
	if !ok {
		t.Fatal("there is no cloud clusterapi")
	}
	p, err := installed(capi)
	must(t, err)
	return capi, p
}

// A capiProvider is a provider for Cluster API, built from its module and run as it is.
type capiProvider struct {
	tools
	name, pkg  string
	flags, env []string
}

// ofCore is a provider of Cluster API itself.
func ofCore(name, pkg string, flags ...string) capiProvider {
	return capiProvider{tools: coreTools, name: name, pkg: pkg, flags: append([]string{
		"--health-addr=0", "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields", "--clustercache-concurrency=1",
	}, flags...)}
}

// run the provider until the end of a test.
func (c capiProvider) run(t *testing.T, p *kit.Plane) {
	t.Helper()
	cmd, err := c.start(t.Context(), p, t.TempDir())
	must(t, err)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// start the provider, with its files in a folder.
func (c capiProvider) start(ctx context.Context, p *kit.Plane, dir string) (*exec.Cmd, error) {
	program := filepath.Join(dir, c.name)
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, c.pkg)
	build.Dir, build.Env = c.dir(), append(os.Environ(), "CGO_ENABLED=0")
	if b, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", build, err, b)
	}
	if err := writeCertificate(dir); err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(p.Dir, "logs", "clusterapi-"+c.name+".log"))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, append([]string{
		"--kubeconfig=" + p.Kubeconfig, "--webhook-cert-dir=" + dir, "--webhook-port=" + strconv.Itoa(port), "--diagnostics-address=127.0.0.1:0", "--insecure-diagnostics",
	}, c.flags...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(append(os.Environ(), "POD_IP=127.0.0.1"), c.env...), log, log
	return cmd, cmd.Start()
}

// writeCertificate writes the certificate of the webhooks, which no API server calls.
func writeCertificate(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), DNSNames: []string{"localhost"}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	for name, b := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: cert}, "tls.key": {Type: "EC PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(b), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (m *clusterAPI) Close() {
	if m.stop != nil {
		m.stop()
		m.done.Wait()
	}
	if m.cmd != nil && m.cmd.Process != nil {
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait()
	}
	_ = os.RemoveAll(m.dir)
}

// machines returns the InfraMachines of a namespace, "" for all.
func (m *clusterAPI) machines(ctx context.Context, namespace string) ([]unstructured.Unstructured, error) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(devMachine.GroupVersion().WithKind("DevMachineList"))
	err := m.plane.Client.List(ctx, l, client.InNamespace(namespace))
	return l.Items, err
}

// boot boots the VMs that the provider reports as provisioned, and stops those that it deleted.
func (m *clusterAPI) boot(ctx context.Context) {
	booted := map[types.UID]bool{}
	for ctx.Err() == nil {
		found, err := m.machines(ctx, "")
		there := map[types.UID]bool{}
		for i := range found {
			o := &found[i]
			there[o.GetUID()] = true
			provisioned, _, _ := unstructured.NestedBool(o.Object, "status", "initialization", "provisioned")
			data := m.userData(ctx, o)
			if !provisioned || booted[o.GetUID()] || data == nil {
				continue
			}
			booted[o.GetUID()] = true
			providerID, _, _ := unstructured.NestedString(o.Object, "spec", "providerID")
			m.start(guest.Request{ID: idOfDevMachine(o), Name: o.GetName(), UserData: data, ProviderID: providerID})
		}
		for uid := range booted {
			if err == nil && !there[uid] {
				delete(booted, uid)
				m.end("clusterapi/" + string(uid))
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
}

func idOfDevMachine(o *unstructured.Unstructured) string { return "clusterapi/" + string(o.GetUID()) }

// userData returns the user data that the Machine of an InfraMachine refers to, nil if there is none.
func (m *clusterAPI) userData(ctx context.Context, o *unstructured.Unstructured) []byte {
	owner := metav1.GetControllerOf(o)
	if owner == nil {
		return nil
	}
	machine := &unstructured.Unstructured{}
	machine.SetGroupVersionKind(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
	if err := m.plane.Client.Get(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}, machine); err != nil {
		return nil
	}
	name, _, _ := unstructured.NestedString(machine.Object, "spec", "bootstrap", "dataSecretName")
	s := &corev1.Secret{}
	if err := m.plane.Client.Get(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: name}, s); err != nil {
		return nil
	}
	return s.Data["value"]
}

// Account returns a Cluster in the namespace of the fleet, whose configuration has a kubeconfig with the rights of
// rbac-provider-clusterapi.yaml.
func (m *clusterAPI) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	infra := object(devMachine.GroupVersion().String(), "DevCluster", "target", map[string]any{"backend": map[string]any{"inMemory": map[string]any{}}})
	infra.SetNamespace(f.Namespace)
	// The in-memory provider panics if there is no annotation. kubectl sets one.
	infra.SetAnnotations(map[string]string{"example.org/cluster": "target"})
	must(t, f.Client.Create(t.Context(), infra))
	return m.account(t, f, map[string]any{
		"clusterName": "target", "infraCluster": map[string]any{"kind": "DevCluster", "name": "target"},
		"infraMachineKinds": []any{map[string]any{"kind": devMachine.Kind}},
	})
}

// account returns a Cluster with a configuration, whose kubeconfig has the rights of devAccount.
func (m *clusterAPI) account(t *testing.T, f kit.Fleet, spec map[string]any) *clusterAPIAccount {
	t.Helper()
	a := &clusterAPIAccount{clusterAPI: m, liftedAccount: newLiftedAccount(t, f, "clusterapi", spec)}
	a.right = f.Control.CredentialsOf(t, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: devAccount}).Kubeconfig
	a.SetCredentials(t, CredentialsRight)
	return a
}

type clusterAPIAccount struct {
	*clusterAPI
	*liftedAccount
	right []byte
}

var _ OrphanAccount = &clusterAPIAccount{}

// Class returns the class of the example, with a VM of the in-memory provider.
func (a *clusterAPIAccount) Class(t *testing.T) *machinev1alpha1.MachineClass {
	t.Helper()
	c := classOf(t, a.fleet, "examples/clusterapi/machineclass.yaml", a.ProviderConfig())
	setForProvider(t, c, "infraMachine", map[string]any{
		"kind": devMachine.Kind,
		"spec": map[string]any{"backend": map[string]any{"inMemory": map[string]any{"vm": map[string]any{"provisioning": map[string]any{"startupDuration": "2s"}}}}},
	})
	return c
}

func (a *clusterAPIAccount) VMs(ctx context.Context) ([]VM, error) {
	found, err := a.machines(ctx, a.fleet.Namespace)
	var out []VM
	for i := range found {
		if o := &found[i]; o.GetDeletionTimestamp() == nil {
			out = append(out, VM{ID: o.GetLabels()[clusterapi.LabelVirtualMachine], Tags: o.GetAnnotations(), UserData: a.userData(ctx, o)})
		}
	}
	return out, err
}

// devRefusals are the words in which an API server refuses an InfraMachine, by class.
var devRefusals = map[fn.ErrorCode]admissionv1.Validation{
	fn.ErrorQuotaExceeded:    {Reason: ptr.To(metav1.StatusReasonForbidden), Message: "exceeded quota: vms, requested: count/devmachines=1, used: 3, limited: 3"},
	fn.ErrorInvalidRequest:   {Reason: ptr.To(metav1.StatusReasonInvalid), Message: "spec.backend: there is no such backend"},
	fn.ErrorPermissionDenied: {Reason: ptr.To(metav1.StatusReasonForbidden), Message: "the account may not create VMs"},
}

// Refuse has the API server refuse the InfraMachine of a Machine, as a webhook of a provider does.
func (a *clusterAPIAccount) Refuse(t *testing.T, machine string, code fn.ErrorCode) {
	t.Helper()
	name := "refuse-" + uuid.NewString()
	v := devRefusals[code]
	v.Expression = fmt.Sprintf("object.metadata.?annotations[?%q].orValue('') != %q", machinev1alpha1.TagMachine, machine)
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": a.fleet.Namespace}},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{devGroup}, APIVersions: []string{"*"}, Resources: []string{"devmachines"}},
			}}},
		},
		Validations: []admissionv1.Validation{v},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	must(t, a.fleet.Client.Create(t.Context(), policy))
	must(t, a.fleet.Client.Create(t.Context(), binding))
	a.awaitRefusal(t, machine)
	end := func() {
		_ = a.fleet.Client.Delete(context.Background(), binding)
		_ = a.fleet.Client.Delete(context.Background(), policy)
	}
	t.Cleanup(end)
	a.mend[machine] = end
}

// awaitRefusal waits until the API server has the policy.
func (a *clusterAPIAccount) awaitRefusal(t *testing.T, machine string) {
	t.Helper()
	for t.Context().Err() == nil {
		o := a.newMachine("probe", map[string]string{machinev1alpha1.TagMachine: machine})
		if err := a.fleet.Client.Create(t.Context(), o, client.DryRunAll); err != nil {
			return
		}
		time.Sleep(interval)
	}
}

func (a *clusterAPIAccount) newMachine(name string, tags map[string]string) *unstructured.Unstructured {
	o := object(devMachine.GroupVersion().String(), devMachine.Kind, name, map[string]any{"backend": map[string]any{"inMemory": map[string]any{}}})
	o.SetNamespace(a.fleet.Namespace)
	o.SetAnnotations(tags)
	return o
}

// Lose deletes an InfraMachine, and the Node of its VM as the cloud-controller-manager does it.
func (a *clusterAPIAccount) Lose(t *testing.T, id string) {
	t.Helper()
	found, err := a.machines(t.Context(), a.fleet.Namespace)
	must(t, err)
	for i := range found {
		if o := &found[i]; o.GetLabels()[clusterapi.LabelVirtualMachine] == id {
			must(t, a.fleet.Client.Delete(t.Context(), o))
			a.deleteNode(t, idOfDevMachine(o))
		}
	}
}

func (a *clusterAPIAccount) SetCredentials(t *testing.T, c Credentials) {
	t.Helper()
	kubeconfig := a.right
	if c == CredentialsWrong {
		kubeconfig = withoutToken(t, a.right)
	}
	a.setSecret(t, c, map[string]string{"kubeconfig": string(kubeconfig)})
}

// withoutToken returns a kubeconfig with a token that no API server knows.
func withoutToken(t *testing.T, kubeconfig []byte) []byte {
	t.Helper()
	config := map[string]any{}
	must(t, yaml.Unmarshal(kubeconfig, &config))
	config["users"] = []any{map[string]any{"name": "u", "user": map[string]any{"token": "of-another-cluster"}}}
	b, err := json.Marshal(config)
	must(t, err)
	return b
}

// CreateVM creates an InfraMachine that no Machine has, as it is left when its VirtualMachine is deleted by force.
func (a *clusterAPIAccount) CreateVM(t *testing.T, name string, tags map[string]string) string {
	t.Helper()
	o, id := a.newMachine(name, tags), uuid.NewString()
	o.SetLabels(map[string]string{
		clusterapi.LabelVirtualMachine: id, machinev1alpha1.TagInstallation: tags[machinev1alpha1.TagInstallation], "cluster.x-k8s.io/cluster-name": "target",
	})
	// Its provider had provisioned it.
	must(t, unstructured.SetNestedField(o.Object, "in-memory://"+name, "spec", "providerID"))
	must(t, a.fleet.Client.Create(t.Context(), o))
	must(t, a.fleet.Client.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"status":{"initialization":{"provisioned":true}}}`))))
	return id
}
