// Package runtime is an external package runtime for Crossplane: it runs the functions and
// providers of active package revisions as local processes, with the identity, certificates and
// environment that Crossplane's own Deployment would give them.
package runtime

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	pkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"
	"github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"

	"github.com/drover-dev/drover/cluster/internal/crossplane"
	"github.com/drover-dev/drover/cluster/internal/kubeconfig"
	"github.com/drover-dev/drover/cluster/internal/layout"
	"github.com/drover-dev/drover/cluster/internal/process"
	"github.com/drover-dev/drover/cluster/internal/token"
)

// rbacPeriod is the interval at which the reconciler checks whether the RBAC manager granted the
// rights.
const rbacPeriod = 200 * time.Millisecond

// A reconciler runs the revisions of one kind.
type reconciler struct {
	client client.Client
	runner *runner
	dir    layout.Dir
	server string
	ca     []byte
	log    func(error)
	// empty returns an empty revision of the kind.
	empty func() pkgv1.PackageRevisionWithRuntime
}

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	rev := r.empty()
	if err := r.client.Get(ctx, req.NamespacedName, rev); err != nil {
		if kerrors.IsNotFound(err) {
			r.stop(req.Name)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, err
	}
	if rev.GetDeletionTimestamp() != nil {
		r.stop(req.Name)
		return ctrl.Result{}, nil
	}
	id, err := identify(rev)
	if err != nil {
		return ctrl.Result{}, r.report(ctx, rev, func() { unhealthy(rev, err.Error()) })
	}
	if rev.GetDesiredState() == pkgv1.PackageRevisionInactive {
		r.stop(req.Name)
		if err := withdraw(ctx, r.client, id); err != nil {
			return ctrl.Result{}, err
		}
		// As in Crossplane, a revision that should not run is healthy if it does not run.
		return ctrl.Result{}, r.report(ctx, rev, func() { rev.SetConditions(pkgv1.RuntimeHealthy()) })
	}

	wait, runErr := r.run(ctx, rev, id)
	if kerrors.IsConflict(runErr) {
		return ctrl.Result{RequeueAfter: rbacPeriod}, nil
	}
	if runErr != nil {
		if err := r.report(ctx, rev, func() { unhealthy(rev, runErr.Error()) }); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: wait}, runErr
}

func (r *reconciler) stop(revision string) {
	_, function := r.empty().(*pkgv1.FunctionRevision)
	r.runner.stop(func(id identity) bool { return id.Revision == revision && id.Function == function })
}

// run starts the process of an active revision, and reports its progress in the revision.
func (r *reconciler) run(ctx context.Context, rev pkgv1.PackageRevisionWithRuntime, id identity) (wait time.Duration, err error) {
	// Crossplane must pull the package first.
	if rev.GetResolvedSource() == "" {
		return 0, nil
	}
	p, err := r.runner.portsOf(id.Component)
	if err != nil {
		return 0, err
	}
	// The certificate comes first, because Crossplane waits for it before it establishes the
	// package's objects.
	if err := r.certificates(ctx, rev, id); err != nil {
		return 0, err
	}
	if err := r.report(ctx, rev, func() {
		rev.SetObservedTLSServerSecretName(serverSecret(id))
		rev.SetObservedTLSClientSecretName(clientSecret(id))
		if f, ok := rev.(*pkgv1.FunctionRevision); ok {
			f.Status.Endpoint = address(p.GRPC)
		}
	}); err != nil {
		return 0, err
	}
	if rev.GetCondition(pkgv1.TypeRevisionHealthy).Status != "True" {
		return 0, r.report(ctx, rev, func() { unhealthy(rev, "Package revision is not healthy yet") })
	}

	c, err := r.customization(ctx, rev, id)
	if err != nil {
		return 0, err
	}
	if err := applyAll(ctx, r.client, identityObjects(id, c, rev.GetResolvedSource(), owner(rev, id))); err != nil {
		return 0, err
	}
	ok, err := bound(ctx, r.client, id, c.ServiceAccount)
	if err != nil {
		return 0, err
	}
	if !ok {
		return rbacPeriod, r.report(ctx, rev, func() { unhealthy(rev, "The RBAC manager has not bound the ServiceAccount yet") })
	}
	if err := r.ensure(ctx, rev, id, c, p); err != nil {
		return 0, err
	}
	s, _ := r.runner.status(id)
	return 0, r.report(ctx, rev, func() { health(rev, s) })
}

func (r *reconciler) certificates(ctx context.Context, rev pkgv1.PackageRevisionWithRuntime, id identity) error {
	if err := certificate(ctx, r.client, *serverSecret(id), owner(rev, id), tlsFolder(r.dir, id, "server"), serverCertificate(id)); err != nil {
		return err
	}
	if id.Function {
		return nil
	}
	return certificate(ctx, r.client, *clientSecret(id), owner(rev, id), tlsFolder(r.dir, id, "client"), clientCertificate(id))
}

// serverSecret returns the name that Crossplane would give the Secret. For an external runtime,
// Crossplane does not set the names of serverSecret and clientSecret in the revision's spec.
func serverSecret(id identity) *string {
	return pkgv1.GetSecretNameWithSuffix(id.Package, pkgv1.TLSServerSecretNameSuffix)
}

func clientSecret(id identity) *string {
	if id.Function {
		return nil
	}
	return pkgv1.GetSecretNameWithSuffix(id.Package, pkgv1.TLSClientSecretNameSuffix)
}

// ensure runs the process with a kubeconfig of its ServiceAccount.
func (r *reconciler) ensure(ctx context.Context, rev pkgv1.PackageRevisionWithRuntime, id identity, c customization, p ports) error {
	prog, err := fetch(ctx, rev.GetResolvedSource(), id, r.dir)
	if err != nil {
		return err
	}
	spec := process.Spec{
		Name: id.Component, Path: prog.path, Args: append(prog.args, c.Args...),
		Env: environment(id, c, p, r.dir), Dir: r.dir.Package(id.Component),
		Log: r.dir.Log(id.Component), Ready: readiness(id, p), Metrics: "http://" + address(p.Metrics) + "/metrics",
	}
	return r.runner.ensure(id, spec, func(life context.Context) error {
		path := r.dir.Package(id.Component, "token")
		renew, err := token.Request(ctx, r.client, crossplane.Namespace, c.ServiceAccount, path)
		if err != nil {
			return err
		}
		go token.Keep(life, r.client, crossplane.Namespace, c.ServiceAccount, path, renew, r.log)
		return kubeconfig.Write(r.dir.Package(id.Component, "kubeconfig"), kubeconfig.TokenFile(r.server, r.ca, c.ServiceAccount, path))
	})
}

// customization returns the settings of the DeploymentRuntimeConfig of a revision: the one of an
// ImageConfig, or else the one of its package, because Crossplane does not copy it to the revision
// for an external runtime. ImageConfigs match the name that a package is released under.
func (r *reconciler) customization(ctx context.Context, rev pkgv1.PackageRevisionWithRuntime, id identity) (customization, error) {
	parent := pkgv1.PackageWithRuntime(&pkgv1.Provider{})
	if id.Function {
		parent = &pkgv1.Function{}
	}
	if err := r.client.Get(ctx, client.ObjectKey{Name: id.Package}, parent); err != nil {
		return customization{}, err
	}
	var configName string
	if ref := parent.GetRuntimeConfigRef(); ref != nil {
		configName = ref.Name
	}
	_, byImage, err := xpkg.NewImageConfigStore(r.client, crossplane.Namespace).RuntimeConfigFor(ctx, rev.GetSource())
	if err != nil {
		return customization{}, err
	}
	if byImage != nil && byImage.ConfigReference != nil {
		configName = byImage.ConfigReference.Name
	}
	if configName == "" {
		return customize(id, nil), nil
	}
	config := &v1beta1.DeploymentRuntimeConfig{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: configName}, config); err != nil {
		return customization{}, fmt.Errorf("runtime config: %w", err)
	}
	return customize(id, config), nil
}

// report writes the status, if change changes it.
func (r *reconciler) report(ctx context.Context, rev pkgv1.PackageRevisionWithRuntime, change func()) error {
	before := rev.DeepCopyObject()
	change()
	if equality.Semantic.DeepEqual(before, kruntime.Object(rev)) {
		return nil
	}
	return r.client.Status().Update(ctx, rev)
}

func health(rev pkgv1.PackageRevisionWithRuntime, s process.Status) {
	switch {
	case s.State == process.Running:
		rev.SetConditions(pkgv1.RuntimeHealthy(), pkgv1.RuntimeActive())
	case s.Message != "":
		unhealthy(rev, fmt.Sprintf("Process is %s: %s", s.State, s.Message))
	default:
		unhealthy(rev, fmt.Sprintf("Process is %s", s.State))
	}
}

func unhealthy(rev pkgv1.PackageRevisionWithRuntime, message string) {
	c := pkgv1.RuntimeUnhealthy()
	c.Message = message
	rev.SetConditions(xpv2.Condition(c))
}

func owner(rev pkgv1.PackageRevisionWithRuntime, id identity) metav1.OwnerReference {
	kind := pkgv1.ProviderRevisionGroupVersionKind
	if id.Function {
		kind = pkgv1.FunctionRevisionGroupVersionKind
	}
	return metav1.OwnerReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: rev.GetName(), UID: rev.GetUID(),
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}
}
