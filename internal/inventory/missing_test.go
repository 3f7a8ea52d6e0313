package inventory

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/drover-dev/drover/apis/inventory/v1alpha1"
	localv1alpha1 "github.com/drover-dev/drover/apis/local/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// account is a cloud with VMs of the installation "ours". It finds VMs by their names.
type account struct {
	vms []VM
	// untagged VMs are found by their names, and not listed.
	untagged   []VM
	resources  []Resource
	listErr    error
	incomplete bool
	besideErr  error
	// asked are the names that Find got, per call.
	asked [][]string
}

func (a *account) List(context.Context, string) ([]VM, bool, error) {
	return a.vms, !a.incomplete, a.listErr
}

func (a *account) Find(_ context.Context, names []string) ([]VM, bool, error) {
	a.asked = append(a.asked, names)
	return a.untagged, true, nil
}

func (a *account) ListResources(context.Context, string) ([]Resource, bool, error) {
	return a.resources, true, a.besideErr
}

// onlyLister hides that an account can find VMs by their names.
type onlyLister struct{ Lister }

// claim returns the claim of a Machine to a VM in the account of the inventory, with changes.
func claim(name string, change ...func(*localv1alpha1.VirtualMachine)) client.Object {
	r := &localv1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	r.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: machinev1alpha1.SchemeGroupVersion.String(), Kind: "Machine", Name: "of-" + name, Controller: ptr.To(true)}})
	r.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "default"})
	r.Spec.ForProvider.Zone = ptr.To("a")
	meta.SetExternalName(r, name)
	for _, c := range change {
		c(r)
	}
	return r
}

func ofConfig(kind, name string) func(*localv1alpha1.VirtualMachine) {
	return func(r *localv1alpha1.VirtualMachine) {
		r.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: kind, Name: name})
	}
}

func inRegion(region string) func(*localv1alpha1.VirtualMachine) {
	return func(r *localv1alpha1.VirtualMachine) { r.Spec.ForProvider.Zone = &region }
}

// A scene is an inventory that looks repeatedly.
type scene struct {
	t         *testing.T
	inventory *localv1alpha1.VirtualMachineInventory
	cloud     *account
	lister    Lister
	claims    []client.Object
	at        time.Time
}

func newScene(t *testing.T, vms ...string) *scene {
	s := &scene{t: t, inventory: inventoryOf(v1alpha1.InventoryObservation{}, "ours"), cloud: &account{}, at: noon}
	s.lister = s.cloud
	s.inventory.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "default"})
	s.inventory.Spec.ForProvider.VirtualMachine.RegionPath, s.inventory.Spec.ForProvider.Region = "spec.forProvider.zone", "a"
	for _, name := range vms {
		s.cloud.vms = append(s.cloud.vms, vm(name, "ours"))
		s.claims = append(s.claims, claim(name))
	}
	return s
}

// look lets the inventory look at a cloud with these VMs only.
func (s *scene) look(after time.Duration, vms ...string) error {
	s.t.Helper()
	s.cloud.vms = nil
	for _, name := range vms {
		s.cloud.vms = append(s.cloud.vms, vm(name, "ours"))
	}
	return s.again(after)
}

func (s *scene) again(after time.Duration) error {
	s.t.Helper()
	s.at = s.at.Add(after)
	x := &connector[*localv1alpha1.VirtualMachineInventory]{
		connect: func(context.Context, *localv1alpha1.VirtualMachineInventory) (Lister, error) { return s.lister, nil },
		live:    fake.NewClientBuilder().WithScheme(scheme(s.t)).WithObjects(s.claims...).Build(),
		now:     func() time.Time { return s.at },
	}
	e, err := x.Connect(s.t.Context(), s.inventory)
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = e.Observe(s.t.Context(), s.inventory)
	return err
}

// missing returns the missing VMs, with a + after those that are confirmed.
func (s *scene) missing() string {
	out := ""
	for _, m := range s.inventory.Status.AtProvider.Missing {
		out += m.ExternalName
		if m.ConfirmedAt != nil {
			out += "+"
		}
	}
	return out
}

const apart = 5 * time.Minute // The interval of parameters().

func TestAMissingVMIsConfirmedByTwoLooksAnIntervalApart(t *testing.T) {
	s := newScene(t, "a", "b")
	for i, step := range []struct {
		after time.Duration
		there []string
		want  string
	}{
		{0, []string{"a", "b"}, ""},
		{apart, []string{"a"}, "b"},
		{apart - 2*time.Second, []string{"a"}, "b"},
		{2 * time.Second, []string{"a"}, "b+"},
		{apart, []string{"a"}, "b+"},
		{apart, []string{"a", "b"}, ""},
		{apart, []string{"a"}, "b"},
	} {
		if err := s.look(step.after, step.there...); err != nil || s.missing() != step.want {
			t.Errorf("look %d: missing %q, want %q; error %v", i, s.missing(), step.want, err)
		}
	}
	m := s.inventory.Status.AtProvider.Missing[0]
	if m.Namespace != "team" || m.Name != "b" || m.Machine != "of-b" {
		t.Errorf("the claim is %+v", m.Claim)
	}
}

func TestNoVMIsMissing(t *testing.T) {
	cases := map[string]struct {
		reason string
		// first are the VMs of the first look. Default: a, b and c.
		first []string
		then  func(*scene)
		there []string
	}{
		"IfTheListIsEmpty":                  {"the credentials may be of another account", nil, nil, nil},
		"IfMoreThanHalfAreMissing":          {"the list may be a part", nil, nil, []string{"a"}},
		"IfItWasNeverListed":                {"it may be younger than the looks", []string{"a", "b"}, nil, []string{"a", "b"}},
		"IfItIsFoundByItsName":              {"a user removed its tags", nil, func(s *scene) { s.cloud.untagged = []VM{{ExternalName: "c"}} }, []string{"a", "b"}},
		"IfItsClaimNamesAnotherRegion":      {"the inventory does not list that region", nil, func(s *scene) { s.claims[2] = claim("c", inRegion("b")) }, []string{"a", "b"}},
		"IfItsClaimNamesAnotherAccount":     {"the inventory does not list that account", nil, func(s *scene) { s.claims[2] = claim("c", ofConfig("ClusterProviderConfig", "other")) }, []string{"a", "b"}},
		"IfItsClaimNamesATeamsAccount":      {"a ProviderConfig with the name is another", nil, func(s *scene) { s.claims[2] = claim("c", ofConfig("ProviderConfig", "default")) }, []string{"a", "b"}},
		"IfTheInventoryMovedToAnotherPlace": {"its memory is of the place before", nil, func(s *scene) { s.inventory.Spec.ForProvider.Region = "b" }, []string{"a", "b"}},
		"IfItsClaimIsBeingDeleted": {"its Machine is being deleted", nil, func(s *scene) {
			s.claims[2] = claim("c", func(r *localv1alpha1.VirtualMachine) {
				r.Finalizers, r.DeletionTimestamp = []string{"x/y"}, &metav1.Time{Time: noon}
			})
		}, []string{"a", "b"}},
		"IfItsClaimIsGone":        {"nothing claims it", nil, func(s *scene) { s.claims = s.claims[:2] }, []string{"a", "b"}},
		"IfTheCollectorKnowsIt":   {"the collector deletes it", nil, func(s *scene) { s.inventory.Spec.ForProvider.Ignore = []string{"c"} }, []string{"a", "b"}},
		"IfTheMemoryIsUnreadable": {"a memory that is no memory is empty", nil, func(s *scene) { s.inventory.Status.AtProvider.Remembered = "not base64!" }, []string{"a", "b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "a", "b", "c")
			if tc.first == nil {
				tc.first = []string{"a", "b", "c"}
			}
			if err := s.look(0, tc.first...); err != nil {
				t.Fatal(err)
			}
			if tc.then != nil {
				tc.then(s)
			}
			for range 3 {
				if err := s.look(apart, tc.there...); err != nil {
					t.Fatal(err)
				}
				if s.missing() != "" {
					t.Fatalf("missing %q, although %s", s.missing(), tc.reason)
				}
			}
		})
	}
}

func TestALookThatFailsOrIsIncompleteConfirmsNothing(t *testing.T) {
	for name, broken := range map[string]func(*account){
		"Fails":      func(a *account) { a.listErr = errors.New("throttled") },
		"Incomplete": func(a *account) { a.incomplete = true },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "a", "b")
			_ = s.look(0, "a", "b")
			_ = s.look(apart, "a")
			broken(s.cloud)
			if err := s.look(2 * apart); err == nil || s.missing() != "b" {
				t.Errorf("missing %q, error %v", s.missing(), err)
			}
		})
	}
}

func TestVMsOfAnotherAccountAreNotRememberedAsOurs(t *testing.T) {
	s := newScene(t, "a", "b")
	for _, other := range []string{"x", "y", "z"} {
		s.claims = append(s.claims, claim(other, ofConfig("ClusterProviderConfig", "other")))
	}
	_ = s.look(0, "a", "b")
	// The credentials are replaced by those of the other account.
	for range 5 {
		if err := s.look(apart, "x", "y", "z"); err != nil || s.missing() != "" || s.inventory.Status.AtProvider.MissingDoubt == "" {
			t.Fatalf("missing %q, doubt %q, error %v", s.missing(), s.inventory.Status.AtProvider.MissingDoubt, err)
		}
	}
	if err := s.look(apart, "a", "b"); err != nil || s.inventory.Status.AtProvider.MissingDoubt != "" {
		t.Errorf("the doubt stays: %q, %v", s.inventory.Status.AtProvider.MissingDoubt, err)
	}
}

func TestACloudThatFindsNothingByNameStillMisses(t *testing.T) {
	s := newScene(t, "a", "b")
	s.lister = onlyLister{s.cloud}
	_ = s.look(0, "a", "b")
	_ = s.look(apart, "a")
	_ = s.look(apart+time.Second, "a")
	if s.missing() != "b+" || len(s.cloud.asked) > 0 {
		t.Errorf("missing %q, asked for %v", s.missing(), s.cloud.asked)
	}
}

func TestAnErrorOfTheCloudIsTheSameAsLongAsItsCauseIs(t *testing.T) {
	s := newScene(t, "a")
	said := map[string]bool{}
	cause := errors.New("no rights")
	for i := range 3 {
		s.cloud.listErr = fmt.Errorf("operation error EC2: DescribeInstances, StatusCode: 403, RequestID: 0000-%d, %w", i, cause)
		err := s.again(apart)
		if !errors.Is(err, cause) {
			t.Errorf("error %v", err)
		}
		said[fmt.Sprint(err)] = true
	}
	if len(said) != 1 || !said["cannot list VMs: operation error EC2: DescribeInstances, StatusCode: 403, request ID, no rights"] {
		t.Errorf("it reports %v", said)
	}
}

func TestTheStateOfAClaimedVMIsConfirmedByTwoLooks(t *testing.T) {
	s := newScene(t, "a", "b")
	set := func(state State, text string) {
		s.cloud.vms[1].State, s.cloud.vms[1].StateText = state, text
	}
	states := func() string {
		out := ""
		for _, v := range s.inventory.Status.AtProvider.States {
			out += fmt.Sprintf("%s %s (%s) %t;", v.ExternalName, v.State, v.Text, v.ConfirmedAt != nil)
		}
		return out
	}
	for i, step := range []struct {
		state State
		text  string
		after time.Duration
		want  string
	}{
		{StateRunning, "running", 0, ""},
		{StateStopped, "stopped", apart, "b Stopped (stopped) false;"},
		{StateStopped, "stopped by a user", apart + time.Second, "b Stopped (stopped by a user) true;"},
		{StateFailed, "failed", apart, "b Failed (failed) false;"},
		{StateRunning, "running", apart, ""},
		{StatePending, "pending", apart, ""},
		{StateUnknown, "", apart, ""},
	} {
		s.cloud.vms = []VM{vm("a", "ours"), vm("b", "ours"), vm("unclaimed", "ours")}
		s.cloud.vms[2].State = StateStopped
		set(step.state, step.text)
		if err := s.again(step.after); err != nil || states() != step.want {
			t.Errorf("look %d: %q, want %q; error %v", i, states(), step.want, err)
		}
	}
}

func TestResourcesThatNothingUsesAreReported(t *testing.T) {
	s := newScene(t, "a")
	tags := map[string]string{machinev1alpha1.TagInstallation: "ours", machinev1alpha1.TagNamespace: "team", machinev1alpha1.TagMachine: "m"}
	s.cloud.resources = []Resource{
		{Type: "Volume", ID: "vol-1", Tags: tags},
		{Type: "Volume", ID: "vol-2", Tags: tags, AttachedTo: "i-1"},
		{Type: "Volume", ID: "vol-3", Tags: map[string]string{machinev1alpha1.TagInstallation: "theirs"}},
	}
	if err := s.look(0, "a"); err != nil {
		t.Fatal(err)
	}
	o := s.inventory.Status.AtProvider
	if len(o.Resources) != 1 || o.ResourceCount != 1 || o.Resources[0].ID != "vol-1" || o.Resources[0].Machine != "m" || o.Resources[0].ConfirmedAt != nil {
		t.Fatalf("%+v", o.Resources)
	}
	s.cloud.besideErr = errors.New("UnauthorizedOperation, RequestID: 0f1e-22")
	if err := s.look(time.Hour, "a"); err != nil {
		t.Fatal(err)
	}
	if o = s.inventory.Status.AtProvider; len(o.Resources) != 1 || o.Resources[0].ConfirmedAt != nil || o.ResourcesProblem != "UnauthorizedOperation, request ID" {
		t.Errorf("%+v, problem %q", o.Resources, o.ResourcesProblem)
	}
	s.cloud.besideErr = nil
	if err := s.look(time.Minute, "a"); err != nil {
		t.Fatal(err)
	}
	if o = s.inventory.Status.AtProvider; o.Resources[0].ConfirmedAt == nil || o.ResourcesProblem != "" {
		t.Errorf("%+v, problem %q", o.Resources, o.ResourcesProblem)
	}
}

func TestTheListsAndTheMemoryAreBounded(t *testing.T) {
	m := memory{}
	for i := range v1alpha1.MaxRemembered + 10 {
		m.add(fmt.Sprint("vm-", i))
	}
	if len(m) != v1alpha1.MaxRemembered || len(m.String()) > 33000 || len(recall(m.String())) != len(m) {
		t.Errorf("%d remembered in %d bytes", len(m), len(m.String()))
	}
	l := Look{At: noon, Claims: map[string]v1alpha1.Claim{}, Ours: map[string]bool{}, lists: true}
	before := v1alpha1.InventoryObservation{}
	remembered := memory{}
	for i := range 300 {
		there, gone := fmt.Sprint("there-", i), fmt.Sprint("gone-", i)
		remembered.add(there)
		remembered.add(gone)
		l.Claims[there], l.Claims[gone] = v1alpha1.Claim{ExternalName: there}, v1alpha1.Claim{ExternalName: gone}
		v := vm(there, "ours")
		v.State = StateStopped
		l.VMs = append(l.VMs, v)
		l.Resources = append(l.Resources, Resource{Type: "Volume", ID: fmt.Sprint(i), Tags: v.Tags})
	}
	before.Remembered = remembered.String()
	_, unlisted := l.toProve(before, parameters())
	for _, c := range unlisted {
		l.Ours[c.ExternalName] = true
	}
	o := l.After(before, parameters())
	if len(unlisted) != 100 || len(o.Missing) != 100 || len(o.States) != 100 || len(o.Resources) != 100 || o.ResourceCount != 300 {
		t.Errorf("%d read, %d missing, %d states, %d of %d resources", len(unlisted), len(o.Missing), len(o.States), len(o.Resources), o.ResourceCount)
	}
}

func TestAClaimIsOursByItsConfigurationAndPlace(t *testing.T) {
	p := parameters()
	p.VirtualMachine.RegionPath, p.Region = "spec.forProvider.region", "r"
	p.VirtualMachine.NamespacePath, p.Namespace = "spec.forProvider.manifest.metadata.namespace", "vms"
	with := func(change func(map[string]any)) *unstructured.Unstructured {
		spec := map[string]any{
			"providerConfigRef": map[string]any{"kind": "ProviderConfig", "name": "c"},
			"forProvider":       map[string]any{"region": "r", "manifest": map[string]any{"metadata": map[string]any{"namespace": "vms"}}},
		}
		if change != nil {
			change(spec)
		}
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "ns"}, "spec": spec}}
	}
	ref := &xpv2.ProviderConfigReference{Kind: "ProviderConfig", Name: "c"}
	for name, tc := range map[string]struct {
		claim     *unstructured.Unstructured
		namespace string
		ref       *xpv2.ProviderConfigReference
		want      bool
	}{
		"AllIsTheSame":             {with(nil), "ns", ref, true},
		"AnotherNamespacesConfig":  {with(nil), "other", ref, false},
		"NoConfiguration":          {with(nil), "ns", nil, false},
		"WithoutARegion":           {with(func(s map[string]any) { s["forProvider"] = map[string]any{} }), "ns", ref, false},
		"WithoutAConfiguration":    {with(func(s map[string]any) { delete(s, "providerConfigRef") }), "ns", ref, false},
		"AnotherKindOfRegion":      {with(func(s map[string]any) { s["forProvider"].(map[string]any)["region"] = int64(1) }), "ns", ref, false},
		"AnotherNamespaceOfTheVMs": {with(func(s map[string]any) { s["forProvider"].(map[string]any)["manifest"] = map[string]any{} }), "ns", ref, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isOurs(tc.claim, tc.namespace, tc.ref, p); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}

// TestNoVMThatIsThereIsEverConfirmedMissing runs random histories of VMs that exist all the time,
// of lists that lack some of them, and of lists of another account.
func TestNoVMThatIsThereIsEverConfirmedMissing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newScene(t, "a", "b", "c", "d")
		gone := map[string]bool{}
		for range rapid.IntRange(1, 25).Draw(rt, "looks") {
			if rapid.IntRange(0, 9).Draw(rt, "a VM goes") == 0 {
				gone[rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "which")] = true
			}
			s.cloud.vms, s.cloud.untagged = nil, nil
			mixedUp := rapid.IntRange(0, 4).Draw(rt, "mixed up") == 0
			for _, name := range []string{"a", "b", "c", "d"} {
				switch {
				case gone[name]:
				case mixedUp: // Another account has none of them.
				case rapid.IntRange(0, 4).Draw(rt, name+" has no tags") == 0:
					s.cloud.untagged = append(s.cloud.untagged, VM{ExternalName: name})
				default:
					s.cloud.vms = append(s.cloud.vms, vm(name, "ours"))
				}
			}
			_ = s.again(time.Duration(rapid.IntRange(1, 20).Draw(rt, "minutes")) * time.Minute)
			for _, m := range s.inventory.Status.AtProvider.Missing {
				if !gone[m.ExternalName] {
					rt.Fatalf("%s is missing, and is there", m.ExternalName)
				}
			}
			before := s.inventory.Status.AtProvider.DeepCopy()
			if err := s.again(0); err != nil {
				rt.Fatal(err)
			}
			if d := cmp.Diff(*before, s.inventory.Status.AtProvider); d != "" {
				rt.Fatalf("the same look reports something else (-before +after):\n%s", d)
			}
		}
	})
}
