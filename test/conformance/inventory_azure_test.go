package conformance

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/drover-dev/drover/test/conformance/simulator"
	"github.com/drover-dev/drover/test/fakes/azuretest"
)

const (
	azureSubscription  = "0b1f6471-1bf0-4dda-aec3-cb9272f09590"
	azureResourceGroup = "production-nodes"
	// VMs that no provider created are in a group that no collector has in its spec.forProvider.
	otherResourceGroup = "other-nodes"
)

// startAzure starts a fake of a tenant. Its identity may read the subscription, with the quota of
// Resource Graph.
func startAzure(t *testing.T, s *simulated, fleet string) fakeAPI {
	t.Helper()
	cloud := azuretest.New(azuretest.Options{
		State: azureState{s, fleet}, Tenant: uuid.NewString(), Subscription: azureSubscription, Quota: 15, Window: 5 * time.Second,
	})
	client := uuid.NewString()
	cloud.Assign(client, azuretest.Assignment{Actions: azuretest.Reader})
	server := httptest.NewTLSServer(cloud)
	t.Cleanup(server.Close)
	in := func(group string) map[string]any { return map[string]any{"resourceGroupName": group} }
	return fakeAPI{
		secret:      cloud.Credentials(client, cloud.NewSecret(client), server.URL),
		spec:        map[string]any{"subscriptionID": azureSubscription, "endpoint": server.URL, "caBundle": caBundle(server)},
		place:       in(azureResourceGroup),
		forProvider: func(string) map[string]any { return in(otherResourceGroup) },
	}
}

// azureState provides the content of the subscription.
type azureState struct {
	cloud *simulated
	fleet string
}

// States of provisioning and power.
var (
	azureProvisioning = map[simulator.State]string{simulator.Starting: "Creating", simulator.Running: "Succeeded", simulator.Failed: "Failed"}
	azurePower        = map[simulator.State]string{simulator.Running: "running"}
)

func (a azureState) VMs() []azuretest.VM {
	var out []azuretest.VM
	for _, vm := range a.cloud.simulator.VMs(a.fleet) {
		out = append(out, azuretest.VM{
			Name: vm.ID, ResourceGroup: groupOf(vm.ForProvider), Tags: vm.Tags, CreatedAt: vm.CreatedAt,
			ProvisioningState: azureProvisioning[vm.State], PowerState: azurePower[vm.State],
		})
	}
	return out
}

// azureTypes are the types of companions, by their kind. Other kinds are no resources of Azure.
var azureTypes = map[string]string{"NetworkInterface": azuretest.NetworkInterface, "PublicIP": azuretest.PublicIPAddress}

// Resources returns the resources beside the VMs. An address is in use by its network interface as
// long as there is one.
func (a azureState) Resources() []azuretest.Resource {
	companions := a.cloud.simulator.Companions(a.fleet)
	interfaces := map[string]string{}
	for _, c := range companions {
		if azureTypes[c.Kind] == azuretest.NetworkInterface {
			interfaces[c.Machine] = azuretest.ID(azureSubscription, groupOf(c.ForProvider), azuretest.NetworkInterface, c.Name)
		}
	}
	var out []azuretest.Resource
	for _, c := range companions {
		typ, ok := azureTypes[c.Kind]
		if !ok {
			continue
		}
		r := azuretest.Resource{Type: typ, Name: c.Name, ResourceGroup: groupOf(c.ForProvider), Tags: map[string]string{}}
		tags, _ := c.ForProvider["tags"].(map[string]any)
		for k, v := range tags {
			r.Tags[k] = fmt.Sprint(v)
		}
		switch {
		case typ == azuretest.PublicIPAddress && interfaces[c.Machine] != "":
			r.AttachedTo = interfaces[c.Machine] + "/ipConfigurations/primary"
		case typ == azuretest.NetworkInterface && c.UsedBy != "":
			r.AttachedTo = azuretest.ID(azureSubscription, groupOf(c.ForProvider), azuretest.VirtualMachine, c.UsedBy)
		}
		out = append(out, r)
	}
	return out
}

func groupOf(forProvider map[string]any) string {
	group, _ := forProvider["resourceGroupName"].(string)
	return group
}
