package v1alpha1_test

import (
	"testing"

	"github.com/drover-dev/drover/internal/schematest"
)

const crds = "../../../package/provider-alibaba/crds/alibaba.drover.dev_"

func TestSchemas(t *testing.T) {
	const vm, config, cluster = "virtualmachines.yaml", "providerconfigs.yaml", "clusterproviderconfigs.yaml"
	const required = `name: vm, instanceType: ecs.g7.xlarge, imageID: m-1, vSwitchID: vsw-1, securityGroupIDs: [sg-1]`
	with := func(more string) string { return "{spec: {forProvider: {" + required + more + "}}}" }
	cases := map[string]struct {
		crd, object string
		want        string // part of the error; empty for none
	}{
		"AVMWithItsRequiredFields":   {vm, with(""), ""},
		"AnObservedVMNeedsNoFields":  {vm, `{spec: {managementPolicies: [Observe, Delete], forProvider: {}}}`, ""},
		"AVMNeedsAName":              {vm, `{spec: {forProvider: {instanceType: ecs.g7.xlarge, imageID: m-1, vSwitchID: vsw-1, securityGroupIDs: [sg-1]}}}`, "spec.forProvider.name is required"},
		"AVMNeedsAType":              {vm, `{spec: {forProvider: {name: vm, imageID: m-1, vSwitchID: vsw-1, securityGroupIDs: [sg-1]}}}`, "spec.forProvider.instanceType is required"},
		"AVMNeedsAnImage":            {vm, `{spec: {forProvider: {name: vm, instanceType: ecs.g7.xlarge, vSwitchID: vsw-1, securityGroupIDs: [sg-1]}}}`, "spec.forProvider.imageID or spec.forProvider.imageFamily is required"},
		"AVMNeedsASecurityGroup":     {vm, `{spec: {forProvider: {name: vm, instanceType: ecs.g7.xlarge, imageID: m-1, vSwitchID: vsw-1}}}`, "spec.forProvider.securityGroupIDs is required"},
		"AVMNeedsAVSwitch":           {vm, `{spec: {forProvider: {name: vm, instanceType: ecs.g7.xlarge, imageID: m-1, zoneID: z, securityGroupIDs: [sg-1]}}}`, "spec.forProvider.vSwitchID or spec.forProvider.vSwitches is required"},
		"VSwitchesNeedAZone":         {vm, `{spec: {forProvider: {name: vm, instanceType: ecs.g7.xlarge, imageID: m-1, vSwitches: [{zoneID: z, vSwitchID: v}], securityGroupIDs: [sg-1]}}}`, "spec.forProvider.zoneID is required without vSwitchID"},
		"AVSwitchOfAZone":            {vm, `{spec: {forProvider: {name: vm, instanceType: ecs.g7.xlarge, imageFamily: "acs:x", zoneID: z, vSwitches: [{zoneID: z, vSwitchID: v}], securityGroupIDs: [sg-1]}}}`, ""},
		"OneImage":                   {vm, with(`, imageFamily: "acs:x"`), "set imageID or imageFamily, not both"},
		"OneSourceOfUserData":        {vm, with(`, userData: x, userDataSecretRef: {name: s, key: k}`), "set userData or userDataSecretRef, not both"},
		"ATypeOfECS":                 {vm, `{spec: {forProvider: {name: vm, instanceType: g7.xlarge, imageID: m-1, vSwitchID: vsw-1, securityGroupIDs: [sg-1]}}}`, "spec.forProvider.instanceType"},
		"APriceLimitNeedsItsPolicy":  {vm, with(`, spotStrategy: SpotAsPriceGo, spotPriceLimit: "0.5"`), "spotPriceLimit requires spotStrategy SpotWithPriceLimit"},
		"ASpotVMWithAPriceLimit":     {vm, with(`, spotStrategy: SpotWithPriceLimit, spotPriceLimit: "0.5", spotDurationHours: 0`), ""},
		"ADurationNeedsASpotVM":      {vm, with(`, spotDurationHours: 1`), "spotDurationHours requires a spotStrategy other than NoSpot"},
		"AnUnknownPolicy":            {vm, with(`, spotStrategy: Cheap`), `supported values: "NoSpot"`},
		"BandwidthInNeedsOut":        {vm, with(`, internetMaxBandwidthIn: 5`), "internetMaxBandwidthIn requires internetMaxBandwidthOut above 0"},
		"TooMuchBandwidth":           {vm, with(`, internetMaxBandwidthOut: 101`), "less than or equal to 100"},
		"ALevelNeedsItsCategory":     {vm, with(`, systemDisk: {category: cloud_auto, performanceLevel: PL1}`), "performanceLevel requires category cloud_essd"},
		"ADiskOfALevel":              {vm, with(`, systemDisk: {category: cloud_essd, performanceLevel: PL1, sizeGiB: 40}`), ""},
		"AKeyNeedsEncryption":        {vm, with(`, systemDisk: {kmsKeyID: k}`), "kmsKeyID requires encrypted"},
		"ADataDiskHasASize":          {vm, with(`, dataDisks: [{category: cloud_essd}]`), "set sizeGiB or snapshotID"},
		"ADataDiskOfASnapshot":       {vm, with(`, dataDisks: [{snapshotID: s-1, encrypted: true, kmsKeyID: k}]`), ""},
		"ADataDiskOfAnotherCategory": {vm, with(`, dataDisks: [{category: nvme, sizeGiB: 1}]`), `supported values: "cloud_auto"`},
		"AnAddressWithLetters":       {vm, with(`, privateIPAddress: fd00::1`), "spec.forProvider.privateIPAddress"},

		"AProviderConfigNeedsNoNamespace": {config, `{spec: {region: cn-hangzhou, credentials: {secretRef: {name: s}}}}`, ""},
		"ARegionIsRequired":               {config, `{spec: {credentials: {secretRef: {name: s}}}}`, "spec.region"},
		"ARegionHasNoPath":                {config, `{spec: {region: cn/hangzhou, credentials: {secretRef: {name: s}}}}`, "spec.region"},
		"AnEndpointIsAURL":                {config, `{spec: {region: cn-hangzhou, endpoint: ecs.aliyuncs.com, credentials: {secretRef: {name: s}}}}`, "spec.endpoint"},
		"ARoleIsAnARN":                    {config, `{spec: {region: cn-hangzhou, roleARN: drover, credentials: {secretRef: {name: s}}}}`, "spec.roleARN"},
		"ARole":                           {config, `{spec: {region: cn-hangzhou, roleARN: "acs:ram::1234567890123456:role/drover", credentials: {secretRef: {name: s}}}}`, ""},
		"AClusterProviderConfigNeedsOne":  {cluster, `{spec: {region: cn-hangzhou, credentials: {secretRef: {name: s}}}}`, "spec.credentials.secretRef.namespace is required"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			schematest.Check(t, crds+tc.crd, tc.object, tc.want)
		})
	}
}
