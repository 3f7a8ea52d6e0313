package jointoken

import (
	"context"
	"fmt"
	"time"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/userdata"
)

// Reasons of events.
const (
	reasonRenewed   event.Reason = "TokenRenewed"
	reasonAbandoned event.Reason = "TokenAbandoned"
)

// abandonAfter so long a token is left to the sweeper, or to expire, in a cluster that
// cannot be reached.
const abandonAfter = 30 * time.Second

// cluster is what is needed of a target.Conn.
type cluster struct {
	kube      kubernetes.Interface
	ourselves endpoint
	override  *v1alpha1.APIServer
	// config is the UID of the configuration.
	config   types.UID
	classify func(error) error
}

type shared struct {
	control client.Reader // of the control cluster's connection Secrets
	record  event.Recorder
	now     func() time.Time
}

type connector struct {
	pool *target.Pool
	*shared
}

// Connect fails not for a JoinToken that is being deleted: its token dies by itself.
func (c *connector) Connect(ctx context.Context, jt *v1alpha1.JoinToken) (managed.TypedExternalClient[*v1alpha1.JoinToken], error) {
	conn, err := c.pool.Get(ctx, target.RefOf(jt))
	if err != nil {
		if !meta.WasDeleted(jt) {
			return nil, err
		}
		return &external{err: err, shared: c.shared}, nil
	}
	return &external{shared: c.shared, cluster: cluster{
		kube: conn.Kube, classify: conn.Classify,
		ourselves: endpoint{server: conn.Host, ca: conn.CA}, override: conn.Spec.APIServer, config: conn.UID,
	}}, nil
}

type external struct {
	cluster
	*shared
	err error // why there is no cluster
}

func (x *external) Disconnect(context.Context) error { return nil }

// Create is never called: Update makes the token, without the annotations that the
// managed reconciler would write before and after Create. They guard against a
// second token, and the ID that comes from the UID does that already.
func (x *external) Create(context.Context, *v1alpha1.JoinToken) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, nil
}

func (x *external) Observe(ctx context.Context, jt *v1alpha1.JoinToken) (managed.ExternalObservation, error) {
	s, err := x.get(ctx, jt)
	if meta.WasDeleted(jt) {
		return x.observeDeleting(jt, s, err)
	}
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if jt.Spec.ForProvider.Revoked {
		return x.observeRevoked(ctx, jt, s)
	}
	if err := checkTTL(jt.Spec.ForProvider.TTL.Duration); err != nil {
		return managed.ExternalObservation{}, err
	}
	if s == nil || !upToDate(s, jt.Spec.ForProvider, x.now()) || !meta.FinalizerExists(jt, managed.FinalizerName) {
		return managed.ExternalObservation{ResourceExists: true}, nil
	}
	details, err := x.details(ctx, jt, s)
	x.report(jt, s)
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true, ConnectionDetails: details}, err
}

func (x *external) observeDeleting(jt *v1alpha1.JoinToken, s *corev1.Secret, err error) (managed.ExternalObservation, error) {
	if err == nil {
		return managed.ExternalObservation{ResourceExists: s != nil, ResourceUpToDate: true}, nil
	}
	// A token that was not seen is not there, or will be gone after its TTL. One that
	// was is gone after it too, or swept before: no Machine waits for that.
	if e := jt.Status.AtProvider.ExpirationTime; e == nil || x.now().After(e.Time) || x.now().After(jt.GetDeletionTimestamp().Add(abandonAfter)) {
		x.record.Event(jt, event.Warning(reasonAbandoned, fmt.Errorf("the token is left to expire in the target cluster: %w", err)))
		return managed.ExternalObservation{}, nil
	}
	return managed.ExternalObservation{}, err
}

// observeRevoked leaves what was published as it is.
func (x *external) observeRevoked(ctx context.Context, jt *v1alpha1.JoinToken, s *corev1.Secret) (managed.ExternalObservation, error) {
	// Without details they would be published anew, as none.
	details, err := x.published(ctx, jt)
	if s != nil {
		return managed.ExternalObservation{ResourceExists: true, ConnectionDetails: details}, err
	}
	x.reportRevoked(jt)
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true, ConnectionDetails: details}, err
}

// Update makes the token, or makes it what is wanted, with a new life. One that is
// revoked it deletes.
func (x *external) Update(ctx context.Context, jt *v1alpha1.JoinToken) (managed.ExternalUpdate, error) {
	if jt.Spec.ForProvider.Revoked {
		if _, err := x.Delete(ctx, jt); err != nil {
			return managed.ExternalUpdate{}, err
		}
		details, err := x.published(ctx, jt)
		x.reportRevoked(jt)
		return managed.ExternalUpdate{ConnectionDetails: details}, err
	}
	s, err := x.apply(ctx, jt)
	if err != nil {
		return managed.ExternalUpdate{}, x.classify(err)
	}
	details, err := x.details(ctx, jt, s)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	x.report(jt, s)
	return managed.ExternalUpdate{ConnectionDetails: details}, nil
}

func (x *external) apply(ctx context.Context, jt *v1alpha1.JoinToken) (*corev1.Secret, error) {
	s, err := x.get(ctx, jt)
	if err != nil {
		return nil, err
	}
	if s != nil {
		if upToDate(s, jt.Spec.ForProvider, x.now()) {
			return s, nil
		}
		s = s.DeepCopy()
		setParameters(s, jt.Spec.ForProvider)
		setExpiration(s, x.now().Add(jt.Spec.ForProvider.TTL.Duration))
		s, err = x.kube.CoreV1().Secrets(s.GetNamespace()).Update(ctx, s, metav1.UpdateOptions{})
		if err == nil {
			x.record.Event(jt, event.Normal(reasonRenewed, fmt.Sprintf("The token %s is valid until %s", meta.GetExternalName(jt), expiration(s).Format(time.RFC3339))))
		}
		return s, err
	}

	id := meta.GetExternalName(jt)
	published, err := x.published(ctx, jt)
	if err != nil {
		return nil, err
	}
	// A VM that is booting with it can still join when the token comes back as it was.
	secret := secretHalf(id, published[v1alpha1.ConnectionToken])
	if secret == "" {
		if secret, err = newSecretHalf(); err != nil {
			return nil, err
		}
	}
	return x.kube.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, secretFor(jt, x.config, id, secret, x.now()), metav1.CreateOptions{})
}

// published returns what was published before, nothing if there was nothing.
func (x *external) published(ctx context.Context, jt *v1alpha1.JoinToken) (managed.ConnectionDetails, error) {
	ref := jt.GetWriteConnectionSecretToReference()
	if ref == nil {
		return nil, nil
	}
	s := &corev1.Secret{}
	err := x.control.Get(ctx, types.NamespacedName{Namespace: jt.GetNamespace(), Name: ref.Name}, s)
	if kerrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the connection Secret %s: %w", ref.Name, err)
	}
	return s.Data, nil
}

// Delete the token.
func (x *external) Delete(ctx context.Context, jt *v1alpha1.JoinToken) (managed.ExternalDelete, error) {
	s, err := x.get(ctx, jt)
	if err != nil || s == nil {
		return managed.ExternalDelete{}, err
	}
	err = x.kube.CoreV1().Secrets(s.GetNamespace()).Delete(ctx, s.GetName(), metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.GetUID()))})
	if kerrors.IsNotFound(err) {
		err = nil
	}
	return managed.ExternalDelete{}, x.classify(err)
}

// get the token's Secret, nil if there is none. One that another made is an error.
func (x *external) get(ctx context.Context, jt *v1alpha1.JoinToken) (*corev1.Secret, error) {
	if x.err != nil {
		return nil, x.err
	}
	id := meta.GetExternalName(jt)
	if err := checkID(id); err != nil {
		return nil, err
	}
	s, err := x.kube.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, bootstraputil.BootstrapTokenSecretName(id), metav1.GetOptions{})
	switch {
	case kerrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, x.classify(err)
	case ours(s, jt):
		return s, nil
	case meta.WasDeleted(jt):
		return nil, nil
	}
	return nil, fmt.Errorf("the bootstrap token %s in the target cluster belongs to another: label %s is not this JoinToken's UID", id, v1alpha1.LabelJoinToken)
}

func (x *external) details(ctx context.Context, jt *v1alpha1.JoinToken, s *corev1.Secret) (managed.ConnectionDetails, error) {
	if err := checkCA(x.override); err != nil {
		return nil, err
	}
	says, err := whatClusterSays(ctx, x.kube)
	if err != nil {
		return nil, x.classify(err)
	}
	e := endpointOf(x.override, says, x.ourselves)
	if err := e.check(); err != nil {
		return nil, err
	}
	details := managed.ConnectionDetails{
		v1alpha1.ConnectionToken:  []byte(tokenOf(s)),
		v1alpha1.ConnectionServer: []byte(e.server),
		v1alpha1.ConnectionCA:     e.ca,
	}
	if p := jt.Spec.ForProvider; p.UserData != "" {
		details[v1alpha1.ConnectionUserData] = userdata.Filling{
			Token: tokenOf(s), Server: e.server, CA: e.ca, UID: string(jt.GetUID()), ConfigUID: string(x.config),
		}.Fill(p)
	}
	return details, nil
}

func (x *external) report(jt *v1alpha1.JoinToken, s *corev1.Secret) {
	e := metav1.NewTime(expiration(s))
	jt.Status.AtProvider = v1alpha1.JoinTokenObservation{TokenID: meta.GetExternalName(jt), ExpirationTime: &e, ConfigUID: string(x.config)}
	jt.SetConditions(xpv1.Available())
}

// reportRevoked: there is nothing to be ready any more, and nothing to wait for.
func (x *external) reportRevoked(jt *v1alpha1.JoinToken) {
	jt.Status.AtProvider = v1alpha1.JoinTokenObservation{TokenID: meta.GetExternalName(jt), ConfigUID: string(x.config)}
	c := xpv1.Available()
	c.Reason = v1alpha1.ReasonRevoked
	jt.SetConditions(c)
}
