package v1alpha1_test

import (
	"testing"

	"github.com/drover-dev/drover/internal/schematest"
)

const crds = "../../../package/provider-azure/crds/azure.drover.dev_"

func TestSchemas(t *testing.T) {
	const vm, config, cluster = "virtualmachines.yaml", "providerconfigs.yaml", "clusterproviderconfigs.yaml"
	const (
		id     = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/nodes"
		rest   = `name: vm, resourceGroup: g, location: westeurope, size: Standard_D4s_v5, adminUsername: operator, sshPublicKeys: ["ssh-ed25519 AAAA operator"]`
		image  = `image: {publisher: Canonical, offer: ubuntu-24_04-lts, sku: server}`
		nics   = `networkInterfaces: [{subnetID: ` + id + `}]`
		needed = rest + ", " + image + ", " + nics
	)
	of := func(fields string) string { return "{spec: {forProvider: {" + fields + "}}}" }
	with := func(more string) string { return of(needed + ", " + more) }
	disk := func(fields string) string { return with("dataDisks: [{" + fields + "}]") }
	imageOf := func(fields string) string { return of(rest + ", " + nics + ", image: {" + fields + "}") }
	cases := map[string]struct {
		crd, object string
		want        string // part of the error; empty for none
	}{
		"AVMWithItsRequiredFields":       {vm, of(needed), ""},
		"AnObservedVMNeedsNoFields":      {vm, `{spec: {managementPolicies: [Observe, Delete], forProvider: {}}}`, ""},
		"ANameIsRequired":                {vm, of(`resourceGroup: g`), "spec.forProvider.name is required"},
		"AResourceGroupIsRequired":       {vm, of(`name: vm`), "spec.forProvider.resourceGroup is required"},
		"ALocationIsRequired":            {vm, of(`name: vm`), "spec.forProvider.location is required"},
		"ASizeIsRequired":                {vm, of(`name: vm`), "spec.forProvider.size is required"},
		"AnImageIsRequired":              {vm, of(`name: vm`), "spec.forProvider.image is required"},
		"AnInterfaceIsRequired":          {vm, of(`name: vm, networkInterfaces: []`), "spec.forProvider.networkInterfaces is required"},
		"AUserIsRequired":                {vm, of(`name: vm`), "spec.forProvider.adminUsername is required"},
		"AnSSHKeyIsRequired":             {vm, of(`name: vm`), "spec.forProvider.sshPublicKeys is required"},
		"AnSSHKeyThatAzureRefuses":       {vm, of(`sshPublicKeys: ["ecdsa-sha2-nistp256 AAAA"]`), "must be a public key of SSH of the type RSA or Ed25519"},
		"AZoneIsANumber":                 {vm, with(`zone: westeurope-1`), "spec.forProvider.zone"},
		"OneSourceOfUserData":            {vm, with(`userData: x, userDataSecretRef: {name: s, key: k}`), "set userData or userDataSecretRef, not both"},
		"AnImageByItsID":                 {vm, imageOf(`id: /subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/galleries/g/images/i`), ""},
		"AnImageOfACommunity":            {vm, imageOf(`communityGalleryImageID: /CommunityGalleries/g/Images/i/Versions/latest`), ""},
		"AnImageOfTwoSources":            {vm, imageOf(`publisher: a, offer: b, sku: c, sharedGalleryImageID: /SharedGalleries/g/Images/i`), "and only one of them"},
		"AnImageOfNoSource":              {vm, imageOf(`plan: {name: a, product: b, publisher: c}`), "and only one of them"},
		"AnImageWithoutItsOffer":         {vm, imageOf(`publisher: a`), "offer and sku are required with publisher"},
		"AnIDIsOne":                      {vm, of(`networkInterfaces: [{subnetID: nodes}]`), "must be the ID of a resource of Azure"},
		"ADiskHasASize":                  {vm, disk(`type: Premium_LRS`), "sizeGiB is required without sourceID"},
		"ADiskOfASnapshot":               {vm, disk(`sourceID: /subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/snapshots/s`), ""},
		"IOPSNeedTheirType":              {vm, disk(`sizeGiB: 10, type: Premium_LRS, iops: 5000`), "iops and throughputMBps require the type PremiumV2_LRS or UltraSSD_LRS"},
		"AnUltraDiskHasNoCache":          {vm, disk(`sizeGiB: 10, type: UltraSSD_LRS, caching: ReadOnly`), "has caching None"},
		"AnUltraDisk":                    {vm, disk(`sizeGiB: 10, type: UltraSSD_LRS, iops: 5000, throughputMBps: 100`), ""},
		"AnOSDiskIsNoUltraDisk":          {vm, with(`osDisk: {type: UltraSSD_LRS}`), "an OS disk cannot have the type"},
		"AnEphemeralDiskIsNotKept":       {vm, with(`osDisk: {ephemeralPlacement: CacheDisk, keep: true}`), "an ephemeral OS disk cannot be kept"},
		"AnEphemeralDiskIsReadOnly":      {vm, with(`osDisk: {ephemeralPlacement: CacheDisk, caching: ReadWrite}`), "an ephemeral OS disk has caching ReadOnly"},
		"AnEphemeralDisk":                {vm, with(`osDisk: {ephemeralPlacement: NvmeDisk}`), ""},
		"AConfidentialDiskNeedsItsVM":    {vm, with(`osDisk: {securityEncryptionType: VMGuestStateOnly}, security: {type: TrustedLaunch}`), "requires security.type ConfidentialVM"},
		"AConfidentialVM":                {vm, with(`osDisk: {securityEncryptionType: VMGuestStateOnly}, security: {type: ConfidentialVM}`), ""},
		"SecureBootNeedsAType":           {vm, with(`security: {secureBoot: true}`), "secureBoot and vtpm require a type"},
		"ASpotVM":                        {vm, with(`spot: {maxPrice: "0.035", evictionPolicy: Deallocate}`), ""},
		"APriceIsANumber":                {vm, with(`spot: {maxPrice: cheap}`), "spec.forProvider.spot.maxPrice"},
		"ASpotVMHasNoHost":               {vm, with(`spot: {}, hostGroupID: /subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/hostGroups/h`), "a spot VM has no dedicated host"},
		"OneHostOrItsGroup":              {vm, with(`hostID: /subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/hostGroups/h/hosts/a, hostGroupID: /subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/hostGroups/h`), "set hostID or hostGroupID, not both"},
		"AnAvailabilitySetHasNoZone":     {vm, with(`zone: "1", availabilitySetID: /subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/availabilitySets/a`), "has neither a zone nor a scaleSetID"},
		"AReservationIsOfNoAvailability": {vm, with(`capacityReservationGroupID: /subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/capacityReservationGroups/c, spot: {}`), "a VM of a capacity reservation has no spot"},
		"AnUnknownLicense":               {vm, with(`licenseType: Windows_Server`), `supported values: "RHEL_BYOS"`},

		"AProviderConfigNeedsNoNamespace":      {config, `{spec: {subscriptionID: s, credentials: {secretRef: {name: s}}}}`, ""},
		"AProviderConfigHasNoIdentity":         {config, `{spec: {subscriptionID: s, credentials: {source: InjectedIdentity}}}`, "only a ClusterProviderConfig uses the identity of the provider's pod"},
		"ASubscriptionIsRequired":              {config, `{spec: {credentials: {secretRef: {name: s}}}}`, "spec.subscriptionID"},
		"AnEndpointIsAURL":                     {config, `{spec: {subscriptionID: s, endpoint: azure, credentials: {secretRef: {name: s}}}}`, "spec.endpoint"},
		"AClusterProviderConfigNeedsOne":       {cluster, `{spec: {subscriptionID: s, credentials: {secretRef: {name: s}}}}`, "spec.credentials.secretRef.namespace is required"},
		"AClusterProviderConfigWithoutASecret": {cluster, `{spec: {subscriptionID: s, credentials: {source: InjectedIdentity}}}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			schematest.Check(t, crds+tc.crd, tc.object, tc.want)
		})
	}
}
