package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// A Bootstrap without user data is observed again after a fifth of its age, between soonest and latest.
const soonest, latest = 2 * time.Second, 30 * time.Second

// A bootstrapper is the external client of one reconcile of a Bootstrap.
type bootstrapper struct {
	again native.Requeuer
	now   func() time.Time
	// account is nil if err prevents that it is opened.
	account *account
	err     error

	// made are the objects that Create creates.
	made struct {
		kind
		config *unstructured.Unstructured
	}
}

var _ managed.TypedExternalClient[*v1alpha1.Bootstrap] = &bootstrapper{}

// Disconnect does nothing: connections are kept for the next reconcile.
func (x *bootstrapper) Disconnect(context.Context) error { return nil }

// Observe reads the BootstrapConfig, and the user data once its provider has made it. Before the creation it checks all
// that can be checked. A problem that only a user can fix is a part of the status, and no error.
func (x *bootstrapper) Observe(ctx context.Context, b *v1alpha1.Bootstrap) (managed.ExternalObservation, error) {
	if meta.WasDeleted(b) {
		return x.observeDeleted(ctx, b)
	}
	at := &b.Status.AtProvider
	at.Problem, at.Waiting = nil, ""
	out, err := x.observe(ctx, b)
	var e *native.Error
	if errors.As(err, &e) && (e.Class == fn.ErrorInvalidRequest || e.Class == fn.ErrorPermissionDenied) {
		at.Problem, err = &v1alpha1.BootstrapProblem{Reason: machinev1alpha1.ReasonBootstrapTemplateInvalid, Message: messageOf(e)}, nil
	}
	if at.Problem != nil {
		// Nothing is created as long as there is a problem.
		out = managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}
	}
	switch {
	case err != nil:
		return out, err
	case at.Ready:
		b.SetConditions(xpv2.Available())
		return out, nil
	case at.Problem != nil:
		b.SetConditions(xpv2.Unavailable().WithMessage(at.Problem.Message))
	default:
		b.SetConditions(xpv2.Creating().WithMessage(at.Waiting))
	}
	x.again.After(b, min(max(x.now().Sub(b.GetCreationTimestamp().Time)/5, soonest), latest))
	return out, nil
}

func (x *bootstrapper) observe(ctx context.Context, b *v1alpha1.Bootstrap) (managed.ExternalObservation, error) {
	p, at := b.Spec.ForProvider, &b.Status.AtProvider
	if x.err != nil {
		return managed.ExternalObservation{}, refused("", x.err)
	}
	k, config, err := x.config(ctx, b)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if config == nil {
		if at.Ready && p.NodeName != nil {
			// The VM has joined: nothing reads the user data any more.
			return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
		}
		at.Config = nil
		return managed.ExternalObservation{}, x.prepare(ctx, b, k)
	}
	out := managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: ptr.Deref(p.NodeName, "") == at.NodeName}
	r := readBootstrap(k.contract, config)
	apiVersion, kindName := k.ToAPIVersionAndKind()
	at.Config = &v1alpha1.InfraMachineObservation{
		APIVersion: apiVersion, Kind: kindName, Namespace: config.GetNamespace(), Name: config.GetName(), Contract: string(k.contract),
		Paused: r.paused, Conditions: r.conditions,
	}
	what := describe(config)
	switch {
	case r.problem != "":
		at.Problem = &v1alpha1.BootstrapProblem{Reason: machinev1alpha1.ReasonBootstrapConfigFailed, Message: what + ": " + r.problem}
		return out, nil
	case !r.created || r.secretName == "":
		at.Waiting = "waiting for " + what + ": " + r.waitsFor()
		return out, nil
	}
	s := &corev1.Secret{}
	if err := x.account.kube.Get(ctx, types.NamespacedName{Namespace: config.GetNamespace(), Name: r.secretName}, s); err != nil {
		if at.Ready && kerrors.IsNotFound(err) {
			return out, nil
		}
		return out, classify(what+": cannot read Secret "+r.secretName, err)
	}
	data, problem := userDataIn(s, config)
	if problem != "" {
		at.Problem = &v1alpha1.BootstrapProblem{Reason: machinev1alpha1.ReasonBootstrapConfigFailed, Message: problem}
		return out, nil
	}
	out.ConnectionDetails, at.Ready = data, true
	return out, nil
}

// config returns the kind of the BootstrapConfig and the object, nil if it does not exist.
func (x *bootstrapper) config(ctx context.Context, b *v1alpha1.Bootstrap) (kind, *unstructured.Unstructured, error) {
	gk := b.Spec.ForProvider.TemplateRef.ConfigKind()
	if !slices.Contains(x.account.spec.BootstrapConfigKinds, gk) {
		return kind{}, nil, refused("templateRef.kind", fmt.Errorf("invalid value %q of %s: %s must be one of spec.bootstrapConfigKinds of the configuration: %v", b.Spec.ForProvider.TemplateRef.Kind, gk.APIGroup, gk.Kind, x.account.spec.BootstrapConfigKinds))
	}
	k, err := x.account.kindOf(ctx, gk.GroupKind())
	if err != nil {
		return kind{}, nil, err
	}
	o, err := x.account.get(ctx, k.GroupVersionKind, b.Namespace, b.Name)
	if err != nil || o == nil {
		return k, nil, err
	}
	if o.GetLabels()[v1alpha1.LabelBootstrap] != string(b.UID) {
		return k, nil, refused("metadata.name", fmt.Errorf("invalid value %q: %s exists and is not that of this Bootstrap", b.Name, describe(o)))
	}
	return k, o, nil
}

// prepare reads the template, and has the API server check the BootstrapConfig by its schema and by the webhooks of its
// provider.
func (x *bootstrapper) prepare(ctx context.Context, b *v1alpha1.Bootstrap, k kind) error {
	ref, a := b.Spec.ForProvider.TemplateRef, x.account
	if err := a.refuseControllers(ctx, k.core, b.Namespace); err != nil {
		return err
	}
	t, err := a.kindOf(ctx, schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind})
	if err != nil {
		return err
	}
	namespace := b.Namespace
	if ref.Namespace != "" {
		namespace = ref.Namespace
	}
	template, err := a.get(ctx, t.GroupVersionKind, namespace, ref.Name)
	switch {
	case err != nil:
		return err
	case template == nil:
		return refused("templateRef.name", fmt.Errorf("invalid value %q: namespace %s has no %s of this name: create it", ref.Name, namespace, ref.Kind))
	case namespace != b.Namespace && template.GetLabels()[machinev1alpha1.LabelUserData] != machinev1alpha1.UserDataOfCluster:
		return refused("templateRef.namespace", fmt.Errorf("%s: must have the label %s: %q, because its content is brought onto VMs of other namespaces", describe(template), machinev1alpha1.LabelUserData, machinev1alpha1.UserDataOfCluster))
	}
	config, err := configOf(b, a.spec, k, template)
	if err != nil {
		return refused("templateRef", err)
	}
	switch err := a.kube.Create(ctx, config.DeepCopy(), client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); {
	case kerrors.IsInvalid(err), kerrors.IsBadRequest(err):
		return refused("templateRef", fmt.Errorf("%s: no %s can be made from it: %w", describe(template), k.Kind, shortened(err)))
	case kmeta.IsNoMatchError(err):
		return refused("templateRef.kind", fmt.Errorf("the API server does not serve %s, which the label of the CRD %s names", k.GroupVersionKind, crdName(k.GroupKind())))
	case err != nil && !kerrors.IsAlreadyExists(err):
		return classify("cannot check the "+k.Kind, err)
	}
	x.made.kind, x.made.config = k, config
	b.Status.AtProvider.Waiting = "creating " + describe(config)
	return nil
}

// Create creates the Cluster, the Machine and the BootstrapConfig, in this order. Each step finds the object of an earlier
// creation.
func (x *bootstrapper) Create(ctx context.Context, b *v1alpha1.Bootstrap) (managed.ExternalCreation, error) {
	if x.made.config == nil {
		return managed.ExternalCreation{}, errors.New("the BootstrapConfig was not prepared")
	}
	k, a := x.made.kind, x.account
	cluster, err := a.keepCluster(ctx, k.core, b.Namespace)
	if err != nil {
		return managed.ExternalCreation{}, err
	}
	machine, err := a.ensure(ctx, machineOfBootstrap(b, a.spec, k, cluster), v1alpha1.LabelBootstrap, string(b.UID))
	if err != nil {
		return managed.ExternalCreation{}, err
	}
	if err := a.writeStatus(ctx, machine, bootstrapMachineStatus(k.core, b, a.now())); err != nil {
		return managed.ExternalCreation{}, err
	}
	x.made.config.SetOwnerReferences([]metav1.OwnerReference{ownedBy(machine)})
	_, err = a.ensure(ctx, x.made.config, v1alpha1.LabelBootstrap, string(b.UID))
	return managed.ExternalCreation{}, err
}

// Update reports the Node in the status of the Machine, once the VM has joined.
func (x *bootstrapper) Update(ctx context.Context, b *v1alpha1.Bootstrap) (managed.ExternalUpdate, error) {
	c, err := x.account.core(ctx)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	m, err := x.machine(ctx, b, c)
	if err != nil || m == nil {
		return managed.ExternalUpdate{}, err
	}
	if err := x.account.writeStatus(ctx, m, bootstrapMachineStatus(c, b, x.now())); err != nil {
		return managed.ExternalUpdate{}, err
	}
	b.Status.AtProvider.NodeName = ptr.Deref(b.Spec.ForProvider.NodeName, "")
	return managed.ExternalUpdate{}, nil
}

// machine returns the Machine that owns the BootstrapConfig, nil if it does not exist.
func (x *bootstrapper) machine(ctx context.Context, b *v1alpha1.Bootstrap, c contract) (*unstructured.Unstructured, error) {
	o, err := x.account.get(ctx, c.coreKind("Machine"), b.Namespace, b.Name)
	if err != nil || o == nil || o.GetLabels()[v1alpha1.LabelBootstrap] != string(b.UID) {
		return nil, err
	}
	return o, nil
}

// observeDeleted reports whether the BootstrapConfig or its Machine exists.
func (x *bootstrapper) observeDeleted(ctx context.Context, b *v1alpha1.Bootstrap) (managed.ExternalObservation, error) {
	config, m, err := x.left(ctx, b)
	x.again.After(b, soonest)
	return managed.ExternalObservation{ResourceExists: config != nil || m != nil, ResourceUpToDate: true}, err
}

// left returns the objects of a Bootstrap that is being deleted.
func (x *bootstrapper) left(ctx context.Context, b *v1alpha1.Bootstrap) (config, machine *unstructured.Unstructured, err error) {
	if x.err != nil {
		return nil, nil, x.err
	}
	k := kind{}
	if at := b.Status.AtProvider.Config; at != nil {
		k = kind{GroupVersionKind: schema.FromAPIVersionAndKind(at.APIVersion, at.Kind), contract: contract(at.Contract)}
	} else if found, err := x.account.kindOf(ctx, b.Spec.ForProvider.TemplateRef.ConfigKind().GroupKind()); err == nil {
		k = found
	}
	if k.Kind != "" {
		config, err = x.account.get(ctx, k.GroupVersionKind, b.Namespace, b.Name)
		if err != nil && !kmeta.IsNoMatchError(errors.Unwrap(err)) {
			return nil, nil, err
		}
		if config != nil && config.GetLabels()[v1alpha1.LabelBootstrap] != string(b.UID) {
			config = nil
		}
	}
	c, err := x.account.core(ctx)
	if err != nil {
		return nil, nil, err
	}
	machine, err = x.machine(ctx, b, c)
	return config, machine, err
}

// Delete deletes the BootstrapConfig, and when it is gone its Machine.
func (x *bootstrapper) Delete(ctx context.Context, b *v1alpha1.Bootstrap) (managed.ExternalDelete, error) {
	config, m, err := x.left(ctx, b)
	switch {
	case err != nil:
		return managed.ExternalDelete{}, err
	case config != nil:
		uid := config.GetUID()
		return managed.ExternalDelete{}, classify("cannot delete "+describe(config), client.IgnoreNotFound(x.account.kube.Delete(ctx, config, client.Preconditions{UID: &uid})))
	case m != nil:
		return managed.ExternalDelete{}, x.account.release(ctx, m)
	}
	return managed.ExternalDelete{}, nil
}

// messageOf returns an error without its class, which is in the reason.
func messageOf(e *native.Error) string {
	if e.What == "" {
		return e.Err.Error()
	}
	return e.What + ": " + e.Err.Error()
}
