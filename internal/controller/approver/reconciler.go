package approver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

const (
	// lookAgain is the interval between checks of a request whose Machine is not known well enough.
	// Usually a change of the Machine enqueues the request earlier.
	lookAgain = 15 * time.Second

	// reportAfter is how long a request waits before an event of its Machine reports that.
	reportAfter = time.Minute

	// fieldManager of the verdicts.
	fieldManager = "provider-drover"
)

// A Key names a request in a target cluster.
type Key struct {
	Ref  target.Ref
	Name string
}

// cluster has the parts of a target.Conn that the controller needs.
type cluster struct {
	kube kubernetes.Interface
	// request returns a request, nil if there is none or none to decide on.
	request  func(name string) *certificatesv1.CertificateSigningRequest
	classify func(error) error
	// token returns the UID of the Machine that a Node claims to belong to. It is empty if there is
	// no such Node, or if the Node claims none.
	token func(ctx context.Context, node string) (types.UID, error)
	// client returns the policy for client certificates, and its state.
	client func(context.Context) (v1alpha1.ClientCertificatesStatus, error)
	// policy of the cluster for serving certificates.
	policy policy
	// sharing are the configurations of the same cluster.
	sharing []target.Ref
	// admit returns an error if the Machine may not use the cluster. If it is nil, all Machines may.
	admit func(*machinev1alpha1.Machine) error
}

type reconciler struct {
	connect  func(context.Context, target.Ref) (cluster, error)
	control  client.Reader // of Machines, by the indexes
	observed Observations
	record   event.Recorder
	now      func() time.Time
}

// Reconcile decides on a request.
func (r *reconciler) Reconcile(ctx context.Context, k Key) (reconcile.Result, error) {
	c, err := r.connect(ctx, k.Ref)
	if target.Is(err) {
		// The configuration reports the error. The connection enqueues all requests again.
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	csr := c.request(k.Name)
	if csr == nil || decided(csr) {
		return reconcile.Result{}, nil
	}
	req := requestOf(csr)
	f, about, err := r.facts(ctx, c, k.Ref, req)
	if err != nil {
		return reconcile.Result{}, err
	}
	v := decide(req, f)
	if v.outcome != leave && req.signer == certificatesv1.KubeAPIServerClientKubeletSignerName {
		status, err := c.client(ctx)
		if err != nil || status.Policy != v1alpha1.ClientCertificatesApprove {
			return reconcile.Result{}, err
		}
	}
	if v.outcome == approve && c.admit != nil && about != nil {
		if err := c.admit(about); err != nil {
			v = verdict{outcome: wait, message: err.Error()}
		}
	}
	switch v.outcome {
	case leave:
		return reconcile.Result{}, nil
	case wait:
		r.reportWait(csr, about, v)
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	case retry:
		r.reportWait(csr, about, v)
		return reconcile.Result{}, fmt.Errorf("cannot decide on certificate signing request %s of Machine %s/%s: %s", csr.GetName(), about.GetNamespace(), about.GetName(), v.message)
	case approve, deny:
	}
	err = write(ctx, c.kube, csr, v)
	switch {
	case kerrors.IsConflict(err), kerrors.IsNotFound(err):
		// The cache soon has the present version, or the deletion.
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	case err != nil:
		return reconcile.Result{}, c.classify(err)
	}
	if v.outcome == deny {
		r.record.Event(about, event.Warning(machinev1alpha1.EventCertificateDenied, fmt.Errorf("certificate signing request %s: %s", csr.GetName(), v.message)))
	}
	return reconcile.Result{}, nil
}

// reportWait records an event on the Machine of a request that has waited for long.
func (r *reconciler) reportWait(csr *certificatesv1.CertificateSigningRequest, about *machinev1alpha1.Machine, v verdict) {
	if r.now().Sub(csr.GetCreationTimestamp().Time) > reportAfter {
		r.record.Event(about, event.Warning(machinev1alpha1.EventCertificateWaits, fmt.Errorf("a certificate is not approved yet: %s", v.message)))
	}
}

// facts returns the facts of a request, and the Machine whose events report the verdict.
func (r *reconciler) facts(ctx context.Context, c cluster, ref target.Ref, req request) (facts, *machinev1alpha1.Machine, error) {
	requestor, err1 := r.node(ctx, c, ref, req.requestor())
	subject, err2 := r.node(ctx, c, ref, req.subject())
	token, err3 := r.token(ctx, c, ref, req.token())
	if err := errors.Join(err1, err2, err3); err != nil {
		return facts{}, nil, err
	}
	out := facts{requestor: requestor.machine, subject: subject.machine, token: token.machine, policy: c.policy}
	about := token.object
	for _, f := range []found{subject, requestor} {
		if f.object != nil {
			about = f.object
		}
	}
	var err error
	switch {
	case subject.object != nil && req.signer == certificatesv1.KubeletServingSignerName:
		out.claims, err = r.claims(ctx, c.sharing, subject.object, req.wanted())
	case token.object != nil && token.cloudNamed:
		out.claims, err = r.claims(ctx, c.sharing, token.object, req.wanted())
	}
	return out, about, err
}

func write(ctx context.Context, kube kubernetes.Interface, csr *certificatesv1.CertificateSigningRequest, v verdict) error {
	csr = csr.DeepCopy()
	c := certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: machinev1alpha1.ReasonDroverMachine, Message: v.message,
	}
	if v.outcome == deny {
		c.Type, c.Reason = certificatesv1.CertificateDenied, machinev1alpha1.ReasonNotOfDroverMachine
	}
	csr.Status.Conditions = append(csr.Status.Conditions, c)
	_, err := kube.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, csr.GetName(), csr, metav1.UpdateOptions{FieldManager: fieldManager})
	return err
}
