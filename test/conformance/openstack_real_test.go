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

// openStackEntry is the entry of the provider.
const openStackEntry entry = "openstack"

// theOpenStack returns the OpenStack of "make openstack" if it runs, and else the fake.
func theOpenStack() Cloud {
	if real.IsThere() {
		return &realOpenStack{entry: openStackEntry}
	}
	return &openStack{entry: openStackEntry}
}

// realOpenStack is an OpenStack whose hypervisor only pretends to run servers: guests of the local cloud stand for them.
type realOpenStack struct {
	entry
	guests
	cloud *real.Cloud
	end   context.CancelFunc
}

func (*realOpenStack) Backing() Backing { return realAPI }

func (o *realOpenStack) Install(ctx context.Context, p *kit.Plane) (err error) {
	o.host = newHost(p)
	if o.cloud, err = real.Open(ctx); err != nil {
		return err
	}
	o.cloud.OnReboot = func(id string) { o.restart("openstack/" + id) }
	var life context.Context
	life, o.end = context.WithCancel(context.WithoutCancel(ctx))
	go o.cloud.Watch(life, o.boot, func(s real.Server) { o.guests.end("openstack/" + s.ID) }, o.host.Failed)
	return installProvider(ctx, p, "openstack", "VirtualMachine", "Port", "FloatingIP", "VirtualMachineInventory", "ClusterProviderConfig")
}

func (o *realOpenStack) Close() {
	if o.cloud != nil {
		o.end()
		o.cloud.Close()
	}
}

// boot starts the guest of a server that Nova built.
func (o *realOpenStack) boot(s real.Server) {
	if len(s.UserData) == 0 {
		return
	}
	o.start(guest.Request{
		ID: "openstack/" + s.ID, Name: s.Name, Address: s.IP, UserData: s.UserData, ProviderID: "openstack:///" + s.ID,
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

// Write does nothing: each server of the fake hypervisor has the same console.
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
// front of it stands for the one of an operator.
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
	a.deleteNode(t, "openstack/"+id)
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

// DieAtCreation kills the provider when Nova has accepted the next server, and the provider has no answer yet.
func (a *realOpenStackAccount) DieAtCreation(*testing.T) {
	fault := fake.Fault{Call: "POST /compute/v2.1/servers", Times: 1, Lost: true, Then: a.kill}
	fault.Match = func(project string, _ []byte) bool { return project == a.fleet.Namespace }
	a.cloud.Break(fault)
}

func (*realOpenStack) Leaks() int { return (*openStack)(nil).Leaks() }

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

// Reboots returns those that Nova accepted. Nova's own record of a server, which does not tell soft from hard, has as many.
func (a *realOpenStackAccount) Reboots(ctx context.Context, id string) ([]machinev1alpha1.RebootMode, error) {
	kinds := a.cloud.Reboots(id)
	actions, err := a.cloud.Actions(ctx, id)
	if err != nil {
		return nil, err
	}
	done := 0
	for _, action := range actions {
		if action == "reboot" {
			done++
		}
	}
	if done != len(kinds) {
		return nil, fmt.Errorf("the gateway saw the reboots %q of server %s, and Nova the actions %q", kinds, id, actions)
	}
	return rebootModes(kinds), nil
}
