package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/operator"
	"github.com/drover-dev/drover/test/patience"
)

// underTest is the environment variable with the kubeconfig of an API server with its controllers.
// The test may change anything there. Crossplane is not needed.
const underTest = "KUBECONFIG_UNDER_TEST"

var (
	serverKind     = schema.GroupVersionKind{Group: "test.drover.dev", Version: "v1", Kind: "Server"}
	revisionKind   = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision"}
	definitionKind = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v2", Kind: "CompositeResourceDefinition"}
)

// env is one provider-drover, with one cluster as control and target cluster.
type env struct {
	*testing.T
	client.WithWatch
	cfg       *rest.Config
	namespace string
	// workloads is the namespace of pods. It outlives the other namespaces.
	workloads string
	// done is closed when provider-drover has ended, with the error ended.
	done  <-chan struct{}
	ended *error
}

func TestProviderDrover(t *testing.T) {
	path := os.Getenv(underTest)
	if path == "" {
		t.Skipf("%s names no kubeconfig: this test needs an API server of its own, which make integration gives it", underTest)
	}
	e := newEnv(t, path)
	e.installCRDs()
	e.installPipeline()
	e.makeNamespace(e.workloads)
	e.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.workloads, Name: "test"}})
	e.start(path)
	e.create(&clusterv1alpha1.ClusterProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: e.namespace},
		Spec: clusterv1alpha1.ClusterProviderConfigSpec{
			ProviderConfigSpec: clusterv1alpha1.ProviderConfigSpec{Credentials: clusterv1alpha1.Credentials{Source: clusterv1alpha1.CredentialsInjectedIdentity}},
			AllowedNamespaces:  []clusterv1alpha1.NamespacePattern{"*"},
		},
	})

	t.Run("AMachineFollowsItsNodeWithFewWrites", func(t *testing.T) { e.in(t).nodeLife() })
	t.Run("ADrainRespectsABudgetAndThenDeletesTheNode", func(t *testing.T) { e.in(t).drain() })
	t.Run("AJoinTokenAuthenticatesAndGoes", func(t *testing.T) { e.in(t).joinToken() })
	t.Run("ADeletedMachineKeepsItsOrder", func(t *testing.T) { e.in(t).machineOrder(e.background) })
	t.Run("ADeletedNamespaceKeepsItToo", func(t *testing.T) { e.in(t).machineOrder(e.withItsNamespace) })
	t.Run("AConfigIsKeptWhileItIsUsed", func(t *testing.T) { e.in(t).configInUse() })
}

func (e *env) nodeLife() {
	var writes atomic.Int32
	e.countWrites(&writes)
	m := e.machine("m")
	e.create(m)
	e.cloudCreates(m)
	e.eventually("the Machine waits for its Node", func() bool {
		return e.reason(m, "NodeReady") == machinev1alpha1.ReasonNodeNotJoined && m.Status.Phase == machinev1alpha1.MachineJoining
	})
	n := e.joinNode(m)
	e.eventually("the Node is Ready and reported", func() bool { return e.reason(m, "NodeReady") == machinev1alpha1.ReasonNodeReady })
	e.eventually("the Node has what the Machine wants", func() bool {
		e.get(n)
		return n.Labels["team"] == "blue" && len(n.Spec.Taints) == 1 && n.Spec.Taints[0].Key == "team"
	})
	if m.Status.NodeRef == nil || m.Status.NodeRef.UID != string(n.UID) || m.Status.Phase != machinev1alpha1.MachineRunning {
		e.Errorf("status %+v", m.Status)
	}
	// A write each for: created, finalizer, a status for the requested VM, the providerID in spec
	// and in status, and a status for Ready. There is one more if the Node is observed before it is
	// Ready.
	if got := writes.Load(); got > 7 {
		e.Errorf("%d writes until Ready, want 7 at most", got)
	}
	e.Logf("%d writes of the Machine until Ready, its creation included", writes.Load())
	e.patch(m, `{"spec":{"metadata":null,"taints":null}}`)
	e.eventually("what is not wanted any more is gone", func() bool {
		e.get(n)
		_, labelled := n.Labels["team"]
		return !labelled && len(n.Spec.Taints) == 0 && n.Labels["own"] == "label"
	})
	e.must(e.Delete(e.Context(), n))
	e.eventually("the loss of the Node is reported", func() bool { return e.reason(m, "NodeReady") == machinev1alpha1.ReasonNodeGone })
	e.must(e.Delete(e.Context(), m))
	e.cloudDeletes(m)
	e.gone(m)
}

func (e *env) drain() {
	m := e.machine("m")
	e.create(m)
	e.cloudCreates(m)
	n := e.joinNode(m)
	e.eventually("the Node is Ready", func() bool { return e.reason(m, "NodeReady") == machinev1alpha1.ReasonNodeReady })
	web, free := e.pod("web", n), e.pod("free", n)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: e.workloads, Name: "web"}}
	one := intstr.FromInt32(1)
	budget.Spec = policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	e.create(budget)
	e.eventually("the budget is counted", func() bool { e.get(budget); return budget.Status.CurrentHealthy == 1 })

	e.must(e.Delete(e.Context(), m))
	e.eventually("the budget blocks one pod, and the status says so", func() bool {
		e.get(m)
		d := m.Status.Drain
		return d != nil && d.Remaining == 2 && len(d.Pods) == 2 && strings.Contains(d.Pods[0].Reason, "PodDisruptionBudget") && d.Pods[1].Reason == machinev1alpha1.ReasonPodTerminating
	})
	e.get(free)
	e.get(web)
	e.get(n)
	if free.DeletionTimestamp == nil || web.DeletionTimestamp != nil || !n.Spec.Unschedulable {
		e.Errorf("free deleted %v, web deleted %v, unschedulable %v", free.DeletionTimestamp, web.DeletionTimestamp, n.Spec.Unschedulable)
	}
	e.kubeletEnds(free)
	e.must(e.Delete(e.Context(), budget))
	e.eventually("without the budget the pod is evicted", func() bool { e.get(web); return web.DeletionTimestamp != nil })
	e.get(n)
	e.kubeletEnds(web)
	e.gone(n)
	e.cloudDeletes(m)
	e.gone(m)
}

func (e *env) joinToken() {
	m := e.machine("m")
	e.create(m)
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: names.UserData(m.Name, m.UID)}}
	e.eventually("the token is published", func() bool { return e.tryGet(s) && len(s.Data[clusterv1alpha1.ConnectionToken]) > 0 })
	token := string(s.Data[clusterv1alpha1.ConnectionToken])
	if !strings.Contains(string(s.Data[clusterv1alpha1.ConnectionUserData]), token) {
		e.Error("the user data lacks the token")
	}

	kubelet, err := client.New(&rest.Config{
		Host: string(s.Data[clusterv1alpha1.ConnectionServer]), BearerToken: token,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.Data[clusterv1alpha1.ConnectionCA]},
	}, client.Options{Scheme: clientgoscheme.Scheme, Mapper: e.RESTMapper()})
	e.must(err)
	id, half, _ := strings.Cut(token, ".")
	e.eventually("the API server knows the token", func() bool {
		who := &authv1.SelfSubjectReview{}
		return kubelet.Create(e.Context(), who) == nil && who.Status.UserInfo.Username == "system:bootstrap:"+id
	})
	v := e.vmOf(m)
	e.eventually("the VM is requested", func() bool { return e.tryGet(v) })
	e.get(m)
	for _, o := range []any{m, v} {
		if b, err := json.Marshal(o); err != nil || strings.Contains(string(b), half) {
			e.Errorf("the token stands in %s, %v", b, err)
		}
	}
	bootstrap := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + id}}
	e.get(bootstrap)
	e.must(e.Delete(e.Context(), m))
	e.cloudDeletes(m)
	e.gone(m)
	e.gone(bootstrap)
	e.gone(s)
}

// machineOrder deletes a Machine in some way, and checks each step of its deletion.
func (e *env) machineOrder(del func(*env, client.Object)) {
	set, m := e.set("s"), e.machine("m")
	e.create(set)
	own(m, set)
	m.SetLabels(map[string]string{machinev1alpha1.LabelSet: "s"})
	e.create(m)
	v := e.cloudCreates(m)
	n := e.joinNode(m)
	e.eventually("the Node is Ready", func() bool { return e.reason(m, "NodeReady") == machinev1alpha1.ReasonNodeReady })
	e.eventually("Machine and set are held", func() bool { e.get(m); e.get(set); return held(m) && held(set) })
	p := e.pod("web", n)

	del(e, set)
	e.eventually("the Machine says that it waits for the drain", func() bool {
		e.get(m)
		return m.Status.Phase == machinev1alpha1.MachineTerminating && m.Status.LastOperation != nil && m.Status.LastOperation.Type == machinev1alpha1.OperationDrain
	})
	e.eventually("the pod is evicted", func() bool { return !e.tryGet(p) || p.GetDeletionTimestamp() != nil })
	e.get(v)
	if !slices.Contains(v.GetFinalizers(), machinev1alpha1.FinalizerDrain) {
		e.Error("the VM was released while its Node is drained")
	}
	e.kubeletEnds(p)
	e.gone(n)
	e.eventually("the VM is deleted and released", func() bool {
		e.get(v)
		return v.GetDeletionTimestamp() != nil && !slices.Contains(v.GetFinalizers(), machinev1alpha1.FinalizerDrain) && v.GetAnnotations()[machinev1alpha1.AnnotationReleased] != ""
	})
	e.eventually("the Machine says that it waits for the VM", func() bool {
		e.get(m)
		return m.Status.LastOperation.Type == machinev1alpha1.OperationDelete
	})
	e.get(set)
	e.cloudDeletes(m)
	e.gone(v)
	e.gone(m)
	e.gone(set)
}

func (e *env) background(in *env, obj client.Object) {
	in.must(in.Delete(in.Context(), obj, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

func (e *env) withItsNamespace(in *env, _ client.Object) {
	in.must(in.Delete(in.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in.namespace}}))
}

func (e *env) configInUse() {
	pc := &clusterv1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "c"}}
	pc.Spec.Credentials = clusterv1alpha1.Credentials{Source: clusterv1alpha1.CredentialsSecret, SecretRef: &clusterv1alpha1.SecretKeySelector{Name: "k", Key: "kubeconfig"}}
	e.create(pc)
	reachable := func() xpv2.Condition { e.get(pc); return pc.Status.GetCondition(clusterv1alpha1.ConditionReachable) }
	e.eventually("the missing Secret is reported", func() bool {
		return reachable().Reason == clusterv1alpha1.ReasonCredentialsMissing && strings.Contains(reachable().Message, e.namespace+"/k")
	})
	kubeconfig, err := os.ReadFile(os.Getenv(underTest))
	e.must(err)
	e.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "k"}, Data: map[string][]byte{"kubeconfig": kubeconfig}})
	e.eventually("a new Secret is noticed", func() bool { return reachable().Status == corev1.ConditionTrue && pc.Status.Version != "" })

	m := e.machine("m")
	m.Spec.ClusterRef = machinev1alpha1.ClusterReference{Kind: "ProviderConfig", Name: "c"}
	e.create(m)
	v := e.vmOf(m)
	e.eventually("the Machine uses it", func() bool { return e.tryGet(v) })
	e.must(e.Delete(e.Context(), pc))
	e.eventually("an event says why it stays", func() bool {
		list := &corev1.EventList{}
		e.must(e.List(e.Context(), list, client.InNamespace(e.namespace)))
		return slices.ContainsFunc(list.Items, func(ev corev1.Event) bool {
			return ev.Reason == "InUse" && strings.Contains(ev.Message, "1 Machines")
		})
	})
	e.get(pc)
	e.must(e.Delete(e.Context(), m))
	e.cloudDeletes(m)
	e.gone(m)
	e.gone(pc)
}

// Helpers of the tests above.

func newEnv(t *testing.T, path string) *env {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS, cfg.Burst = 100, 200
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1alpha1.AddToScheme, machinev1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	e := &env{T: t, WithWatch: c, cfg: cfg, namespace: fmt.Sprintf("drover-test-%d", time.Now().UnixNano()), ended: new(error)}
	e.workloads = e.namespace
	t.Cleanup(func() {
		_ = c.Delete(context.Background(), &clusterv1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: e.namespace}})
	})
	return e
}

// in returns an env with a namespace of its own for a subtest.
func (e *env) in(t *testing.T) *env {
	t.Helper()
	name := strings.ToLower(t.Name()[strings.LastIndex(t.Name(), "/")+1:])
	sub := &env{T: t, WithWatch: e.WithWatch, cfg: e.cfg, namespace: e.namespace + "-" + name[:12], workloads: e.workloads, done: e.done, ended: e.ended}
	sub.makeNamespace(sub.namespace)
	return sub
}

func (e *env) makeNamespace(name string) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	e.create(ns)
	e.Cleanup(func() { _ = e.Delete(context.Background(), ns) })
}

func (e *env) start(kubeconfig string) {
	e.Setenv("KUBECONFIG", kubeconfig)
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	e.must(err)
	e.must(probe.Close())
	ctx, stop := context.WithCancel(e.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		*e.ended = operator.Run(ctx, newOperator(&flags{InjectedIdentityFor: []string{e.namespace}, AllowTargetNetworks: []string{"127.0.0.0/8"}}),
			operator.Flags{MaxReconcileRate: 100, Concurrency: 10, Poll: time.Minute, Sync: time.Hour, HealthProbeBindAddress: probe.Addr().String()})
	}()
	e.done = done
	e.Cleanup(func() {
		stop()
		if <-done; *e.ended != nil {
			e.Errorf("provider-drover ended with: %v", *e.ended)
		}
	})
}

func (e *env) installCRDs() {
	files, err := filepath.Glob("../../package/provider-drover/crds/*.yaml")
	e.must(err)
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, f := range files {
		b, err := os.ReadFile(f)
		e.must(err)
		crd := &apiextensionsv1.CustomResourceDefinition{}
		e.must(yaml.Unmarshal(b, crd))
		crds = append(crds, crd)
	}
	// NodePools are omitted: the provider is upgraded before a Configuration that has them.
	for kind, plural := range map[schema.GroupVersionKind]string{
		machinev1alpha1.MachineDeploymentGroupVersionKind: "machinedeployments", machinev1alpha1.MachineSetGroupVersionKind: "machinesets",
	} {
		crds = append(crds, anything(kind, plural, apiextensionsv1.NamespaceScoped))
	}
	for kind, plural := range map[schema.GroupVersionKind]string{
		revisionKind: "compositionrevisions", definitionKind: "compositeresourcedefinitions",
		{Group: "pkg.crossplane.io", Version: "v1", Kind: "FunctionRevision"}: "functionrevisions",
	} {
		crds = append(crds, anything(kind, plural, apiextensionsv1.ClusterScoped))
	}
	crds = append(crds, server())
	for _, crd := range crds {
		// On a control plane with Crossplane these CRDs exist already.
		e.must(client.IgnoreAlreadyExists(e.Create(e.Context(), crd)))
		e.eventually(crd.GetName()+" is served", func() bool {
			e.get(crd)
			return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
				return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
			})
		})
	}
}

// anything returns a CRD that accepts any object.
func anything(kind schema.GroupVersionKind, plural string, scope apiextensionsv1.ResourceScope) *apiextensionsv1.CustomResourceDefinition {
	yes := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + kind.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind.Kind, ListKind: kind.Kind + "List", Plural: plural, Singular: strings.ToLower(kind.Kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: kind.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}},
			}},
		},
	}
}

// server returns the CRD of a kind of VM.
func server() *apiextensionsv1.CustomResourceDefinition {
	crd := anything(serverKind, "servers", apiextensionsv1.NamespaceScoped)
	yes, text := true, apiextensionsv1.JSONSchemaProps{Type: "string"}
	free := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"forProvider":        {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": text, "size": text, "userDataSecretRef": free}},
			"managementPolicies": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text}},
			"providerConfigRef":  free,
		}},
		"status": free,
	}}
	return crd
}

// revision is a revision of the Composition of Machines, with VMs of the kind Server.
const revision = `
apiVersion: apiextensions.crossplane.io/v1
kind: CompositionRevision
metadata:
  name: machine-test-1
  labels: {provider: test, crossplane.io/composition-name: machine-test}
spec:
  revision: 1
  compositeTypeRef: {apiVersion: machine.drover.dev/v1alpha1, kind: Machine}
  mode: Pipeline
  pipeline:
    - step: bootstrap
      functionRef: {name: drover-function-drover}
      input: {apiVersion: fn.drover.dev/v1alpha1, kind: Bootstrap}
    - step: infrastructure
      functionRef: {name: drover-function-drover}
      input:
        apiVersion: fn.drover.dev/v1alpha1
        kind: Infrastructure
        provider: test
        virtualMachine:
          apiVersion: test.drover.dev/v1
          kind: Server
          fields:
            - {path: spec.forProvider.name, value: name}
            - {path: spec.forProvider.userDataSecretRef, value: '{"name": userData.secretName, "key": userData.key}'}
        status:
          providerID: vm.status.?providerID.orValue("")
    - step: lifecycle
      functionRef: {name: drover-function-drover}
      input: {apiVersion: fn.drover.dev/v1alpha1, kind: Lifecycle}
`

// installPipeline creates the objects that Crossplane creates from Drover's package.
func (e *env) installPipeline() {
	definition, err := os.ReadFile("../../apis/machine/xrds/machine.drover.dev_orphancollectors.yaml")
	e.must(err)
	for _, text := range []string{revision, string(definition)} {
		u := &unstructured.Unstructured{}
		e.must(yaml.Unmarshal([]byte(text), &u.Object))
		e.must(client.IgnoreAlreadyExists(e.Create(e.Context(), u)))
		e.Cleanup(func() { _ = e.Delete(context.Background(), u) })
	}
}

// machine returns a Machine, and creates its class.
func (e *env) machine(name string) *machinev1alpha1.Machine {
	c := &machinev1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "c"}}
	c.Spec.Provider = "test"
	c.Spec.ForProvider = &runtime.RawExtension{Raw: []byte(`{"size":"small"}`)}
	e.must(client.IgnoreAlreadyExists(e.Create(e.Context(), c)))
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name}}
	m.Spec.ClassRef.Name, m.Spec.Version = c.Name, "v1.35.4"
	m.Spec.ClusterRef = machinev1alpha1.ClusterReference{Kind: "ClusterProviderConfig", Name: e.workloads}
	m.Spec.Metadata.Labels = map[string]string{"team": "blue"}
	m.Spec.Taints = []machinev1alpha1.Taint{{Key: "team", Effect: "NoSchedule"}}
	m.Spec.Drain.Timeout.Duration = time.Hour
	return m
}

func (e *env) set(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
		"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}, "spec": map[string]any{"classRef": map[string]any{"name": "c"}, "version": "v1.35.4"}},
	}}}
	u.SetGroupVersionKind(machinev1alpha1.MachineSetGroupVersionKind)
	u.SetNamespace(e.namespace)
	u.SetName(name)
	return u
}

// vmOf returns the VM resource of a Machine, with only its name.
func (e *env) vmOf(m *machinev1alpha1.Machine) *unstructured.Unstructured {
	v := &unstructured.Unstructured{}
	v.SetGroupVersionKind(serverKind)
	v.SetNamespace(m.Namespace)
	v.SetName(names.OfMachine(m.Name, m.UID))
	return v
}

func providerID(m *machinev1alpha1.Machine) string { return "test:///" + string(m.UID) }

// finalizerCloud is the finalizer of the VM's provider.
const finalizerCloud = "test.drover.dev/cloud"

// cloudCreates simulates the creation of a Machine's VM, which is then running.
func (e *env) cloudCreates(m *machinev1alpha1.Machine) *unstructured.Unstructured {
	v := e.vmOf(m)
	e.eventually("the VM is requested", func() bool { return e.tryGet(v) })
	if !slices.Contains(v.GetFinalizers(), machinev1alpha1.FinalizerDrain) || !metav1.IsControlledBy(v, m) {
		e.Errorf("the VM has the finalizers %v and the owners %v", v.GetFinalizers(), v.GetOwnerReferences())
	}
	e.patch(v, fmt.Sprintf(`{"metadata":{"annotations":{"crossplane.io/external-name":"vm","crossplane.io/external-create-succeeded":%q},"finalizers":%s}}`,
		time.Now().UTC().Format(time.RFC3339), `["`+strings.Join(append(v.GetFinalizers(), finalizerCloud), `","`)+`"]`))
	now := time.Now().UTC().Format(time.RFC3339)
	e.must(e.Status().Patch(e.Context(), v, client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(
		`{"status":{"providerID":%q,"conditions":[{"type":"Synced","status":"True","reason":"ReconcileSuccess","lastTransitionTime":%q},{"type":"Ready","status":"True","reason":"Available","lastTransitionTime":%q}]}}`,
		providerID(m), now, now)))))
	return v
}

// cloudDeletes simulates the deletion of a Machine's VM, once the VM resource may be deleted.
func (e *env) cloudDeletes(m *machinev1alpha1.Machine) {
	v := e.vmOf(m)
	e.eventually("the VM is released", func() bool {
		e.get(v)
		return v.GetDeletionTimestamp() != nil && !slices.Contains(v.GetFinalizers(), machinev1alpha1.FinalizerDrain)
	})
	e.patch(v, `{"metadata":{"finalizers":null}}`)
}

func (e *env) patch(obj client.Object, patch string) {
	e.Helper()
	e.must(e.Patch(e.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func own(obj, owner client.Object) {
	yes := true
	gvk := owner.GetObjectKind().GroupVersionKind()
	obj.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes,
	}})
}

func held(obj client.Object) bool {
	return slices.Contains(obj.GetFinalizers(), machinev1alpha1.FinalizerTerminator)
}

// joinNode simulates the kubelet of the Machine's VM until the test ends.
func (e *env) joinNode(m *machinev1alpha1.Machine) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:   names.OfMachine(m.Name, m.UID),
			Labels: map[string]string{"own": "label", clusterv1alpha1.LabelJoinToken: string(m.UID)},
		},
		Spec: corev1.NodeSpec{ProviderID: providerID(m)},
	}
	e.create(n)
	since := metav1.NewTime(time.Now().Truncate(time.Second))
	beat := func(ctx context.Context) error {
		n := n.DeepCopy()
		was := n.DeepCopy()
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(), LastTransitionTime: since}}
		return e.Status().Patch(ctx, n, client.StrategicMergeFrom(was))
	}
	e.must(beat(e.Context()))
	ctx := e.Context()
	go func() {
		for t := time.NewTicker(5 * time.Second); ; {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				_ = beat(ctx) // The Node may be deleted.
			}
		}
	}()
	e.Cleanup(func() { _ = e.Delete(context.Background(), n) })
	return n
}

func (e *env) pod(name string, n *corev1.Node) *corev1.Pod {
	grace, no := int64(1), false
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.workloads, Name: name, Labels: map[string]string{"app": name}}, Spec: corev1.PodSpec{
		NodeName: n.GetName(), ServiceAccountName: "test", AutomountServiceAccountToken: &no, TerminationGracePeriodSeconds: &grace,
		Containers: []corev1.Container{{Name: "c", Image: "c"}}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}}
	e.create(p)
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	e.must(e.Status().Update(e.Context(), p))
	return p
}

func (e *env) kubeletEnds(p *corev1.Pod) {
	e.must(client.IgnoreNotFound(e.Delete(e.Context(), p, client.GracePeriodSeconds(0))))
}

func (e *env) countWrites(n *atomic.Int32) {
	w, err := e.Watch(e.Context(), &machinev1alpha1.MachineList{}, client.InNamespace(e.namespace))
	e.must(err)
	e.Cleanup(w.Stop)
	go func() {
		for range w.ResultChan() {
			n.Add(1)
		}
	}()
}

// reason returns the reason of a condition of a Machine.
func (e *env) reason(m *machinev1alpha1.Machine, condition string) string {
	e.get(m)
	if c := meta.FindStatusCondition(m.Status.Conditions, condition); c != nil {
		return c.Reason
	}
	return ""
}

func (e *env) create(obj client.Object) { e.Helper(); e.must(e.Create(e.Context(), obj)) }

func (e *env) get(obj client.Object) {
	e.Helper()
	e.must(e.Get(e.Context(), client.ObjectKeyFromObject(obj), obj))
}

func (e *env) tryGet(obj client.Object) bool {
	e.Helper()
	err := e.Get(e.Context(), client.ObjectKeyFromObject(obj), obj)
	e.must(client.IgnoreNotFound(err))
	return err == nil
}

func (e *env) gone(obj client.Object) {
	e.Helper()
	e.eventually(fmt.Sprintf("%T %s is gone", obj, obj.GetName()), func() bool {
		return kerrors.IsNotFound(e.Get(e.Context(), client.ObjectKeyFromObject(obj), obj))
	})
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func (e *env) eventually(what string, ok func() bool) {
	e.Helper()
	patience.Until(e, what, func() bool {
		select {
		case <-e.done:
			e.Fatalf("provider-drover ended before %s: %v", what, *e.ended)
		default:
		}
		return ok()
	})
}
