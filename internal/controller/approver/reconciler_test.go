package approver

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	certificatesv1 "k8s.io/api/certificates/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/workernode"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type reported []string

func (e *reported) Event(obj runtime.Object, ev event.Event) {
	o, _ := obj.(client.Object)
	*e = append(*e, o.GetName()+" "+string(ev.Reason)+": "+ev.Message)
}
func (e *reported) WithAnnotations(...string) event.Recorder { return e }

var (
	config           = machinev1alpha1.ClusterReference{Kind: "ClusterProviderConfig", Name: "c"}
	machineDeletedAt = metav1.NewTime(start)
)

// An observation is a Machine in the cache, with the observations of its controller.
type observation struct {
	*machinev1alpha1.Machine
	joined     string
	address    string
	hostname   string
	guest      bool
	cloudNamed bool
	// labeled is the name of a Node that has the label with the Machine's UID.
	labeled    string
	unobserved bool
	// identity that the VM resource has.
	identity *machinev1alpha1.MachineIdentity
}

// observe returns a Machine of the configuration c. Its UID derives from its name.
func observe(name string, edits ...func(*observation)) observation {
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
	m.Spec.ClusterRef = config
	o := observation{Machine: m, address: "10.0.0.1"}
	for _, edit := range edits {
		edit(&o)
	}
	return o
}

func nodeOfMachine(name string) string { return names.OfMachine(name, types.UID("uid-"+name)) }

func joined(o *observation)   { o.joined = nodeOfMachine(o.Name) }
func unknown(o *observation)  { o.unobserved = true }
func otherUID(o *observation) { o.UID = "uid-other" }
func deleting(o *observation) {
	o.DeletionTimestamp, o.Finalizers = &machineDeletedAt, []string{machinev1alpha1.FinalizerTerminator}
}

func address(a string) func(*observation)      { return func(o *observation) { o.address = a } }
func inNamespace(ns string) func(*observation) { return func(o *observation) { o.Namespace = ns } }

// forged sets a status that a tenant wrote.
func forged(o *observation) {
	o.Status.NodeRef = &machinev1alpha1.NodeReference{Kind: "Node", Name: nodeOfMachine(o.Name)}
	o.Status.Addresses = []machinev1alpha1.Address{{Type: "InternalIP", Address: "10.0.0.1"}}
}

func identityOf(machine string) *machinev1alpha1.MachineIdentity {
	return &machinev1alpha1.MachineIdentity{UID: types.UID("uid-" + machine), NodeName: nodeOfMachine(machine)}
}

// claims sets the identity of another Machine in the status.
func claims(machine string) func(*observation) {
	return func(o *observation) { o.Status.Identity = identityOf(machine) }
}

// tookOver makes the Machine one that took over the VM of another Machine.
func tookOver(machine string) func(*observation) {
	return func(o *observation) { o.Status.Identity, o.identity = identityOf(machine), identityOf(machine) }
}

func joinedAs(machine string) func(*observation) {
	return func(o *observation) { o.joined = nodeOfMachine(machine) }
}

func ofGuest(o *observation)   { o.guest = true }
func notJoined(o *observation) { o.joined = "" }

// named makes the Machine one that joined as a Node that its cloud named.
func named(node string) func(*observation) {
	return func(o *observation) { o.cloudNamed, o.joined, o.hostname, o.labeled = true, node, node, node }
}
func labeled(node string) func(*observation)  { return func(o *observation) { o.labeled = node } }
func hostname(name string) func(*observation) { return func(o *observation) { o.hostname = name } }

// observations of Machines, by their UIDs.
type observations map[types.UID]observation

func (all observations) Addresses(uid types.UID) ([]workernode.Address, string, bool) {
	o, ok := all[uid]
	if !ok || o.unobserved {
		return nil, "", false
	}
	if o.address == "" {
		return nil, o.joined, true
	}
	out := []workernode.Address{{Type: "InternalIP", Address: o.address, Guest: o.guest}}
	if o.hostname != "" {
		out = append(out, workernode.Address{Type: "Hostname", Address: o.hostname})
	}
	return out, o.joined, true
}

func (all observations) Identity(uid types.UID) (*machinev1alpha1.MachineIdentity, bool) {
	o, ok := all[uid]
	return o.identity, ok && !o.unobserved
}

func (all observations) CloudNames(uid types.UID) (isCloud, isKnown bool) {
	o, ok := all[uid]
	return o.cloudNamed, ok && !o.unobserved
}

// tokenAs is a request by the token of a Machine for a Node's name.
func tokenAs(token, node string) *form {
	f := join().of(node)
	f.spec.Username = bootstrapUser + names.TokenID(types.UID("uid-"+token))
	return f
}

// joinWith is a request by the token of a Machine for the Node of another.
func joinWith(token, node string) *form {
	f := join().of(nodeOfMachine(node))
	f.spec.Username = "system:bootstrap:" + names.TokenID(types.UID("uid-"+token))
	return f
}

func TestReconcile(t *testing.T) {
	a := nodeOfMachine("a")
	elsewhere := func(o *observation) { o.Spec.ClusterRef.Name = "other" }
	alias := func(o *observation) { o.Spec.ClusterRef.Name = "alias" }
	old := func(csr *certificatesv1.CertificateSigningRequest) {
		csr.SetCreationTimestamp(metav1.NewTime(start.Add(-2 * reportAfter)))
	}
	leftNode := func(o *observation) {
		deleting(o)
		o.Status.Deletion = &machinev1alpha1.DeletionStatus{Stage: machinev1alpha1.DeletionDeletingVM}
	}
	cases := map[string]struct {
		form      *form
		edit      func(*certificatesv1.CertificateSigningRequest)
		machines  []observation
		condition certificatesv1.RequestConditionType
		event     string
		again     bool
		fails     bool
	}{
		"ItsOwnIsApproved":                     {form: serving().of(a), machines: []observation{observe("a", joined)}, condition: certificatesv1.CertificateApproved},
		"AnothersAddressIsDeniedAndReported":   {form: serving().of(a), machines: []observation{observe("a", joined, address("10.0.0.2"))}, condition: certificatesv1.CertificateDenied, event: "a CertificateDenied: certificate signing request r: the IP address 10.0.0.1"},
		"ANodeOfAnotherClusterIsLeftAlone":     {form: serving().of(a), machines: []observation{observe("a", joined, elsewhere)}},
		"ANodeThatIsNotKnownYetComesAgain":     {form: serving().of(a), machines: []observation{observe("a")}, again: true},
		"AndIsReportedAfterAWhile":             {form: serving().of(a), edit: old, machines: []observation{observe("a")}, again: true, event: "a CertificateWaits: a certificate is not approved yet: the Node a"},
		"AForgedStatusIsNoProofOfTheNode":      {form: serving().of(a), machines: []observation{observe("a", forged)}, again: true},
		"NorOfAnAddress":                       {form: serving().of(a), machines: []observation{observe("a", joined, forged, address("10.0.0.2"))}, condition: certificatesv1.CertificateDenied, event: "the IP address 10.0.0.1"},
		"NorWhereTheCloudReportsNone":          {form: serving().of(a), machines: []observation{observe("a", joined, forged, address(""))}, again: true},
		"AMachineThatIsNotReconciledIsRetried": {form: serving().of(a), machines: []observation{observe("a", joined, forged, unknown)}, fails: true},
		"AndItsEventReportsThatAfterAWhile":    {form: serving().of(a), edit: old, machines: []observation{observe("a", joined, unknown)}, fails: true, event: "a CertificateWaits: a certificate is not approved yet: the Machine has not been reconciled"},
		"TwoMachinesThatClaimOneNameAreNone":   {form: serving().of(a), machines: []observation{observe("a", joined), observe("a", joined, inNamespace("other"))}, fails: true},
		"ANodeThatIsDrainedHasItStill":         {form: serving().of(a), machines: []observation{observe("a", joined, deleting)}, condition: certificatesv1.CertificateApproved},
		"ANodeThatWasLeftIsLeftAlone":          {form: serving().of(a), machines: []observation{observe("a", joined, leftNode)}},
		"WhatIsDecidedStaysAsItIs": {form: serving().of(a), edit: func(csr *certificatesv1.CertificateSigningRequest) {
			csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateFailed}}
		}, machines: []observation{observe("a", joined)}, condition: certificatesv1.CertificateFailed},
		"ATokenOfAMachineJoinsAsThat":            {form: joinWith("a", "a"), machines: []observation{observe("a")}, condition: certificatesv1.CertificateApproved},
		"AndAsNoOther":                           {form: joinWith("b", "a"), machines: []observation{observe("b")}, condition: certificatesv1.CertificateDenied, event: "b CertificateDenied"},
		"NorAfterItJoined":                       {form: joinWith("a", "a"), machines: []observation{observe("a", joined)}, condition: certificatesv1.CertificateDenied, event: "joined already"},
		"NorWhenItsStatusHasANode":               {form: joinWith("a", "a"), machines: []observation{observe("a", forged, unknown)}, condition: certificatesv1.CertificateDenied, event: "joined already"},
		"NorOnceItIsDeleted":                     {form: joinWith("a", "a"), machines: []observation{observe("a", deleting)}, condition: certificatesv1.CertificateDenied, event: "a CertificateDenied: certificate signing request r: the machine is being deleted"},
		"NorAfterItsNodeWasLeft":                 {form: joinWith("a", "a"), machines: []observation{observe("a", leftNode)}, condition: certificatesv1.CertificateDenied, event: "being deleted"},
		"NorBeforeItIsReconciled":                {form: joinWith("a", "a"), machines: []observation{observe("a", unknown)}, fails: true},
		"ATokenOfTwoMachinesIsOfNone":            {form: joinWith("a", "a"), machines: []observation{observe("a"), observe("a", inNamespace("other"))}, fails: true},
		"ATokenOfNoMachineIsLeftAlone":           {form: joinWith("a", "a"), machines: []observation{observe("a", otherUID)}},
		"ARenewalOfItsOwnIsApproved":             {form: renewal().of(a), machines: []observation{observe("a", joined)}, condition: certificatesv1.CertificateApproved},
		"ANodeThatAMachineTookOverIsItsOwn":      {form: serving().of(a), machines: []observation{observe("b", tookOver("a"), joinedAs("a"))}, condition: certificatesv1.CertificateApproved},
		"AStatusThatClaimsItIsNotEnough":         {form: serving().of(a), machines: []observation{observe("b", claims("a"), joinedAs("a"))}},
		"AndKeepsNobodyFromHisOwn":               {form: serving().of(a), machines: []observation{observe("a", joined), observe("b", claims("a"), address("10.0.0.2"))}, condition: certificatesv1.CertificateApproved},
		"AClaimWaitsUntilItsMachineIsReconciled": {form: serving().of(a), machines: []observation{observe("b", claims("a"), unknown)}, fails: true},
		"AStrangerIsLeftAloneWithoutAny":         {form: serving().of(a)},

		"AnAddressOfAnotherMachineWaits":             {form: serving().of(a), machines: []observation{observe("a", joined), observe("b")}, again: true},
		"AndItsEventNamesTheOther":                   {form: serving().of(a), edit: old, machines: []observation{observe("a", joined), observe("b")}, again: true, event: "10.0.0.1 is also that of the Machine b"},
		"UnlessThatIsInAnotherNamespace":             {form: serving().of(a), edit: old, machines: []observation{observe("a", joined), observe("b", inNamespace("secret"))}, again: true, event: "also that of a Machine of another namespace"},
		"ATerminatingMachineHasItsAddressStill":      {form: serving().of(a), machines: []observation{observe("a", joined), observe("b", leftNode)}, again: true},
		"ByAnotherConfigurationOfTheSameClusterToo":  {form: serving().of(a), machines: []observation{observe("a", joined), observe("b", alias)}, again: true},
		"ButNotOfAnotherCluster":                     {form: serving().of(a), machines: []observation{observe("a", joined), observe("b", elsewhere)}, condition: certificatesv1.CertificateApproved},
		"AGuestTakesNoAddressOfAnotherCloudAway":     {form: serving().of(a), machines: []observation{observe("a", joined), observe("b", ofGuest)}, condition: certificatesv1.CertificateApproved},
		"AForgedStatusTakesNoneAway":                 {form: serving().of(a), machines: []observation{observe("a", joined), observe("b", forged, address("10.0.0.2"))}, condition: certificatesv1.CertificateApproved},
		"NorWhereOnlyGuestsReportAddresses":          {form: serving().of(a), machines: []observation{observe("a", joined, ofGuest), observe("b", forged, address("10.0.0.2"))}, condition: certificatesv1.CertificateApproved},
		"ExceptBeforeTheOtherIsReconciled":           {form: serving().of(a), machines: []observation{observe("a", joined, ofGuest), observe("b", forged, unknown)}, again: true},
		"ANodeThatTheCloudNamedIsFoundByItsLabel":    {form: serving().of("ip-1"), machines: []observation{observe("a", named("ip-1"))}, condition: certificatesv1.CertificateApproved},
		"NotIfDroverNamesNodes":                      {form: serving().of("ip-1"), machines: []observation{observe("a", joined, labeled("ip-1"))}},
		"NotIfAnotherNodeIsProven":                   {form: serving().of("ip-2"), machines: []observation{observe("a", named("ip-1"), labeled("ip-2"))}, condition: certificatesv1.CertificateDenied, event: "Node is ip-1"},
		"NotIfTheCloudReportsAnotherName":            {form: serving().of("ip-1"), machines: []observation{observe("a", named("ip-1"), hostname("ip-9"))}, again: true},
		"NotBeforeTheMachineOfTheCloudIsReconciled":  {form: serving().of("ip-1"), machines: []observation{observe("a", named("ip-1"), unknown)}, fails: true},
		"NotAfterItsNodeWasLeft":                     {form: serving().of("ip-1"), machines: []observation{observe("a", named("ip-1"), leftNode)}},
		"ATokenWaitsWhileAVMIsItsNode":               {form: tokenAs("a", nodeOfMachine("a")), machines: []observation{observe("a", labeled(nodeOfMachine("a")))}, again: true},
		"ButNotForANodeOfAnotherName":                {form: tokenAs("a", nodeOfMachine("a")), machines: []observation{observe("a", labeled("another"))}, condition: certificatesv1.CertificateApproved},
		"ATokenOfACloudMachineHasTheNameOfTheCloud":  {form: tokenAs("a", "ip-1"), machines: []observation{observe("a", named("ip-1"), notJoined)}, condition: certificatesv1.CertificateApproved},
		"AndNoOtherNameThanTheClouds":                {form: tokenAs("a", "ip-2"), machines: []observation{observe("a", named("ip-1"), notJoined)}, condition: certificatesv1.CertificateDenied, event: "must be of a name that the cloud reports"},
		"NorTheNameThatIsAnotherMachinesNodeAlready": {form: tokenAs("a", "ip-1"), machines: []observation{observe("a", named("ip-1"), notJoined), observe("b", named("ip-1"), address("10.0.0.2"))}, again: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			csr := tc.form.csr(t, "r")
			csr.SetCreationTimestamp(metav1.NewTime(start))
			if tc.edit != nil {
				tc.edit(csr)
			}
			kube, events := fake.NewClientset(csr), &reported{}
			r := newReconciler(t, kube, events, tc.machines...)
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

func newReconciler(t *testing.T, kube *fake.Clientset, events *reported, machines ...observation) *reconciler {
	t.Helper()
	s := runtime.NewScheme()
	if err := machinev1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	b, observed := crfake.NewClientBuilder().WithScheme(s), observations{}
	for _, o := range machines {
		b = b.WithObjects(o.Machine)
		observed[o.GetUID()] = o
	}
	control := b.WithIndex(&machinev1alpha1.Machine{}, byNode, nodeKey).WithIndex(&machinev1alpha1.Machine{}, byToken, tokenKey).
		WithIndex(&machinev1alpha1.Machine{}, byCluster, clusterKey).Build()
	return &reconciler{control: control, observed: observed, record: events, now: func() time.Time { return start }, connect: func(ctx context.Context, _ target.Ref) (cluster, error) {
		return cluster{kube: kube, classify: func(err error) error { return err }, token: func(_ context.Context, node string) (types.UID, error) {
			for _, o := range machines {
				if o.labeled == node {
					return o.UID, nil
				}
			}
			return "", nil
		}, client: func(context.Context) (v1alpha1.ClientCertificatesStatus, error) {
			return v1alpha1.ClientCertificatesStatus{Policy: v1alpha1.ClientCertificatesApprove}, nil
		}, policy: policy{guest: prefixes("10.0.0.0/24")}, sharing: []target.Ref{target.ClusterRef("c"), target.ClusterRef("alias")}, request: func(name string) *certificatesv1.CertificateSigningRequest {
			csr, err := kube.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil
			}
			return csr
		}}, nil
	}}
}

func TestARequestThatChangedMeanwhileComesAgain(t *testing.T) {
	kube := fake.NewClientset(serving().of(nodeOfMachine("a")).csr(t, "r"))
	kube.PrependReactor("update", "certificatesigningrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, kerrors.NewConflict(schema.GroupResource{}, "r", nil)
	})
	r := newReconciler(t, kube, &reported{}, observe("a", joined))
	if res, err := r.Reconcile(t.Context(), Key{Ref: target.ClusterRef("c"), Name: "r"}); err != nil || res.RequeueAfter == 0 {
		t.Errorf("%+v, error %v", res, err)
	}
}

func TestWithoutAConnectionNothingIsTriedAgain(t *testing.T) {
	r := newReconciler(t, fake.NewClientset(), &reported{})
	r.connect = func(context.Context, target.Ref) (cluster, error) {
		return cluster{}, &target.Error{Kind: target.SecretNotFound}
	}
	if res, err := r.Reconcile(t.Context(), Key{}); err != nil || res.RequeueAfter > 0 {
		t.Errorf("%+v, error %v", res, err)
	}
}

func TestAddressesAreComparedAsAddresses(t *testing.T) {
	f := serving().of(nodeOfMachine("a"))
	f.template.IPAddresses = []net.IP{net.ParseIP("::ffff:10.0.0.1")}
	kube := fake.NewClientset(f.csr(t, "r"))
	r := newReconciler(t, kube, &reported{}, observe("a", joined))
	if _, err := r.Reconcile(t.Context(), Key{Ref: target.ClusterRef("c"), Name: "r"}); err != nil {
		t.Fatal(err)
	}
	csr, err := kube.CertificatesV1().CertificateSigningRequests().Get(t.Context(), "r", metav1.GetOptions{})
	if err != nil || len(csr.Status.Conditions) != 1 || csr.Status.Conditions[0].Type != certificatesv1.CertificateApproved {
		t.Errorf("%+v, error %v", csr.Status, err)
	}
}

func TestAMachineIsWatchedForItsNodeAndItsAddresses(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*observation)
		want bool
	}{
		"ANodeOrAnAddressMayEndAWait": {forged, true},
		"TheRestOfAStatusDoesNot":     {func(o *observation) { o.Status.Phase = machinev1alpha1.MachineRunning }, false},
		"NorDoesADeletion":            {deleting, false},
	} {
		t.Run(name, func(t *testing.T) {
			was, is := observe("a"), observe("a", tc.edit)
			if got := machineChanged().Update(ctrlevent.TypedUpdateEvent[*machinev1alpha1.Machine]{ObjectOld: was.Machine, ObjectNew: is.Machine}); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
	if !machineChanged().Create(ctrlevent.TypedCreateEvent[*machinev1alpha1.Machine]{}) {
		t.Error("a Machine that is new is not looked at")
	}
	if machineChanged().Delete(ctrlevent.TypedDeleteEvent[*machinev1alpha1.Machine]{}) {
		t.Error("a Machine that is gone is looked at")
	}
}

func TestClientCertificatesAreLeftAloneWhereThePolicyIsToIgnoreThem(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		form   *form
		policy v1alpha1.ClientCertificatePolicy
		err    error
		want   certificatesv1.RequestConditionType
	}{
		"ThoseThatWouldBeApproved":       {form: joinWith("a", "a"), policy: v1alpha1.ClientCertificatesIgnore},
		"ThoseThatWouldBeDenied":         {form: joinWith("b", "a"), policy: v1alpha1.ClientCertificatesIgnore},
		"AllWhileTheRightsAreNotKnown":   {form: joinWith("a", "a"), err: broken},
		"NoneWhereThePolicyIsApprove":    {form: joinWith("a", "a"), policy: v1alpha1.ClientCertificatesApprove, want: certificatesv1.CertificateApproved},
		"ServingCertificatesAreNoneOfIt": {form: serving().of(nodeOfMachine("c")), policy: v1alpha1.ClientCertificatesIgnore, want: certificatesv1.CertificateApproved},
	} {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientset(tc.form.csr(t, "r"))
			r := newReconciler(t, kube, &reported{}, observe("a"), observe("b", address("10.0.0.2")), observe("c", joined))
			if tc.form.spec.SignerName == certificatesv1.KubeletServingSignerName {
				r = newReconciler(t, kube, &reported{}, observe("c", joined))
			}
			connect := r.connect
			r.connect = func(ctx context.Context, ref target.Ref) (cluster, error) {
				c, err := connect(ctx, ref)
				c.client = func(context.Context) (v1alpha1.ClientCertificatesStatus, error) {
					return v1alpha1.ClientCertificatesStatus{Policy: tc.policy}, tc.err
				}
				return c, err
			}
			if _, err := r.Reconcile(t.Context(), Key{Ref: target.ClusterRef("c"), Name: "r"}); !errors.Is(err, tc.err) {
				t.Fatal(err)
			}
			csr, err := kube.CertificatesV1().CertificateSigningRequests().Get(t.Context(), "r", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var got certificatesv1.RequestConditionType
			for _, c := range csr.Status.Conditions {
				got += c.Type
			}
			if got != tc.want {
				t.Errorf("conditions %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAMachineThatMayNotUseTheClusterGetsNoCertificate(t *testing.T) {
	kube := fake.NewClientset(serving().of(nodeOfMachine("a")).csr(t, "r"))
	events := &reported{}
	r := newReconciler(t, kube, events, observe("a", joined))
	allowed := r.connect
	r.connect = func(ctx context.Context, ref target.Ref) (cluster, error) {
		c, err := allowed(ctx, ref)
		c.admit = func(m *machinev1alpha1.Machine) error {
			return &target.Error{Kind: target.NotAllowed, Ref: ref, Detail: "not for " + m.GetNamespace()}
		}
		return c, err
	}
	res, err := r.Reconcile(t.Context(), Key{Ref: target.ClusterRef("c"), Name: "r"})
	csr, gerr := kube.CertificatesV1().CertificateSigningRequests().Get(t.Context(), "r", metav1.GetOptions{})
	if err != nil || gerr != nil || res.RequeueAfter == 0 || len(csr.Status.Conditions) > 0 {
		t.Fatalf("%+v, errors %v and %v, conditions %+v", res, err, gerr, csr.Status.Conditions)
	}
	r.connect = allowed
	if _, err := r.Reconcile(t.Context(), Key{Ref: target.ClusterRef("c"), Name: "r"}); err != nil {
		t.Fatal(err)
	}
	if csr, err = kube.CertificatesV1().CertificateSigningRequests().Get(t.Context(), "r", metav1.GetOptions{}); err != nil || len(csr.Status.Conditions) != 1 {
		t.Errorf("conditions %+v, error %v once it is allowed", csr.Status.Conditions, err)
	}
}
