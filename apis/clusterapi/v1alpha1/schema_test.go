package v1alpha1_test

import (
	"testing"

	"github.com/drover-dev/drover/internal/schematest"
)

const crds = "../../../package/provider-clusterapi/crds/clusterapi.drover.dev_"

func TestSchemas(t *testing.T) {
	const vm, config, bootstrap = "virtualmachines.yaml", "clusterproviderconfigs.yaml", "bootstraps.yaml"
	cases := map[string]struct {
		crd, object string
		want        string // part of the error; empty for none
	}{
		"AVMWithItsRequiredFields":   {vm, `{spec: {forProvider: {name: vm, infraMachine: {kind: AWSMachine, spec: {instanceType: m6i.large}}}}}`, ""},
		"AVMOfAGroupOfItsOwn":        {vm, `{spec: {forProvider: {name: vm, infraMachine: {apiGroup: infrastructure.example.org, kind: FooMachine, spec: {}}}}}`, ""},
		"AnObservedVMNeedsNoFields":  {vm, `{spec: {managementPolicies: [Observe, Delete], forProvider: {}}}`, ""},
		"AVMNeedsAName":              {vm, `{spec: {forProvider: {infraMachine: {kind: AWSMachine, spec: {}}}}}`, "spec.forProvider.name is required"},
		"AVMNeedsAnInfraMachine":     {vm, `{spec: {forProvider: {name: vm}}}`, "spec.forProvider.infraMachine is required"},
		"AnInfraMachineNeedsASpec":   {vm, `{spec: {forProvider: {name: vm, infraMachine: {kind: AWSMachine}}}}`, "spec.forProvider.infraMachine.spec"},
		"ASpecIsAnObject":            {vm, `{spec: {forProvider: {name: vm, infraMachine: {kind: AWSMachine, spec: [x]}}}}`, "spec.forProvider.infraMachine.spec"},
		"AKindIsNoPath":              {vm, `{spec: {forProvider: {name: vm, infraMachine: {kind: "aws/machine", spec: {}}}}}`, "spec.forProvider.infraMachine.kind"},
		"ATagIsAnAnnotationOfDrover": {vm, `{spec: {forProvider: {name: vm, infraMachine: {kind: AWSMachine, spec: {}}, tags: {"cluster.x-k8s.io/paused": "true"}}}}`, "a key of tags must not contain a slash"},
		"OneSourceOfUserData":        {vm, `{spec: {forProvider: {name: vm, infraMachine: {kind: AWSMachine, spec: {}}, userData: x, userDataSecretRef: {name: s, key: k}}}}`, "set userData or userDataSecretRef, not both"},

		"AConfigurationWithTheIdentityOfThePod": {config, `{spec: {clusterName: c, infraCluster: {kind: AWSCluster, name: c}, infraMachineKinds: [{kind: AWSMachine}], credentials: {source: InjectedIdentity}}}`, ""},
		"AConfigurationWithAKubeconfig":         {config, `{spec: {clusterName: c, infraCluster: {kind: AWSCluster, name: c}, infraMachineKinds: [{kind: AWSMachine}], credentials: {secretRef: {namespace: s, name: s}}}}`, ""},
		"AConfigurationNamesTheKindsOfVMs":      {config, `{spec: {clusterName: c, infraCluster: {kind: AWSCluster, name: c}, infraMachineKinds: [], credentials: {source: InjectedIdentity}}}`, "must have infraMachineKinds or bootstrapConfigKinds"},
		"AConfigurationForBootstrapProviders":   {config, `{spec: {clusterName: c, controlPlaneEndpoint: {host: h, port: 6443}, bootstrapConfigKinds: [{kind: KubeadmConfig}], credentials: {source: InjectedIdentity}}}`, ""},
		"VMsNeedAnInfraCluster":                 {config, `{spec: {clusterName: c, controlPlaneEndpoint: {host: h, port: 6443}, infraMachineKinds: [{kind: AWSMachine}], credentials: {source: InjectedIdentity}}}`, "infraMachineKinds needs infraCluster"},
		"AClusterNeedsAnEndpoint":               {config, `{spec: {clusterName: c, bootstrapConfigKinds: [{kind: KubeadmConfig}], credentials: {source: InjectedIdentity}}}`, "must have infraCluster or controlPlaneEndpoint"},
		"ABootstrap":                            {bootstrap, `{spec: {forProvider: {templateRef: {kind: KubeadmConfigTemplate, name: t}}}}`, ""},
		"ATemplateIsATemplate":                  {bootstrap, `{spec: {forProvider: {templateRef: {kind: KubeadmConfig, name: t}}}}`, "spec.forProvider.templateRef.kind"},
		"AConfigurationNamesACluster":           {config, `{spec: {infraCluster: {kind: AWSCluster, name: c}, infraMachineKinds: [{kind: AWSMachine}], credentials: {source: InjectedIdentity}}}`, "spec.clusterName"},
		"APortIsAPort":                          {config, `{spec: {clusterName: c, infraCluster: {kind: AWSCluster, name: c}, infraMachineKinds: [{kind: AWSMachine}], controlPlaneEndpoint: {host: h, port: 0}, credentials: {source: InjectedIdentity}}}`, "spec.controlPlaneEndpoint.port"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			schematest.Check(t, crds+tc.crd, tc.object, tc.want)
		})
	}
}
