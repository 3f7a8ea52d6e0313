package simulator

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpunstructured "github.com/crossplane/crossplane-runtime/v2/pkg/resource/unstructured"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// managedResource is a managed resource of any kind.
type managedResource struct {
	unstructured.Unstructured
}

var (
	_ resource.ModernManaged = &managedResource{}
	_ xpunstructured.Wrapper = &managedResource{}
)

func (m *managedResource) GetUnstructured() *unstructured.Unstructured { return &m.Unstructured }

func (m *managedResource) DeepCopyObject() runtime.Object {
	return &managedResource{Unstructured: *m.DeepCopy()}
}

func (m *managedResource) get(path string, into any) bool {
	return fieldpath.Pave(m.Object).GetValueInto(path, into) == nil
}

func (m *managedResource) set(path string, value any) {
	if err := fieldpath.Pave(m.Object).SetValue(path, value); err != nil {
		panic(err) // Only this package and the descriptions have paths.
	}
}

func (m *managedResource) GetCondition(t xpv2.ConditionType) xpv2.Condition {
	s := xpv2.ConditionedStatus{}
	m.get("status", &s)
	return s.GetCondition(t)
}

func (m *managedResource) SetConditions(c ...xpv2.Condition) {
	s := xpv2.ConditionedStatus{}
	m.get("status", &s)
	s.SetConditions(c...)
	m.set("status.conditions", s.Conditions)
}

func (m *managedResource) GetManagementPolicies() xpv2.ManagementPolicies {
	p := xpv2.ManagementPolicies{}
	m.get("spec.managementPolicies", &p)
	return p
}

func (m *managedResource) SetManagementPolicies(p xpv2.ManagementPolicies) {
	m.set("spec.managementPolicies", p)
}

func (m *managedResource) GetProviderConfigReference() *xpv2.ProviderConfigReference {
	r := &xpv2.ProviderConfigReference{}
	if !m.get("spec.providerConfigRef", r) {
		return nil
	}
	return r
}

func (m *managedResource) SetProviderConfigReference(r *xpv2.ProviderConfigReference) {
	m.set("spec.providerConfigRef", r)
}

func (m *managedResource) GetWriteConnectionSecretToReference() *xpv2.LocalSecretReference {
	r := &xpv2.LocalSecretReference{}
	if !m.get("spec.writeConnectionSecretToRef", r) {
		return nil
	}
	return r
}

func (m *managedResource) SetWriteConnectionSecretToReference(r *xpv2.LocalSecretReference) {
	m.set("spec.writeConnectionSecretToRef", r)
}

// kindManager is a manager for the reconciler of one kind, which creates objects without their
// kind. The client sets it.
type kindManager struct {
	manager.Manager
	client *kindClient
	scheme *runtime.Scheme
}

func newKindManager(m manager.Manager, gvk schema.GroupVersionKind) *kindManager {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(gvk, &managedResource{})
	return &kindManager{Manager: m, client: &kindClient{Client: xpunstructured.NewClient(m.GetClient()), gvk: gvk}, scheme: s}
}

func (m *kindManager) GetClient() client.Client   { return m.client }
func (m *kindManager) GetScheme() *runtime.Scheme { return m.scheme }

type kindClient struct {
	client.Client
	gvk schema.GroupVersionKind
}

func (c *kindClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if m, ok := o.(*managedResource); ok {
		m.SetGroupVersionKind(c.gvk)
	}
	return c.Client.Get(ctx, key, o, opts...)
}

func (c *kindClient) new() *managedResource {
	m := &managedResource{Unstructured: unstructured.Unstructured{Object: map[string]any{}}}
	m.SetGroupVersionKind(c.gvk)
	return m
}
