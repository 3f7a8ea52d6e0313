package v1alpha1_test

import (
	"testing"

	"github.com/drover-dev/drover/internal/schematest"
)

const crds = "../../../package/provider-gcp/crds/gcp.drover.dev_"

func TestSchemas(t *testing.T) {
	const vm, config, cluster = "virtualmachines.yaml", "providerconfigs.yaml", "clusterproviderconfigs.yaml"
	const required = `name: vm, zone: europe-west4-a, machineType: n2-standard-4, bootDisk: {image: global/images/golden}, networkInterfaces: [{subnetwork: nodes}]`
	with := func(more string) string { return "{spec: {forProvider: {" + required + more + "}}}" }
	disk := func(fields string) string { return with(", disks: [{" + fields + "}]") }
	nic := func(fields string) string {
		return `{spec: {forProvider: {name: vm, zone: z, machineType: m, bootDisk: {image: global/images/golden}, networkInterfaces: [{` + fields + `}]}}}`
	}
	cases := map[string]struct {
		crd, object string
		want        string // part of the error; empty for none
	}{
		"AVMWithItsRequiredFields":    {vm, with(""), ""},
		"AnObservedVMNeedsNoFields":   {vm, `{spec: {managementPolicies: [Observe, Delete], forProvider: {}}}`, ""},
		"AVMNeedsAName":               {vm, `{spec: {forProvider: {zone: z, machineType: m, bootDisk: {image: global/images/golden}, networkInterfaces: [{subnetwork: nodes}]}}}`, "spec.forProvider.name is required"},
		"AVMNeedsAZone":               {vm, `{spec: {forProvider: {name: vm, machineType: m, bootDisk: {image: global/images/golden}, networkInterfaces: [{subnetwork: nodes}]}}}`, "spec.forProvider.zone is required"},
		"AVMNeedsAMachineType":        {vm, `{spec: {forProvider: {name: vm, zone: z, bootDisk: {image: global/images/golden}, networkInterfaces: [{subnetwork: nodes}]}}}`, "spec.forProvider.machineType is required"},
		"AVMNeedsABootDisk":           {vm, `{spec: {forProvider: {name: vm, zone: z, machineType: m, networkInterfaces: [{subnetwork: nodes}]}}}`, "spec.forProvider.bootDisk is required"},
		"AVMNeedsAnInterface":         {vm, `{spec: {forProvider: {name: vm, zone: z, machineType: m, bootDisk: {image: global/images/golden}}}}`, "spec.forProvider.networkInterfaces is required"},
		"ANameBeginsWithALetter":      {vm, `{spec: {forProvider: {name: 1vm, zone: z, machineType: m, bootDisk: {image: global/images/golden}, networkInterfaces: [{subnetwork: nodes}]}}}`, "spec.forProvider.name"},
		"AnImageOfAFamily":            {vm, `{spec: {forProvider: {name: vm, zone: z, machineType: m, bootDisk: {image: projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64}, networkInterfaces: [{subnetwork: nodes}]}}}`, ""},
		"AnImageIsAPath":              {vm, `{spec: {forProvider: {name: vm, zone: z, machineType: m, bootDisk: {image: golden}, networkInterfaces: [{subnetwork: nodes}]}}}`, "spec.forProvider.bootDisk.image"},
		"OneSourceOfUserData":         {vm, with(`, userData: x, userDataSecretRef: {name: s, key: k}`), "set userData or userDataSecretRef, not both"},
		"ADiskHasASize":               {vm, disk(`type: pd-ssd`), "sizeGB is required without image and snapshot"},
		"ADiskOfASnapshot":            {vm, disk(`snapshot: global/snapshots/s`), ""},
		"ADiskOfOneSource":            {vm, disk(`snapshot: global/snapshots/s, image: global/images/i`), "set image or snapshot, not both"},
		"ALocalSSDNeedsNoSize":        {vm, disk(`type: local-ssd, interface: NVME`), ""},
		"ALocalSSDIsNotKept":          {vm, disk(`type: local-ssd, keep: true`), "a disk of the type local-ssd has only sizeGB and interface"},
		"IOPSNeedTheirType":           {vm, disk(`sizeGB: 10, type: pd-balanced, iops: 5000`), "iops requires a type with provisioned IOPS"},
		"ThroughputNeedsItsType":      {vm, disk(`sizeGB: 10, type: pd-extreme, throughputMiB: 100`), "throughputMiB requires a type of Hyperdisk"},
		"AKeyIsAPath":                 {vm, disk(`sizeGB: 10, kmsKeyName: k`), "kmsKeyName"},
		"AnInterfaceHasANetwork":      {vm, nic(`address: 10.0.0.7`), "set network or subnetwork"},
		"AnInterfaceOfASharedNetwork": {vm, nic(`subnetwork: projects/host/regions/europe-west4/subnetworks/s`), ""},
		"ExternalIPv6NeedsIPv6":       {vm, nic(`subnetwork: s, externalIPv6: true`), "externalIPv6 requires stackType"},
		"AnExternalAddressNeedsIPv4":  {vm, nic(`subnetwork: s, stackType: IPV6_ONLY, externalAddress: {}`), "externalAddress requires a stackType with IPv4"},
		"ASpotVMIsNotRestarted":       {vm, with(`, spot: {}, scheduling: {automaticRestart: true}`), "a spot VM has scheduling.automaticRestart false"},
		"ASpotVMDoesNotMigrate":       {vm, with(`, spot: {}, scheduling: {onHostMaintenance: MIGRATE}`), "a spot VM has scheduling.onHostMaintenance TERMINATE"},
		"ASpotVM":                     {vm, with(`, spot: {terminationAction: DELETE}`), ""},
		"GPUsDoNotMigrate":            {vm, with(`, accelerators: [{type: nvidia-tesla-t4, count: 1}]`), "accelerators require scheduling.onHostMaintenance TERMINATE"},
		"GPUs":                        {vm, with(`, accelerators: [{type: nvidia-tesla-t4, count: 1}], scheduling: {onHostMaintenance: TERMINATE}`), ""},
		"AReservationOfAName":         {vm, with(`, reservation: {type: SPECIFIC_RESERVATION}`), "name is required with type SPECIFIC_RESERVATION"},
		"AnyReservationHasNoName":     {vm, with(`, reservation: {type: ANY_RESERVATION, name: r}`), "must not be set with another type"},
		"AServiceAccountIsAnAddress":  {vm, with(`, serviceAccount: {email: nodes}`), "spec.forProvider.serviceAccount.email"},
		"AnUnknownConfidentialType":   {vm, with(`, confidentialType: SGX`), `supported values: "SEV"`},

		"AProviderConfigNeedsNoNamespace":   {config, `{spec: {projectID: p, credentials: {secretRef: {name: s}}}}`, ""},
		"AProviderConfigHasNoIdentity":      {config, `{spec: {projectID: p, credentials: {source: InjectedIdentity}}}`, "only a ClusterProviderConfig uses the identity of the provider's pod"},
		"AProjectIsRequired":                {config, `{spec: {credentials: {secretRef: {name: s}}}}`, "spec.projectID"},
		"AnEndpointIsAURL":                  {config, `{spec: {projectID: p, endpoint: compute, credentials: {secretRef: {name: s}}}}`, "spec.endpoint"},
		"AClusterProviderConfigNeedsOne":    {cluster, `{spec: {projectID: p, credentials: {secretRef: {name: s}}}}`, "spec.credentials.secretRef.namespace is required"},
		"AClusterProviderConfigWithoutAKey": {cluster, `{spec: {projectID: p, credentials: {source: InjectedIdentity}}}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			schematest.Check(t, crds+tc.crd, tc.object, tc.want)
		})
	}
}
