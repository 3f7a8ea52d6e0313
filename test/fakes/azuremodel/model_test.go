package azuremodel_test

import (
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v7"

	"github.com/drover-dev/drover/test/fakes/azuremodel"
)

// TestRequests has requests of each kind that Azure would refuse or in part ignore.
func TestRequests(t *testing.T) {
	compute, err := azuremodel.Compute()
	if err != nil {
		t.Fatal(err)
	}
	network, err := azuremodel.Network()
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		model *azuremodel.Model
		into  any
		body  string
		want  string // part of the error; empty for none
	}{
		"AVM":                        {compute, &armcompute.VirtualMachine{}, `{"location": "westeurope", "tags": {"a": "b"}, "properties": {"hardwareProfile": {"vmSize": "Standard_D4s_v5"}}}`, ""},
		"APropertyThatDoesNotExist":  {compute, &armcompute.VirtualMachine{}, `{"location": "westeurope", "size": 4}`, "VirtualMachine: there is no property size"},
		"ANestedOneThatDoesNotExist": {compute, &armcompute.VirtualMachine{}, `{"location": "westeurope", "properties": {"hardwareProfile": {"size": "x"}}}`, "VirtualMachine.properties.hardwareProfile: there is no property size"},
		"APropertyThatOnlyAzureSets": {compute, &armcompute.VirtualMachine{}, `{"location": "westeurope", "properties": {"provisioningState": "Succeeded"}}`, "VirtualMachine.Properties.ProvisioningState: only Azure sets it"},
		"APropertyThatIsRequired":    {compute, &armcompute.VirtualMachine{}, `{"tags": {"a": "b"}}`, "VirtualMachine.Location: it is required"},
		"AnElementWithoutOne":        {compute, &armcompute.VirtualMachine{}, `{"location": "x", "properties": {"storageProfile": {"dataDisks": [{"lun": 1}]}}}`, "DataDisks[0].CreateOption: it is required"},
		"AValueThatDoesNotExist":     {compute, &armcompute.VirtualMachine{}, `{"location": "x", "properties": {"priority": "Cheap"}}`, `Priority: invalid value "Cheap": must be one of`},
		"ATextInPlaceOfANumber":      {compute, &armcompute.VirtualMachine{}, `{"location": "x", "properties": {"storageProfile": {"osDisk": {"createOption": "FromImage", "diskSizeGB": "64"}}}}`, "does not have the types of the model"},
		"AnInterface":                {network, &armnetwork.Interface{}, `{"location": "x", "properties": {"ipConfigurations": [{"name": "primary", "properties": {"privateIPAddressVersion": "IPv4"}}]}}`, ""},
		"AnInterfaceWithItsMAC":      {network, &armnetwork.Interface{}, `{"location": "x", "properties": {"macAddress": "00-0D-3A-00-00-01"}}`, "only Azure sets it"},
		"AVersionThatDoesNotExist":   {network, &armnetwork.Interface{}, `{"location": "x", "properties": {"ipConfigurations": [{"properties": {"privateIPAddressVersion": "IPv5"}}]}}`, `invalid value "IPv5"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.model.Check([]byte(tc.body), tc.into)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
