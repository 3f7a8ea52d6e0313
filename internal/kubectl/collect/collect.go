// Package collect reads the objects of a view from the API server. It is the only package of kubectl
// drover that knows a client beside the one that carries changes out.
package collect

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/console"
	"github.com/drover-dev/drover/internal/kubectl/view"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/stored"
)

// pageSize of a list.
const pageSize = 500

// Options of a read.
type Options struct {
	// Namespace to read, "" for all.
	Namespace string
	// Resources of Machines are read too: one request each. Names limits them to these Machines, nil
	// for all. NotRunning limits them to Machines that do not run.
	Resources, NotRunning bool
	Names                 []string
	// Tokens adds the metadata of the Secrets with join token and user data.
	Tokens bool
	// Events are read too.
	Events bool
	// Target cluster, nil if it is not to be read beside the control cluster. If the Machines join
	// the control cluster, that is read without it.
	Target client.Client
	// Nodes and certificate requests are read too, of Target or of the control cluster. Budgets adds
	// pods and PodDisruptionBudgets.
	Nodes, Budgets bool
	// NodeClaims that Machines were made for are read too, of the same cluster as Nodes.
	NodeClaims bool
}

// View reads a view.
func View(ctx context.Context, c client.Client, now time.Time, o Options) (*view.View, error) {
	r := &reader{ctx: ctx, c: c, o: o, v: &view.View{Time: metav1.NewTime(now)}, failed: map[string]bool{}}
	if err := r.machines(); err != nil {
		return nil, err
	}
	r.configs()
	if o.Resources {
		r.resources()
	}
	if o.Events {
		r.events()
	}
	if o.Nodes || o.NodeClaims {
		r.target()
	}
	return r.v, nil
}

type reader struct {
	ctx context.Context //nolint:containedctx // A reader is used for one collection.
	c   client.Client
	o   Options
	v   *view.View
	// failed kinds of resources.
	failed map[string]bool
}

// unread records a kind that could not be read. A user may lack a right that the rest does not need.
func (r *reader) unread(what string, err error) {
	r.v.Unread = append(r.v.Unread, fmt.Sprintf("%s: %v", what, err))
}

func (r *reader) list(c client.Client, into client.ObjectList, opts ...client.ListOption) error {
	_, err := listAll(r.ctx, c, into, opts...)
	return err
}

// listAll pages of a list.
func listAll(ctx context.Context, c client.Client, into client.ObjectList, opts ...client.ListOption) (client.ObjectList, error) {
	var items []runtime.Object
	for {
		if err := c.List(ctx, into, append(slices.Clone(opts), client.Limit(pageSize), client.Continue(into.GetContinue()))...); err != nil {
			return nil, err
		}
		page, err := meta.ExtractList(into)
		if err != nil {
			return nil, err
		}
		items = append(items, page...)
		if into.GetContinue() == "" {
			return into, meta.SetList(into, items)
		}
	}
}

func (r *reader) machines() error {
	pools, deployments := &machinev1alpha1.NodePoolList{}, &machinev1alpha1.MachineDeploymentList{}
	sets, machines := &machinev1alpha1.MachineSetList{}, &machinev1alpha1.MachineList{}
	for _, l := range []client.ObjectList{pools, deployments, sets, machines} {
		if err := r.list(r.c, l, client.InNamespace(r.o.Namespace)); err != nil {
			if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
				return fmt.Errorf("the API server does not serve machine.drover.dev/v1alpha1: is Drover installed in this cluster? %w", err)
			}
			return err
		}
	}
	for i := range pools.Items {
		explain(&pools.Items[i], &pools.Items[i].Status.Conditions)
	}
	for i := range deployments.Items {
		explain(&deployments.Items[i], &deployments.Items[i].Status.Conditions)
	}
	for i := range sets.Items {
		explain(&sets.Items[i], &sets.Items[i].Status.Conditions)
	}
	for i := range machines.Items {
		explain(&machines.Items[i], &machines.Items[i].Status.Conditions)
	}
	r.v.Pools, r.v.Deployments, r.v.Sets, r.v.Machines = pools.Items, deployments.Items, sets.Items, machines.Items
	return nil
}

// explain sets the condition Valid of an object with fields that cannot be decoded, as its controller does, which may not
// have seen the object yet.
func explain(o client.Object, conditions *[]metav1.Condition) {
	fields := stored.Faults(o)
	if fields == "" {
		return
	}
	p := plan.NotDecodable(fields)
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: machinev1alpha1.ConditionValid, Status: metav1.ConditionFalse, Reason: p.Reason, Message: p.Message,
		LastTransitionTime: o.GetCreationTimestamp(), ObservedGeneration: o.GetGeneration(),
	})
}

// configs that the Machines and the templates name.
func (r *reader) configs() {
	read := map[string]bool{}
	one := func(namespace string, ref machinev1alpha1.ClusterReference) {
		kind, name := view.ClusterRef(ref)
		if kind != clusterv1alpha1.ProviderConfigGroupVersionKind.Kind {
			namespace = ""
		}
		if id := kind + "/" + namespace + "/" + name; !read[id] {
			read[id] = true
			r.config(kind, namespace, name)
		}
	}
	for _, d := range r.v.Deployments {
		one(d.Namespace, d.Spec.Template.Spec.ClusterRef)
	}
	for _, s := range r.v.Sets {
		one(s.Namespace, s.Spec.Template.Spec.ClusterRef)
	}
	for _, m := range r.v.Machines {
		one(m.Namespace, m.Spec.ClusterRef)
	}
}

func (r *reader) config(kind, namespace, name string) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(clusterv1alpha1.ProviderConfigGroupVersionKind.GroupVersion().WithKind(kind))
	err := r.c.Get(r.ctx, client.ObjectKey{Namespace: namespace, Name: name}, u)
	c := view.Config{Kind: kind, Namespace: namespace, Name: name, Missing: apierrors.IsNotFound(err)}
	if err != nil && !c.Missing {
		r.unread(kind+" "+name, err)
		return
	}
	c.Conditions = conditionsOf(u)
	source, _, _ := unstructured.NestedString(u.Object, "spec", "credentials", "source")
	c.IsControl = source == string(clusterv1alpha1.CredentialsInjectedIdentity)
	r.v.Configs = append(r.v.Configs, c)
}

func conditionsOf(u *unstructured.Unstructured) []metav1.Condition {
	into := struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}{}
	// Another kind's conditions may have another form: then there are none.
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &into)
	return into.Status.Conditions
}

func (r *reader) resources() {
	for i := range r.v.Machines {
		m := &r.v.Machines[i]
		runs := m.Status.Phase == machinev1alpha1.MachineRunning && m.DeletionTimestamp.IsZero()
		if r.o.Names != nil && !slices.Contains(r.o.Names, m.Name) || r.o.NotRunning && runs {
			continue
		}
		for _, ref := range m.Status.ResourceRefs {
			r.resource(m, ref)
		}
		// The Secret is no composed resource.
		if r.o.Tokens {
			r.resource(m, machinev1alpha1.ComposedReference{Role: machinev1alpha1.ResourceUserData, APIVersion: "v1", Kind: "Secret", Name: names.UserData(m.Name, m.UID)})
		}
	}
}

func (r *reader) resource(m *machinev1alpha1.Machine, ref machinev1alpha1.ComposedReference) {
	out := view.Resource{Role: ref.Role, APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: m.Namespace, Name: ref.Name, Machine: m.Name}
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	key := client.ObjectKey{Namespace: m.Namespace, Name: ref.Name}
	var o client.Object
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	o = u
	if kind.Group == "" {
		// The content of a Secret is never read.
		p := &metav1.PartialObjectMetadata{}
		p.SetGroupVersionKind(kind)
		o = p
	}
	err := r.c.Get(r.ctx, key, o)
	if out.Missing = apierrors.IsNotFound(err); err != nil && !out.Missing {
		// A right is missing for all resources of the kind: it is named once.
		if !r.failed[kind.Kind] {
			r.failed[kind.Kind] = true
			r.unread(ref.Kind+" "+ref.Name, err)
		}
		return
	}
	out.Created, out.Deleted, out.Annotations = o.GetCreationTimestamp(), o.GetDeletionTimestamp(), droversOf(o.GetAnnotations())
	out.ExternalName = o.GetAnnotations()["crossplane.io/external-name"]
	if kind.Group != "" {
		out.Conditions = conditionsOf(u)
		text, _, _ := unstructured.NestedString(u.Object, "status", "atProvider", "console")
		out.Console = console.Excerpt(text)
		out.InfraMachine = infraMachineOf(u)
	}
	r.v.Resources = append(r.v.Resources, out)
}

// bootstrapKind is the kind of the user data that a bootstrap provider of Cluster API makes.
const bootstrapKind = "Bootstrap"

// infraMachineOf returns the InfraMachine that a VM resource reports, or the BootstrapConfig that a Bootstrap reports. It
// returns nil if there is none.
func infraMachineOf(vm *unstructured.Unstructured) *view.InfraMachine {
	at, found, _ := unstructured.NestedMap(vm.Object, "status", "atProvider", "infraMachine")
	if !found && vm.GetKind() == bootstrapKind {
		at, found, _ = unstructured.NestedMap(vm.Object, "status", "atProvider", "config")
	}
	if !found {
		return nil
	}
	out := &view.InfraMachine{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(at, out) != nil || out.Kind == "" || out.Name == "" {
		return nil
	}
	return out
}

// droversOf returns the annotations of Drover: other ones may be long, and are not shown.
func droversOf(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range annotations {
		if strings.Contains(k, machinev1alpha1.Domain) {
			out[k] = v
		}
	}
	return out
}

// events of Drover's objects and of their resources.
func (r *reader) events() {
	l := &corev1.EventList{}
	if err := r.list(r.c, l, client.InNamespace(r.o.Namespace)); err != nil {
		r.unread("events", err)
		return
	}
	kinds := map[string]bool{}
	for _, res := range r.v.Resources {
		kinds[res.Kind+"/"+res.Name] = true
	}
	for _, e := range l.Items {
		o := e.InvolvedObject
		if strings.HasPrefix(o.APIVersion, machinev1alpha1.Group+"/") || strings.HasPrefix(o.APIVersion, "cluster."+machinev1alpha1.Domain+"/") || kinds[o.Kind+"/"+o.Name] {
			e.ManagedFields = nil
			r.v.Events = append(r.v.Events, e)
		}
	}
}

// target reads the target cluster that the user names, or this one if the Machines join it.
func (r *reader) target() {
	c := r.o.Target
	if c == nil && slices.ContainsFunc(r.v.Configs, func(c view.Config) bool { return c.IsControl }) {
		c = r.c
	}
	if c == nil {
		return
	}
	t := &view.Target{}
	r.v.Target = t
	if r.o.NodeClaims {
		r.nodeClaims(c, t)
	}
	if r.o.Nodes {
		r.nodes(c, t)
	}
}

// nodes and certificate requests of the target cluster, and with them the budgets.
func (r *reader) nodes(c client.Client, t *view.Target) {
	nodes, csrs := &corev1.NodeList{}, &certificatesv1.CertificateSigningRequestList{}
	if err := r.list(c, nodes); err != nil {
		r.unread("Nodes", err)
		t.NodesUnread = true
		return
	}
	for _, n := range nodes.Items {
		n.ManagedFields, n.Status.Images = nil, nil
		t.Nodes = append(t.Nodes, n)
	}
	if err := r.list(c, csrs); err != nil {
		r.unread("CertificateSigningRequests", err)
	}
	for _, csr := range csrs.Items {
		t.CSRs = append(t.CSRs, view.CSR{Name: csr.Name, Node: nodeOf(csr), Signer: csr.Spec.SignerName, Created: csr.CreationTimestamp, Conditions: csr.Status.Conditions})
	}
	if r.o.Budgets {
		r.budgets(c, t)
	}
}

// budgets of the target cluster, and the pods that they may hold.
func (r *reader) budgets(c client.Client, t *view.Target) {
	pods, budgets := &corev1.PodList{}, &policyv1.PodDisruptionBudgetList{}
	for _, l := range []client.ObjectList{pods, budgets} {
		if err := r.list(c, l); err != nil {
			r.unread("pods and PodDisruptionBudgets", err)
			return
		}
	}
	t.Pods, t.Budgets = pods.Items, budgets.Items
	if t.Budgets == nil {
		t.Budgets = []policyv1.PodDisruptionBudget{}
	}
}

// nodeOf a certificate request: the common name that it requests, or the requester.
func nodeOf(csr certificatesv1.CertificateSigningRequest) string {
	const prefix = "system:node:"
	if block, _ := pem.Decode(csr.Spec.Request); block != nil {
		if r, err := x509.ParseCertificateRequest(block.Bytes); err == nil && strings.HasPrefix(r.Subject.CommonName, prefix) {
			return strings.TrimPrefix(r.Subject.CommonName, prefix)
		}
	}
	return strings.TrimPrefix(csr.Spec.Username, prefix)
}
