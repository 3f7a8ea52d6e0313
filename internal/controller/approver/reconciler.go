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
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

const (
	// lookAgain is when a request is looked at again whose Machine is not known well
	// enough. Mostly the Machine comes first.
	lookAgain = 15 * time.Second

	// tellAfter is for how long a request waits before an event of its Machine reports that.
	tellAfter = time.Minute

	// fieldManager of the verdicts.
	fieldManager = "provider-drover"

	// Reasons of the conditions of requests.
	reasonApproved = "DroverMachine"
	reasonDenied   = "NotOfDroverMachine"

	reasonDeniedEvent event.Reason = "CertificateDenied"
	reasonWaitsEvent  event.Reason = "CertificateWaits"
)

// A Key names a request in a target cluster.
type Key struct {
	Ref  target.Ref
	Name string
}

// cluster is what is needed of a target.Conn.
type cluster struct {
	kube kubernetes.Interface
	// request is nil if there is none, or none to decide on.
	request  func(name string) *certificatesv1.CertificateSigningRequest
	classify func(error) error
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
		// The configuration tells of it. All requests come again with the connection.
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
	f, about, err := r.facts(ctx, k.Ref, req)
	if err != nil {
		return reconcile.Result{}, err
	}
	v := decide(req, f)
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
		// The cache will have what it is now, or that it is gone.
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	case err != nil:
		return reconcile.Result{}, c.classify(err)
	}
	if v.outcome == deny {
		r.record.Event(about, event.Warning(reasonDeniedEvent, fmt.Errorf("certificate signing request %s: %s", csr.GetName(), v.message)))
	}
	return reconcile.Result{}, nil
}

// reportWait of a request that has waited for long, as an event of its Machine.
func (r *reconciler) reportWait(csr *certificatesv1.CertificateSigningRequest, about *machinev1alpha1.Machine, v verdict) {
	if r.now().Sub(csr.GetCreationTimestamp().Time) > tellAfter {
		r.record.Event(about, event.Warning(reasonWaitsEvent, fmt.Errorf("a certificate is not approved yet: %s", v.message)))
	}
}

// facts of a request, and the Machine whose events report the verdict.
func (r *reconciler) facts(ctx context.Context, ref target.Ref, req request) (facts, *machinev1alpha1.Machine, error) {
	requestor, err1 := r.node(ctx, ref, req.requestor())
	subject, err2 := r.node(ctx, ref, req.subject())
	token, err3 := r.token(ctx, ref, req.token())
	out := facts{requestor: requestor.machine, subject: subject.machine, token: token.machine}
	about := token.object
	for _, f := range []found{subject, requestor} {
		if f.object != nil {
			about = f.object
		}
	}
	return out, about, errors.Join(err1, err2, err3)
}

func write(ctx context.Context, kube kubernetes.Interface, csr *certificatesv1.CertificateSigningRequest, v verdict) error {
	csr = csr.DeepCopy()
	c := certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: reasonApproved, Message: v.message,
	}
	if v.outcome == deny {
		c.Type, c.Reason = certificatesv1.CertificateDenied, reasonDenied
	}
	csr.Status.Conditions = append(csr.Status.Conditions, c)
	_, err := kube.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, csr.GetName(), csr, metav1.UpdateOptions{FieldManager: fieldManager})
	return err
}
