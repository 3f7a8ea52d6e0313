package clusterapi

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpfake "github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/native/nativetest"
)

const (
	bootstrapGroup = "bootstrap.cluster.x-k8s.io"
	// madeUserData has a token, which no object but a Secret may have.
	madeUserData = "#cloud-config\njoin: abcdef.0123456789abcdef\n"
)

// bootstrapRules are the rules of the contract of BootstrapConfigs that concern the owner of one, with their words in
// https://cluster-api.sigs.k8s.io/developer/providers/contracts/bootstrap-config.
var bootstrapRules = []struct {
	rule string
	test func(*testing.T, release)
}{
	{"A BootstrapConfig MUST be namespace-scoped", configIsInTheNamespace},
	{"Providers MUST set the label of the contract on the CRD of a BootstrapConfig", configNeedsAContract},
	{"The template MUST be named as the BootstrapConfig, followed by Template", configIsMadeFromTheTemplate},
	{"Each BootstrapConfig MUST surface the name of its Secret in status.dataSecretName", secretIsNamed},
	{"The Secret must have a controller owner reference to the BootstrapConfig", secretIsOwned},
	{"The Secret must have the key value", secretHasAValue},
	{"Each BootstrapConfig MUST report that its Secret is created", secretIsReported},
	{"Providers SHOULD implement conditions of a BootstrapConfig", configConditions},
	{"Terminal failures of a BootstrapConfig have no special treatment since v1beta2", configFails},
	{"Providers SHOULD implement the pause of a BootstrapConfig", configIsPaused},
	{"The BootstrapConfig has a Machine as its owner, and that a Cluster", configIsOwned},
	{"The Cluster of a BootstrapConfig reports that its infrastructure and its control plane exist", clusterIsReported},
	{"The Machine has no dataSecretName before the user data exists", machineHasNoSecret},
	{"The Machine reports its Node, so that no token is renewed any more", machineReportsTheNode},
	{"A deleted BootstrapConfig has a Machine as its owner until it is gone", configIsDeletedFirst},
}

// TestTheBootstrapContract has a row for each rule, with each version of the contract.
func TestTheBootstrapContract(t *testing.T) {
	for _, r := range bootstrapRules {
		t.Run(r.rule, func(t *testing.T) { each(t, r.test) })
	}
}

func TestTheDocsHaveEachRuleOfBootstraps(t *testing.T) {
	b, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range bootstrapRules {
		if !strings.Contains(string(b), "| "+r.rule+" |") {
			t.Errorf("%s: no row for the rule %q", docs, r.rule)
		}
	}
}

// A school is a cluster with a bootstrap provider that follows the contract to the letter, and a Bootstrap.
type school struct {
	*testing.T
	release
	// there is the cluster of the provider, and kube that of Drover.
	there, kube client.WithWatch
	reconciler  reconcile.Reconciler
	now         time.Time
}

func (s *school) kind(k string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: bootstrapGroup, Version: "v1", Kind: k}
}

func newSchool(t *testing.T, c release) *school {
	t.Helper()
	s := &school{T: t, release: c, now: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	remote := runtime.NewScheme()
	s.must(clientgoscheme.AddToScheme(remote))
	s.must(extv1.AddToScheme(remote))
	b := fake.NewClientBuilder().WithScheme(remote).
		WithIndex(&coordinationv1.Lease{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} })
	for _, gvk := range []schema.GroupVersionKind{c.core.coreKind("Cluster"), c.core.coreKind("Machine"), s.kind("LabConfig"), s.kind("LabConfigTemplate")} {
		o := newObject(gvk, "", "")
		b = b.WithStatusSubresource(o)
		remote.AddKnownTypeWithName(gvk, o)
		remote.AddKnownTypeWithName(gvk.GroupVersion().WithKind(gvk.Kind+"List"), &unstructured.UnstructuredList{})
	}
	b = b.WithObjects(c.crds(bootstrapGroup, "labconfigs", "labconfigtemplates")...)
	s.there = b.Build()
	template := newObject(s.kind("LabConfigTemplate"), nativetest.Namespace, "workers")
	template.Object["spec"] = map[string]any{"template": map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"team": "a"}, "annotations": map[string]any{"note": "b"}},
		"spec":     map[string]any{"size": "small"},
	}}
	s.must(s.there.Create(s.Context(), template))

	local := runtime.NewScheme()
	s.must(clientgoscheme.AddToScheme(local))
	s.must(v1alpha1.AddToScheme(local))
	pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	pc.Spec.ClusterName, pc.Spec.ControlPlaneEndpoint = clusterName, &v1alpha1.Endpoint{Host: "10.0.0.1", Port: 6443}
	pc.Spec.BootstrapConfigKinds = []v1alpha1.BootstrapConfigKind{{APIGroup: bootstrapGroup, Kind: "LabConfig"}}
	pc.Spec.Credentials.Source = v1alpha1.CredentialsInjectedIdentity
	bootstrap := &v1alpha1.Bootstrap{ObjectMeta: metav1.ObjectMeta{
		Namespace: nativetest.Namespace, Name: "m-4v27w-bootstrap", UID: "b-uid", CreationTimestamp: metav1.NewTime(s.now),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "machine.drover.dev/v1alpha1", Kind: "Machine", Name: "m", UID: "m-uid", Controller: ptr.To(true)}},
	}}
	bootstrap.Spec.ProviderConfigReference = &xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "c"}
	bootstrap.Spec.WriteConnectionSecretToReference = &xpv2.LocalSecretReference{Name: "m-4v27w-bootstrap-data"}
	bootstrap.Spec.ManagementPolicies = xpv2.ManagementPolicies{xpv2.ManagementActionAll}
	bootstrap.Spec.ForProvider = v1alpha1.BootstrapParameters{
		TemplateRef: v1alpha1.TemplateReference{APIGroup: bootstrapGroup, Kind: "LabConfigTemplate", Name: "workers"}, Version: ptr.To("v1.35.4"), FailureDomain: ptr.To("zone-a"),
	}
	s.kube = fake.NewClientBuilder().WithScheme(local).WithStatusSubresource(bootstrap).WithObjects(pc, bootstrap).Build()
	con := newConnector(s.kube, func(credentials) (client.Client, error) { return s.there, nil }, &mr.Again{}, func() time.Time { return s.now })
	s.reconciler = managed.NewReconciler(&xpfake.Manager{Client: s.kube, Scheme: local}, resource.ManagedKind(v1alpha1.BootstrapGroupVersionKind),
		append([]managed.ReconcilerOption{managed.WithTypedExternalConnector(con), managed.WithManagementPolicies()}, bootstrapOptions()...)...)
	return s
}

func (s *school) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// run reconciles a few times, as the controller does it within seconds.
func (s *school) run() *v1alpha1.Bootstrap {
	s.Helper()
	for range 5 {
		_, err := s.reconciler.Reconcile(s.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: nativetest.Namespace, Name: "m-4v27w-bootstrap"}})
		s.must(err)
	}
	return s.bootstrap()
}

func (s *school) bootstrap() *v1alpha1.Bootstrap {
	b := &v1alpha1.Bootstrap{}
	if err := s.kube.Get(s.Context(), types.NamespacedName{Namespace: nativetest.Namespace, Name: "m-4v27w-bootstrap"}, b); err != nil {
		s.must(client.IgnoreNotFound(err))
		return nil
	}
	return b
}

func (s *school) get(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	o := newObject(gvk, nativetest.Namespace, name)
	if err := s.there.Get(s.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		s.must(client.IgnoreNotFound(err))
		return nil
	}
	return o
}

func (s *school) config() *unstructured.Unstructured {
	return s.get(s.kind("LabConfig"), "m-4v27w-bootstrap")
}

func (s *school) machine() *unstructured.Unstructured {
	return s.get(s.core.coreKind("Machine"), "m-4v27w-bootstrap")
}

// report sets the status of the BootstrapConfig.
func (s *school) report(status map[string]any) {
	s.Helper()
	o := s.config()
	if o == nil {
		s.Fatal("there is no BootstrapConfig")
	}
	o.Object["status"] = status
	s.must(s.there.Status().Update(s.Context(), o))
}

func (s *school) done() map[string]any {
	if s.contract == v1beta1 {
		return map[string]any{"ready": true, "dataSecretName": "data"}
	}
	return map[string]any{"initialization": map[string]any{"dataSecretCreated": true}, "dataSecretName": "data"}
}

// teach has the provider make the user data.
func (s *school) teach(change func(*corev1.Secret)) {
	s.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: nativetest.Namespace, Name: "data", Labels: map[string]string{labelCluster: clusterName}, OwnerReferences: []metav1.OwnerReference{ownedBy(s.config())}},
		Data:       map[string][]byte{"value": []byte(madeUserData), "format": []byte("cloud-config")},
	}
	if change != nil {
		change(secret)
	}
	s.must(s.there.Create(s.Context(), secret))
	s.report(s.done())
}

// published returns the data of the Secret that Drover reads.
func (s *school) published() map[string][]byte {
	secret := &corev1.Secret{}
	s.must(client.IgnoreNotFound(s.kube.Get(s.Context(), types.NamespacedName{Namespace: nativetest.Namespace, Name: "m-4v27w-bootstrap-data"}, secret)))
	return secret.Data
}

func (s *school) wantProblem(b *v1alpha1.Bootstrap, reason, text string) {
	s.Helper()
	p := b.Status.AtProvider.Problem
	if p == nil || p.Reason != reason || !strings.Contains(p.Message, text) {
		s.Errorf("problem %+v, want %s: %s", p, reason, text)
	}
	if b.Status.AtProvider.Ready || len(s.published()) > 0 {
		s.Errorf("ready %t, published %d keys", b.Status.AtProvider.Ready, len(s.published()))
	}
	if b.Status.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue {
		s.Error("the condition Ready is True")
	}
	if p != nil && strings.Contains(p.Message, "abcdef.") {
		s.Errorf("the problem has a token: %s", p.Message)
	}
}

func configIsInTheNamespace(t *testing.T, c release) {
	s := newSchool(t, c)
	s.run()
	if o, m := s.config(), s.machine(); o == nil || m == nil || s.get(c.core.coreKind("Cluster"), clusterName) == nil {
		t.Errorf("config %v, machine %v", o, m)
	}
}

func configNeedsAContract(t *testing.T, c release) {
	for _, plural := range []string{"labconfigs", "labconfigtemplates"} {
		s := newSchool(t, c)
		crd := &extv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + "." + bootstrapGroup}}
		s.must(s.there.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
		crd.Labels = nil
		s.must(s.there.Update(t.Context(), crd))
		s.wantProblem(s.run(), machinev1alpha1.ReasonBootstrapTemplateInvalid, "the CRD "+crd.Name+" has neither of the labels cluster.x-k8s.io/v1beta2 and cluster.x-k8s.io/v1beta1")
		s = newSchool(t, c)
		s.must(s.there.Delete(t.Context(), crd))
		s.wantProblem(s.run(), machinev1alpha1.ReasonBootstrapTemplateInvalid, "the API server has no CRD "+crd.Name)
	}
}

func configIsMadeFromTheTemplate(t *testing.T, c release) {
	s := newSchool(t, c)
	s.run()
	o := s.config()
	if stringAt(o, "spec", "size") != "small" || o.GetLabels()["team"] != "a" || o.GetAnnotations()["note"] != "b" || o.GetLabels()[labelCluster] != clusterName ||
		o.GetAnnotations()[annotationClonedName] != "workers" || o.GetAnnotations()[annotationClonedGroup] != "LabConfigTemplate."+bootstrapGroup {
		t.Errorf("the BootstrapConfig is %v", o.Object)
	}
}

func secretIsNamed(t *testing.T, c release) {
	s := newSchool(t, c)
	if b := s.run(); b.Status.AtProvider.Ready || !strings.HasPrefix(b.Status.AtProvider.Waiting, "waiting for LabConfig ns/m-4v27w-bootstrap: ") {
		t.Errorf("%+v", b.Status.AtProvider)
	}
	s.teach(nil)
	b := s.run()
	if got := string(s.published()["value"]); got != madeUserData || string(s.published()["format"]) != "cloud-config" || !b.Status.AtProvider.Ready {
		t.Errorf("published %q, status %+v", got, b.Status.AtProvider)
	}
	text, err := runtime.DefaultUnstructuredConverter.ToUnstructured(b)
	s.must(err)
	if o := (&unstructured.Unstructured{Object: text}); strings.Contains(stringOf(t, o), "abcdef.") {
		t.Error("the Bootstrap has the token")
	}
}

func stringOf(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	b, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func secretIsOwned(t *testing.T, c release) {
	s := newSchool(t, c)
	s.run()
	// The kubeconfig of a Cluster is a Secret of the same form.
	s.teach(func(secret *corev1.Secret) { secret.OwnerReferences = nil })
	s.wantProblem(s.run(), machinev1alpha1.ReasonBootstrapConfigFailed, "metadata.ownerReferences must have the LabConfig as the controller")
}

func secretHasAValue(t *testing.T, c release) {
	for name, tc := range map[string]struct {
		change func(*corev1.Secret)
		want   string
	}{
		"NoValue":       {func(s *corev1.Secret) { delete(s.Data, "value") }, `Secret ns/data: has no key "value"`},
		"UnknownFormat": {func(s *corev1.Secret) { s.Data["format"] = []byte("talos") }, `Secret ns/data, key "format": invalid value "talos": must be cloud-config or ignition`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSchool(t, c)
			s.run()
			s.teach(tc.change)
			s.wantProblem(s.run(), machinev1alpha1.ReasonBootstrapConfigFailed, tc.want)
		})
	}
}

func secretIsReported(t *testing.T, c release) {
	s := newSchool(t, c)
	s.run()
	s.teach(nil)
	status := s.done()
	delete(status, "ready")
	delete(status, "initialization")
	s.report(status)
	if b := s.run(); b.Status.AtProvider.Ready || len(s.published()) > 0 {
		t.Error("the user data was read before its provider had completed it")
	}
	s.report(s.done())
	if b := s.run(); !b.Status.AtProvider.Ready {
		t.Errorf("%+v", b.Status.AtProvider)
	}
}

func configConditions(t *testing.T, c release) {
	for name, tc := range map[string]struct {
		condition      map[string]any
		waiting, fails string
	}{
		"AWait":  {map[string]any{"type": "Ready", "status": "False", "reason": "WaitingForClusterInfrastructure", "message": "soon"}, "Ready: WaitingForClusterInfrastructure soon", ""},
		"AFault": {map[string]any{"type": "DataSecretAvailable", "status": "False", "reason": "NotAvailable", "message": "Failed to read content from secrets"}, "", "DataSecretAvailable: NotAvailable: Failed to read content"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSchool(t, c)
			s.run()
			s.report(map[string]any{"conditions": []any{tc.condition}})
			b := s.run()
			if tc.fails != "" {
				s.wantProblem(b, machinev1alpha1.ReasonBootstrapConfigFailed, "LabConfig ns/m-4v27w-bootstrap: "+tc.fails)
			} else if at := b.Status.AtProvider; !strings.HasSuffix(at.Waiting, tc.waiting) || at.Problem != nil || len(at.Config.Conditions) != 1 {
				t.Errorf("%+v", at)
			}
		})
	}
}

func configFails(t *testing.T, c release) {
	s := newSchool(t, c)
	s.run()
	s.report(map[string]any{
		"failureReason": "CreateError", "failureMessage": "no such template",
		"deprecated": map[string]any{"v1beta1": map[string]any{"conditions": []any{map[string]any{"type": "CertificatesAvailable", "status": "False", "severity": "Error", "reason": "CertificatesCorrupted", "message": "missing CA"}}}},
	})
	want := "CreateError: no such template"
	if c.contract == v1beta2 {
		want = "CertificatesAvailable: CertificatesCorrupted: missing CA"
	}
	s.wantProblem(s.run(), machinev1alpha1.ReasonBootstrapConfigFailed, want)
	// Nothing is lost: the provider may recover.
	s.teach(nil)
	if b := s.run(); !b.Status.AtProvider.Ready || b.Status.AtProvider.Problem != nil {
		t.Errorf("%+v", b.Status.AtProvider)
	}
}

func configIsPaused(t *testing.T, c release) {
	s := newSchool(t, c)
	s.run()
	s.report(map[string]any{"conditions": []any{map[string]any{"type": "Paused", "status": "True", "reason": "Paused"}}})
	if at := s.run().Status.AtProvider; !at.Config.Paused || !strings.Contains(at.Waiting, "paused: ") {
		t.Errorf("%+v", at)
	}
}

func configIsOwned(t *testing.T, c release) {
	s := newSchool(t, c)
	s.run()
	cluster, m, o := s.get(c.core.coreKind("Cluster"), clusterName), s.machine(), s.config()
	if owner := metav1.GetControllerOf(o); owner == nil || owner.Kind != "Machine" || owner.UID != m.GetUID() {
		t.Errorf("the owner of the BootstrapConfig is %+v", owner)
	}
	if refs := m.GetOwnerReferences(); len(refs) != 1 || refs[0].UID != cluster.GetUID() || stringAt(m, "spec", "clusterName") != clusterName || m.GetLabels()[labelCluster] != clusterName {
		t.Errorf("the Machine is %v", m.Object)
	}
	ref, _, _ := unstructured.NestedMap(m.Object, "spec", "bootstrap", "configRef")
	if ref["kind"] != "LabConfig" || ref["name"] != o.GetName() || stringAt(m, "spec", "version") != "v1.35.4" || stringAt(m, "spec", "failureDomain") != "zone-a" || stringAt(m, "spec", "infrastructureRef", "name") != "m" {
		t.Errorf("the Machine has %v", m.Object["spec"])
	}
}

func clusterIsReported(t *testing.T, c release) {
	s := newSchool(t, c)
	s.run()
	cluster := s.get(c.core.coreKind("Cluster"), clusterName)
	_, hasInfra, _ := unstructured.NestedMap(cluster.Object, "spec", "infrastructureRef")
	if !isClusterReady(c.core, cluster) || hasInfra || stringAt(cluster, "spec", "controlPlaneEndpoint", "host") != "10.0.0.1" {
		t.Errorf("the Cluster is %v", cluster.Object)
	}
	found := false
	for _, condition := range listAt(cluster, "status", "conditions") {
		found = found || condition["type"] == "ControlPlaneInitialized" && condition["status"] == "True"
	}
	if !found {
		t.Error("the control plane is not initialized, so that a provider would make a new cluster")
	}
}

func machineHasNoSecret(t *testing.T, c release) {
	s := newSchool(t, c)
	s.run()
	if got := stringAt(s.machine(), "spec", "bootstrap", "dataSecretName"); got != "" {
		t.Errorf("dataSecretName %q: a provider makes no user data", got)
	}
}

func machineReportsTheNode(t *testing.T, c release) {
	s := newSchool(t, c)
	s.run()
	s.teach(nil)
	s.run()
	if got := stringAt(s.machine(), "status", "nodeRef", "name"); got != "" {
		t.Errorf("Node %q", got)
	}
	b := s.bootstrap()
	b.Spec.ForProvider.NodeName = ptr.To("node-1")
	s.must(s.kube.Update(t.Context(), b))
	s.run()
	if got := stringAt(s.machine(), "status", "nodeRef", "name"); got != "node-1" {
		t.Errorf("Node %q", got)
	}
	// A problem of later takes nothing back.
	template := s.get(s.kind("LabConfigTemplate"), "workers")
	s.must(s.there.Delete(t.Context(), template))
	// A BootstrapConfig that is deleted later is not made again.
	s.must(s.there.Delete(t.Context(), s.config()))
	if b := s.run(); s.config() != nil || !b.Status.AtProvider.Ready {
		t.Error("a new BootstrapConfig was created for a VM that has joined")
	}
	s.must(s.kube.Delete(t.Context(), &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "c"}}))
	if b := s.run(); !b.Status.AtProvider.Ready || b.Status.AtProvider.Problem == nil || b.Status.GetCondition(xpv2.TypeSynced).Status != corev1.ConditionTrue {
		t.Errorf("without a configuration: %+v", b.Status)
	}
}

func configIsDeletedFirst(t *testing.T, c release) {
	s := newSchool(t, c)
	s.run()
	o := s.config()
	o.SetFinalizers([]string{"lab/config"})
	s.must(s.there.Update(t.Context(), o))
	s.must(s.kube.Delete(t.Context(), s.bootstrap()))
	s.run()
	if o = s.config(); o == nil || o.GetDeletionTimestamp() == nil || s.machine() == nil || s.machine().GetDeletionTimestamp() != nil || s.bootstrap() == nil {
		t.Fatal("the Machine or the Bootstrap is deleted before the BootstrapConfig is gone")
	}
	o.SetFinalizers(nil)
	s.must(s.there.Update(t.Context(), o))
	if b := s.run(); b != nil || s.machine() != nil || s.config() != nil {
		t.Errorf("left over: Bootstrap %v, Machine %v", b, s.machine())
	}
	if s.get(c.core.coreKind("Cluster"), clusterName) == nil {
		t.Error("the Cluster is deleted")
	}
}

func TestWhichBootstrapsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(context.Context, *school) error
		want   string
	}{
		"AKindThatIsNotAllowed": {func(ctx context.Context, s *school) error {
			b := s.bootstrap()
			b.Spec.ForProvider.TemplateRef.Kind = "OtherConfigTemplate"
			return s.kube.Update(ctx, b)
		}, `templateRef.kind: invalid value "OtherConfigTemplate" of bootstrap.cluster.x-k8s.io: OtherConfig must be one of spec.bootstrapConfigKinds of the configuration: [LabConfig.bootstrap.cluster.x-k8s.io]`},
		"ATemplateThatDoesNotExist": {func(ctx context.Context, s *school) error {
			return s.there.Delete(ctx, s.get(s.kind("LabConfigTemplate"), "workers"))
		}, `templateRef.name: invalid value "workers": namespace ns has no LabConfigTemplate of this name: create it`},
		"ATemplateOfAnotherNamespaceWithoutTheLabel": {func(ctx context.Context, s *school) error {
			o := newObject(s.kind("LabConfigTemplate"), "other", "workers")
			if err := s.there.Create(ctx, o); err != nil {
				return err
			}
			b := s.bootstrap()
			b.Spec.ForProvider.TemplateRef.Namespace = "other"
			return s.kube.Update(ctx, b)
		}, `templateRef.namespace: LabConfigTemplate other/workers: must have the label machine.drover.dev/user-data: "cluster"`},
		"ATemplateOfAnotherForm": {func(ctx context.Context, s *school) error {
			o := s.get(s.kind("LabConfigTemplate"), "workers")
			o.Object["spec"] = map[string]any{"size": "small"}
			return s.there.Update(ctx, o)
		}, "LabConfigTemplate ns/workers: spec.template: required value"},
		"TheControllersOfClusterAPI": {func(ctx context.Context, s *school) error {
			now := metav1.NewMicroTime(s.now)
			return s.there.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "capi-system", Name: v1alpha1.LeaseOfClusterAPI}, Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("x"), RenewTime: &now, LeaseDurationSeconds: ptr.To[int32](15)}})
		}, "the controllers of Cluster API run in the cluster"},
		"NoConfiguration": {func(ctx context.Context, s *school) error {
			return s.kube.Delete(ctx, &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "c"}})
		}, `spec.providerConfigRef: cannot get ClusterProviderConfig "c"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSchool(t, release{v1beta2, v1beta2})
			s.must(tc.change(t.Context(), s))
			s.wantProblem(s.run(), machinev1alpha1.ReasonBootstrapTemplateInvalid, tc.want)
			if s.config() != nil || s.machine() != nil {
				t.Error("an object was created")
			}
		})
	}
}
