package approver

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	certificatesv1 "k8s.io/api/certificates/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type told []string

func (e *told) Event(obj runtime.Object, ev event.Event) {
	o, _ := obj.(client.Object)
	*e = append(*e, o.GetName()+" "+string(ev.Reason)+": "+ev.Message)
}
func (e *told) WithAnnotations(...string) event.Recorder { return e }

var config = &xpv1.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "c"}

func workerNode(name, joined, address string) *v1alpha1.WorkerNode {
	wn := &v1alpha1.WorkerNode{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	wn.SetProviderConfigReference(config)
	wn.Spec.ForProvider.Addresses = []v1alpha1.NodeAddress{{Type: "InternalIP", Address: address}}
	wn.Status.AtProvider.NodeName = joined
	return wn
}

func joinToken(name, id string, ofMachine bool) *v1alpha1.JoinToken {
	jt := &v1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	jt.SetProviderConfigReference(config)
	xpmeta.SetExternalName(jt, id)
	if ofMachine {
		jt.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Machine", Name: name}})
	}
	return jt
}

func TestReconcile(t *testing.T) {
	elsewhere := workerNode("a", "a", "10.0.0.1")
	elsewhere.SetProviderConfigReference(&xpv1.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "other"})
	cases := map[string]struct {
		form      *form
		edit      func(*certificatesv1.CertificateSigningRequest)
		objs      []client.Object
		condition certificatesv1.RequestConditionType
		event     string
		again     bool
		fails     bool
	}{
		"ItsOwnIsApproved":                 {form: serving(), objs: []client.Object{workerNode("a", "a", "10.0.0.1")}, condition: certificatesv1.CertificateApproved},
		"AnothersAddressIsDeniedAndTold":   {form: serving(), objs: []client.Object{workerNode("a", "a", "10.0.0.2")}, condition: certificatesv1.CertificateDenied, event: "a CertificateDenied: certificate signing request r: the IP address 10.0.0.1"},
		"ANodeOfAnotherClusterIsLeftAlone": {form: serving(), objs: []client.Object{elsewhere}},
		"ANodeThatIsNotKnownYetComesAgain": {form: serving(), objs: []client.Object{workerNode("a", "", "10.0.0.1")}, again: true},
		"AndIsToldOfAfterAWhile": {form: serving(), edit: func(csr *certificatesv1.CertificateSigningRequest) {
			csr.SetCreationTimestamp(metav1.NewTime(start.Add(-2 * tellAfter)))
		}, objs: []client.Object{workerNode("a", "", "10.0.0.1")}, again: true, event: "a CertificateWaits: a certificate is not approved yet: the Node a"},
		"TwoMachinesThatClaimOneNameAreNone": {form: serving(), objs: []client.Object{workerNode("a", "a", "10.0.0.1"), inNamespace("other", workerNode("a", "a", "10.0.0.1"))}, fails: true},
		"WhatIsDecidedStaysAsItIs": {form: serving(), edit: func(csr *certificatesv1.CertificateSigningRequest) {
			csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateFailed}}
		}, objs: []client.Object{workerNode("a", "a", "10.0.0.1")}, condition: certificatesv1.CertificateFailed},
		"ATokenOfAMachineJoinsAsThat":    {form: join(), objs: []client.Object{joinToken("a", "abcdef", true)}, condition: certificatesv1.CertificateApproved},
		"AndAsNoOther":                   {form: join(), objs: []client.Object{joinToken("b", "abcdef", true)}, condition: certificatesv1.CertificateDenied, event: "b CertificateDenied"},
		"NorAfterItJoined":               {form: join(), objs: []client.Object{joinToken("a", "abcdef", true), workerNode("a", "a", "10.0.0.1")}, condition: certificatesv1.CertificateDenied, event: "joined already"},
		"ATokenOfNoMachineIsLeftAlone":   {form: join(), objs: []client.Object{joinToken("a", "abcdef", false)}},
		"ARenewalOfItsOwnIsApproved":     {form: renewal(), objs: []client.Object{workerNode("a", "a", "10.0.0.1")}, condition: certificatesv1.CertificateApproved},
		"AStrangerIsLeftAloneWithoutAny": {form: serving()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			csr := tc.form.csr(t, "r")
			csr.SetCreationTimestamp(metav1.NewTime(start))
			if tc.edit != nil {
				tc.edit(csr)
			}
			kube, events := fake.NewClientset(csr), &told{}
			r := newReconciler(t, kube, events, tc.objs...)
			res, err := r.Reconcile(t.Context(), Key{Ref: target.ClusterRef("c"), Name: "r"})
			if (err != nil) != tc.fails || (res.RequeueAfter > 0) != tc.again {
				t.Fatalf("%+v, error %v", res, err)
			}
			after, err := kube.CertificatesV1().CertificateSigningRequests().Get(t.Context(), "r", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var got certificatesv1.RequestConditionType
			for _, c := range after.Status.Conditions {
				got += c.Type
			}
			if got != tc.condition {
				t.Errorf("conditions %+v, want %q", after.Status.Conditions, tc.condition)
			}
			if all := strings.Join(*events, "\n"); !strings.Contains(all, tc.event) || tc.event == "" && all != "" {
				t.Errorf("events %q, want %q", all, tc.event)
			}
		})
	}
}

func inNamespace(ns string, o client.Object) client.Object {
	o.SetNamespace(ns)
	return o
}

func newReconciler(t *testing.T, kube *fake.Clientset, events *told, objs ...client.Object) *reconciler {
	t.Helper()
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	control := crfake.NewClientBuilder().WithScheme(s).WithObjects(objs...).
		WithIndex(&v1alpha1.WorkerNode{}, byName, nameOf).WithIndex(&v1alpha1.JoinToken{}, byToken, tokenOf).Build()
	return &reconciler{control: control, record: events, now: func() time.Time { return start }, connect: func(ctx context.Context, _ target.Ref) (cluster, error) {
		return cluster{kube: kube, classify: func(err error) error { return err }, request: func(name string) *certificatesv1.CertificateSigningRequest {
			csr, err := kube.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil
			}
			return csr
		}}, nil
	}}
}

func TestARequestThatChangedMeanwhileComesAgain(t *testing.T) {
	kube := fake.NewClientset(serving().csr(t, "r"))
	kube.PrependReactor("update", "certificatesigningrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, kerrors.NewConflict(schema.GroupResource{}, "r", nil)
	})
	r := newReconciler(t, kube, &told{}, workerNode("a", "a", "10.0.0.1"))
	if res, err := r.Reconcile(t.Context(), Key{Ref: target.ClusterRef("c"), Name: "r"}); err != nil || res.RequeueAfter == 0 {
		t.Errorf("%+v, error %v", res, err)
	}
}

func TestWithoutAConnectionNothingIsTriedAgain(t *testing.T) {
	r := newReconciler(t, fake.NewClientset(), &told{})
	r.connect = func(context.Context, target.Ref) (cluster, error) {
		return cluster{}, &target.Error{Kind: target.SecretNotFound}
	}
	if res, err := r.Reconcile(t.Context(), Key{}); err != nil || res.RequeueAfter > 0 {
		t.Errorf("%+v, error %v", res, err)
	}
}

func TestAddressesAreComparedAsAddresses(t *testing.T) {
	f := serving()
	f.template.IPAddresses = []net.IP{net.ParseIP("::ffff:10.0.0.1")}
	kube := fake.NewClientset(f.csr(t, "r"))
	r := newReconciler(t, kube, &told{}, workerNode("a", "a", "10.0.0.1"))
	if _, err := r.Reconcile(t.Context(), Key{Ref: target.ClusterRef("c"), Name: "r"}); err != nil {
		t.Fatal(err)
	}
	csr, err := kube.CertificatesV1().CertificateSigningRequests().Get(t.Context(), "r", metav1.GetOptions{})
	if err != nil || len(csr.Status.Conditions) != 1 || csr.Status.Conditions[0].Type != certificatesv1.CertificateApproved {
		t.Errorf("%+v, error %v", csr.Status, err)
	}
}
