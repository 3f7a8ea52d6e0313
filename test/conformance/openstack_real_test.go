package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	fake "github.com/drover-dev/drover/test/fakes/openstack"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/guest"
	"github.com/drover-dev/drover/test/openstack/real"
	"github.com/drover-dev/drover/test/patience"
)

// realOpenStack is the OpenStack of "make openstack". Its hypervisor only pretends to run servers: guests of the local cloud
// stand in for them.
type realOpenStack struct {
	entry
	guests
	cloud *real.Cloud
	end   context.CancelFunc
}

func init() { register(&realOpenStack{entry: "openstack"}) }

// atGateway is a remark on cases that an OpenStack cannot be brought to by itself.
const atGateway = "A gateway in front of the OpenStack refuses the calls, or loses the response of a call that Nova carried out: the OpenStack has no rate limit, and loses no response by itself"

func (*realOpenStack) Provider() string { return "openstack-real" }

// Absent returns why the suite cannot test the cloud, or "".
func (*realOpenStack) Absent() string {
	if real.IsThere() {
		return ""
	}
	return "make openstack CONFORMANCE=1 runs it"
}

func (*realOpenStack) Backing() Backing { return realAPI }

func (o *realOpenStack) Install(ctx context.Context, p *kit.Plane) (err error) {
	o.host = newHost(p)
	if o.cloud, err = real.Open(ctx); err != nil {
		return err
	}
	o.cloud.OnReboot = func(id string) { o.restart(o.guestOf(id)) }
	var life context.Context
	life, o.end = context.WithCancel(context.WithoutCancel(ctx))
	go o.cloud.Watch(life, o.boot, func(s real.Server) { o.guests.end(o.guestOf(s.ID)) }, o.host.Failed)
	return installOpenStack(ctx, p)
}

func (o *realOpenStack) Close() {
	if o.cloud != nil {
		o.end()
		o.cloud.Close()
	}
}

// guestOf returns the ID of the guest of a server.
func (o *realOpenStack) guestOf(id string) string { return o.Provider() + "/" + id }

// boot starts the guest of a server that Nova built.
func (o *realOpenStack) boot(s real.Server) {
	if len(s.UserData) == 0 {
		return
	}
	o.start(guest.Request{
		ID: o.guestOf(s.ID), Name: s.Name, Address: s.IP, UserData: s.UserData, ProviderID: "openstack:///" + s.ID,
		Metadata: answer("/openstack/latest/meta_data.json", fmt.Sprintf(`{"random_seed": "c2VlZA==", "uuid": %q, "name": %q, "launch_index": 0}`, s.ID, s.Name)),
	})
}

// Account returns an account in a project of its own.
func (o *realOpenStack) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	project, err := o.cloud.NewProject(t.Context(), f.Namespace)
	must(t, err)
	a := &realOpenStackAccount{realOpenStack: o, project: project, credential: project.Member}
	a.liftedAccount = newLiftedAccount(t, f, "openstack", map[string]any{"authURL": o.cloud.URL + "/identity/v3"})
	a.SetCredentials(t, CredentialsRight)
	return a
}

type realOpenStackAccount struct {
	*realOpenStack
	*liftedAccount
	project    *real.Project
	credential real.Credential
}

var (
	_ OrphanAccount     = &realOpenStackAccount{}
	_ ConsoleAccount    = &realOpenStackAccount{}
	_ CompanionAccount  = &realOpenStackAccount{}
	_ RebootAccount     = &realOpenStackAccount{}
	_ RestartAccount    = &realOpenStackAccount{}
	_ ThrottlingAccount = &realOpenStackAccount{}
	_ AllocationAccount = &realOpenStackAccount{}
)

// Write does nothing: all servers of the fake hypervisor have the same console.
func (a *realOpenStackAccount) Write(string, string) {}

func (a *realOpenStackAccount) ConsoleReads(_ context.Context, id string) (int, error) {
	return a.cloud.ConsoleReads(id), nil
}

// Class returns the class of the example, with the IDs that the OpenStack gave to what the example uses. That of the case
// InvalidRequest has a flavor that does not exist yet.
func (a *realOpenStackAccount) Class(t *testing.T) *machinev1alpha1.MachineClass {
	t.Helper()
	c := classOf(t, a.fleet, exampleOf(t), a.ProviderConfig())
	ids := strings.NewReplacer(fake.NetworkID, a.project.NetworkID, fake.SubnetID, a.project.SubnetID, fake.GroupID, a.project.GroupID)
	b, err := json.Marshal(c)
	must(t, err)
	*c = machinev1alpha1.MachineClass{}
	must(t, json.Unmarshal([]byte(ids.Replace(string(b))), c))
	if strings.HasSuffix(t.Name(), "/"+string(fn.ErrorInvalidRequest)) {
		setForProvider(t, c, "flavorName", a.unknownFlavor())
	}
	return c
}

func (a *realOpenStackAccount) unknownFlavor() string { return "flavor-of-" + a.project.Name }

func (a *realOpenStackAccount) Beside(ctx context.Context) (things, torn []string) {
	things, err := a.cloud.Beside(ctx, a.project)
	if err != nil {
		things = []string{err.Error()}
	}
	return things, a.cloud.Torn(a.project)
}

func (a *realOpenStackAccount) VMs(ctx context.Context) ([]VM, error) {
	all, err := a.cloud.Servers(ctx, a.project)
	var out []VM
	for _, s := range all {
		if !s.Deleting {
			out = append(out, VM{ID: s.ID, Tags: s.Metadata, UserData: s.UserData})
		}
	}
	return out, err
}

// Refuse brings the project into the state in which the OpenStack itself refuses a server. It has no rate limit: the gateway in
// front of it stands in for the one of an operator.
func (a *realOpenStackAccount) Refuse(t *testing.T, machine string, code fn.ErrorCode) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	switch code {
	case fn.ErrorQuotaExceeded:
		must(t, a.cloud.SetQuota(ctx, a.project, 0))
		a.mend[machine] = func() { must(t, a.cloud.SetQuota(ctx, a.project, 1)) }
	case fn.ErrorInvalidRequest:
		a.mend[machine] = func() { must(t, a.cloud.AddFlavor(ctx, a.unknownFlavor())) }
	case fn.ErrorPermissionDenied:
		a.credential = a.project.Reader
		a.SetCredentials(t, CredentialsRight)
		a.mend[machine] = func() {
			a.credential = a.project.Member
			a.SetCredentials(t, CredentialsRight)
		}
	case fn.ErrorThrottled:
		fault := openstackRefusals[code]
		fault.Call, fault.Match = "POST /compute/v2.1/servers", a.asksFor(machine)
		a.mend[machine] = a.cloud.Break(fault)
	default:
		t.Fatalf("nothing makes the OpenStack refuse a server with %s", code)
	}
}

// Lose deletes a server, and its Node as OpenStack's cloud-controller-manager would.
func (a *realOpenStackAccount) Lose(t *testing.T, id string) {
	t.Helper()
	must(t, a.cloud.Delete(t.Context(), id))
	patience.Eventually(t, func(ctx context.Context) string {
		all, err := a.cloud.Servers(ctx, a.project)
		for _, s := range all {
			if s.ID == id {
				return "server " + id + " is still there"
			}
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
	a.deleteNode(t, a.guestOf(id))
}

func (a *realOpenStackAccount) SetCredentials(t *testing.T, c Credentials) {
	t.Helper()
	secret := a.credential.Secret
	if c == CredentialsWrong {
		secret = "not-the-secret-of-any"
	}
	a.setSecret(t, c, map[string]string{"applicationCredentialID": a.credential.ID, "applicationCredentialSecret": secret})
}

func (a *realOpenStackAccount) CreateVM(t *testing.T, name string, tags map[string]string) string {
	t.Helper()
	id, err := a.cloud.Create(t.Context(), a.project, name, tags)
	must(t, err)
	return id
}

// DieAtCreation kills the provider when Nova has accepted the next server, and the provider has no response yet.
func (a *realOpenStackAccount) DieAtCreation(*testing.T) {
	a.cloud.Break(a.lostCreation())
}

// Leaks returns 0: the provider finds a server that it did not record by its name and metadata.
func (*realOpenStack) Leaks() int { return 0 }

func (a *realOpenStackAccount) Throttle(*testing.T, string) (calls func() int, end func()) {
	n := &atomic.Int64{}
	end = a.cloud.Break(a.throttled(openstackRefusals[fn.ErrorThrottled], n))
	return func() int { return int(n.Load()) }, end
}

func (a *realOpenStackAccount) FailAllocation(t *testing.T, machine string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	must(t, a.cloud.SetFull(ctx, a.project, true))
	a.mend[machine] = func() { must(t, a.cloud.SetFull(ctx, a.project, false)) }
}

func (a *realOpenStackAccount) ShowsFailure() bool { return true }

// Reboots returns those that Nova accepted and recorded.
func (a *realOpenStackAccount) Reboots(ctx context.Context, id string) ([]machinev1alpha1.RebootMode, error) {
	all, err := a.cloud.Reboots(ctx, id)
	var kinds []string
	for _, r := range all {
		kinds = append(kinds, r.Kind)
	}
	return rebootModes(kinds), err
}
