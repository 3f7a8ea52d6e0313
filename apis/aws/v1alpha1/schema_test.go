package v1alpha1_test

import (
	"testing"

	"github.com/drover-dev/drover/internal/schematest"
)

const crds = "../../../package/provider-aws/crds/aws.drover.dev_"

func TestSchemas(t *testing.T) {
	const vm, config, cluster = "virtualmachines.yaml", "providerconfigs.yaml", "clusterproviderconfigs.yaml"
	const required = `name: vm, instanceType: m7i.large, imageID: ami-1, subnetID: subnet-1`
	with := func(more string) string { return "{spec: {forProvider: {" + required + more + "}}}" }
	cases := map[string]struct {
		crd, object string
		want        string // part of the error; empty for none
	}{
		"AVMWithItsRequiredFields":         {vm, with(""), ""},
		"AnObservedVMNeedsNoFields":        {vm, `{spec: {managementPolicies: [Observe, Delete], forProvider: {}}}`, ""},
		"AVMNeedsAType":                    {vm, `{spec: {forProvider: {imageID: ami-1, subnetID: subnet-1}}}`, "spec.forProvider.instanceType is required"},
		"AVMNeedsAnImage":                  {vm, `{spec: {forProvider: {instanceType: m7i.large, subnetID: subnet-1}}}`, "spec.forProvider.imageID is required"},
		"AVMNeedsASubnet":                  {vm, `{spec: {forProvider: {instanceType: m7i.large, imageID: ami-1, availabilityZone: z}}}`, "spec.forProvider.subnetID or spec.forProvider.subnets is required"},
		"SubnetsNeedAZone":                 {vm, `{spec: {forProvider: {instanceType: m7i.large, imageID: ami-1, subnets: [{availabilityZone: z, subnetID: subnet-1}]}}}`, "spec.forProvider.availabilityZone is required without subnetID"},
		"ASubnetOfAZone":                   {vm, `{spec: {forProvider: {instanceType: m7i.large, imageID: ami-1, availabilityZone: z, subnets: [{availabilityZone: z, subnetID: subnet-1}]}}}`, ""},
		"AnImageIsAnID":                    {vm, `{spec: {forProvider: {instanceType: m7i.large, imageID: ubuntu, subnetID: subnet-1}}}`, "spec.forProvider.imageID"},
		"ATypeHasASize":                    {vm, `{spec: {forProvider: {instanceType: large, imageID: ami-1, subnetID: subnet-1}}}`, "spec.forProvider.instanceType"},
		"OneSourceOfUserData":              {vm, with(`, userData: x, userDataSecretRef: {name: s, key: k}`), "set userData or userDataSecretRef, not both"},
		"OneInstanceProfile":               {vm, with(`, iamInstanceProfile: nodes, iamInstanceProfileARN: "arn:aws:iam::123456789012:instance-profile/nodes"`), "set iamInstanceProfile or iamInstanceProfileARN, not both"},
		"AKeyNeedsEncryption":              {vm, with(`, rootVolume: {kmsKeyID: k}`), "kmsKeyID requires encrypted"},
		"ThroughputNeedsGP3":               {vm, with(`, rootVolume: {type: gp2, throughput: 250}`), "throughput requires type gp3"},
		"IOPSNeedAType":                    {vm, with(`, rootVolume: {type: st1, iops: 500}`), "iops requires type gp3, io1 or io2"},
		"ARootVolume":                      {vm, with(`, rootVolume: {type: gp3, sizeGiB: 50, iops: 4000, throughput: 250, encrypted: true, kmsKeyID: alias/nodes}`), ""},
		"AnUnknownTypeOfVolume":            {vm, with(`, rootVolume: {type: gp4}`), `supported values: "gp3"`},
		"AVolumeHasASize":                  {vm, with(`, volumes: [{deviceName: /dev/sdf}]`), "set sizeGiB or snapshotID"},
		"AVolumeOfASnapshot":               {vm, with(`, volumes: [{deviceName: /dev/sdf, snapshotID: snap-1}]`), ""},
		"ASpotVM":                          {vm, with(`, spot: {maxPrice: "0.035"}`), ""},
		"APriceIsANumber":                  {vm, with(`, spot: {maxPrice: cheap}`), "spec.forProvider.spot.maxPrice"},
		"ASpotVMUsesNoReservation":         {vm, with(`, spot: {}, capacityReservation: {id: cr-1}`), "a spot instance uses no capacity reservation"},
		"OneReservation":                   {vm, with(`, capacityReservation: {id: cr-1, preference: open}`), "set exactly one of preference, id and resourceGroupARN"},
		"APartitionNeedsAGroup":            {vm, with(`, placement: {partitionNumber: 1}`), "partitionNumber requires groupName or groupID"},
		"AHostNeedsItsTenancy":             {vm, with(`, placement: {hostID: h-1}`), "hostID and affinity require tenancy host"},
		"AHost":                            {vm, with(`, placement: {hostID: h-1, tenancy: host, affinity: host}`), ""},
		"OnePlacementGroup":                {vm, with(`, placement: {groupName: g, groupID: pg-1}`), "set groupName or groupID, not both"},
		"APublicAddressNeedsOneInterface":  {vm, with(`, associatePublicIPAddress: true, networkInterfaces: [{}]`), "associatePublicIPAddress requires that networkInterfaces is empty"},
		"ThreadsNeedCores":                 {vm, with(`, threadsPerCore: 1`), "set both of coreCount and threadsPerCore"},
		"AnUnknownOptionOfTheMetadata":     {vm, with(`, metadataOptions: {httpTokens: no}`), "spec.forProvider.metadataOptions.httpTokens"},
		"AProviderConfigNeedsNoNamespace":  {config, `{spec: {region: eu-west-1, credentials: {source: Secret, secretRef: {name: s}}}}`, ""},
		"AProviderConfigHasNoIdentity":     {config, `{spec: {region: eu-west-1, credentials: {source: InjectedIdentity}}}`, "spec.credentials.source must be Secret"},
		"AClusterProviderConfigMayHaveOne": {cluster, `{spec: {region: eu-west-1, credentials: {source: InjectedIdentity}}}`, ""},
		"AnIdentityHasNoSecret":            {cluster, `{spec: {region: eu-west-1, credentials: {source: InjectedIdentity, secretRef: {name: s, namespace: system}}}}`, "must not be set with source InjectedIdentity"},
		"ARegionIsRequired":                {config, `{spec: {credentials: {source: Secret, secretRef: {name: s}}}}`, "spec.region"},
		"AnEndpointIsAURL":                 {config, `{spec: {region: eu-west-1, endpoint: ec2.amazonaws.com, credentials: {source: Secret, secretRef: {name: s}}}}`, "spec.endpoint"},
		"ARoleIsAnARN":                     {config, `{spec: {region: eu-west-1, roleARN: drover, credentials: {source: Secret, secretRef: {name: s}}}}`, "spec.roleARN"},
		"ARole":                            {config, `{spec: {region: eu-west-1, roleARN: "arn:aws:iam::123456789012:role/drover", externalID: tenant-1, credentials: {source: Secret, secretRef: {name: s}}}}`, ""},
		"AnExternalIDNeedsARole":           {config, `{spec: {region: eu-west-1, externalID: tenant-1, credentials: {source: Secret, secretRef: {name: s}}}}`, "externalID requires roleARN"},
		"AClusterProviderConfigNeedsOne":   {cluster, `{spec: {region: eu-west-1, credentials: {source: Secret, secretRef: {name: s}}}}`, "spec.credentials.secretRef.namespace is required"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			schematest.Check(t, crds+tc.crd, tc.object, tc.want)
		})
	}
}
