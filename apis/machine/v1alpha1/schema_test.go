package v1alpha1_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/schematest"
)

const (
	deploymentXRD = "../xrds/machine.drover.dev_machinedeployments.yaml"
	collectorXRD  = "../xrds/machine.drover.dev_orphancollectors.yaml"
	setXRD        = "../xrds/machine.drover.dev_machinesets.yaml"
	machineCRD    = "../../../package/provider-drover/crds/machine.drover.dev_machines.yaml"
	profileCRD    = "../../../package/provider-drover/crds/machine.drover.dev_operatingsystemprofiles.yaml"
	clusterCRD    = "../../../package/provider-drover/crds/machine.drover.dev_clustermachineclasses.yaml"
	classCRD      = "../../../package/provider-drover/crds/machine.drover.dev_machineclasses.yaml"
)

const healthCRD = "../../../package/provider-drover/crds/machine.drover.dev_healthprofiles.yaml"

const analysisCRD = "../../../package/provider-drover/crds/machine.drover.dev_rolloutanalyses.yaml"

const healthProfile = `
apiVersion: machine.drover.dev/v1alpha1
kind: HealthProfile
metadata: {name: acme-v1}
spec:
  conditions: [{type: FabricDown, action: Reboot, timeout: 3m}]
`

const nodeAnalysis = `
apiVersion: machine.drover.dev/v1alpha1
kind: RolloutAnalysis
metadata: {namespace: team, name: pods}
spec:
  nodes: {}
`

const prometheusAnalysis = `
apiVersion: machine.drover.dev/v1alpha1
kind: RolloutAnalysis
metadata: {namespace: team, name: errors}
spec:
  prometheus: {url: "https://prometheus.example.org", query: 'sum(errors{node=~"${newNodes}"})', condition: "result.all(r, r.value < 1.0)"}
`

const profile = `
apiVersion: machine.drover.dev/v1alpha1
kind: OperatingSystemProfile
metadata: {name: acme-debian-12-v1}
spec:
  formats: [CloudInit]
  containerd: [{major: 2}]
  parameters: {mirror: {pattern: "[a-z]+"}}
  files: [{path: /etc/motd, content: hello}]
  steps: [{name: a, script: "#!/bin/sh\n"}]
`

const deployment = `
apiVersion: machine.drover.dev/v1alpha1
kind: MachineDeployment
metadata: {name: workers, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {pool: workers}}
  template:
    metadata: {labels: {pool: workers, team: a}}
    spec:
      classRef: {name: small}
      version: v1.35.4
`

const machine = `
apiVersion: machine.drover.dev/v1alpha1
kind: Machine
metadata: {name: m, namespace: default}
spec:
  classRef: {name: small}
  version: v1.35.4
  failureDomain: zone-a
`

const class = `
apiVersion: machine.drover.dev/v1alpha1
kind: MachineClass
metadata: {name: small, namespace: default}
spec:
  provider: local
  forProvider: {image: debian-12, size: small, anything: [1, {a: b}]}
`

const collector = `
apiVersion: machine.drover.dev/v1alpha1
kind: OrphanCollector
metadata: {name: local}
spec:
  policy: Delete
  namespace: crossplane-system
`

func TestBadInputIsRefusedByTheSchema(t *testing.T) {
	cases := map[string]struct {
		schema string
		object string
		set    map[string]any
		want   []string
	}{
		"ProfileWithABuiltInName": {profileCRD, profile, map[string]any{"metadata.name": "debian-12-v7"},
			[]string{"names like debian-12-v1 are reserved"}},
		"ProfileWithoutAVersion": {profileCRD, profile, map[string]any{"metadata.name": "acme-debian"},
			[]string{"the name must end with a version"}},
		"ProfileOfAnUnknownFormat": {profileCRD, profile, map[string]any{"spec.formats": []any{"Kickstart"}},
			[]string{"spec.formats[0]", "Kickstart", "Ignition"}},
		"ProfileOfContainerd3": {profileCRD, profile, map[string]any{"spec.containerd": []any{map[string]any{"major": int64(3)}}},
			[]string{"spec.containerd[0].major", "3"}},
		"DurationThatIsTooLong": {machineCRD, machine, map[string]any{"spec.creationTimeout": "9999999h"},
			[]string{"spec.creationTimeout", "9999999h", "must be a duration of at most 87600h, with the largest unit first, such as 90s, 10m or 1h30m"}},
		"DurationThatIsTooLongInATemplate": {deploymentXRD, deployment, map[string]any{"spec.template.spec.drain.hookTimeout": "99999999h"},
			[]string{"spec.template.spec.drain.hookTimeout", "99999999h", "must be a duration of at most 87600h"}},
		"TimeInSmallLetters": {deploymentXRD, deployment, map[string]any{"spec.rollout": map[string]any{"after": "2026-11-27t08:00:00z"}},
			[]string{"spec.rollout.after", "2026-11-27t08:00:00z", "must be a time with a time zone"}},
		"IntegerThatIsTooLong": {machineCRD, machine, map[string]any{"spec.drain.maxEvictRetries": 1e19},
			[]string{"spec.drain.maxEvictRetries", "must be of type int32"}},
		"DurationInDays": {deploymentXRD, deployment, map[string]any{"spec.template.spec.creationTimeout": "2d"},
			[]string{"spec.template.spec.creationTimeout", "2d", "must be a duration of at most 87600h, with the largest unit first, such as 90s, 10m or 1h30m"}},
		"DurationThatIsEmpty": {machineCRD, machine, map[string]any{"spec.creationTimeout": ""},
			[]string{"spec.creationTimeout", "must be a duration of at most 87600h"}},
		"AnAgeWithOnDelete": {deploymentXRD, deployment, map[string]any{"spec.strategy": map[string]any{"type": "OnDelete"}, "spec.rollout": map[string]any{"maxAge": "720h"}},
			[]string{"spec", "rollout.maxAge must be absent if strategy.type is OnDelete"}},
		"AnAgeWithOnDeleteInAPool": {poolXRD, nodePool, map[string]any{"spec.strategy": map[string]any{"type": "OnDelete"}, "spec.rollout": map[string]any{"maxAge": "720h"}},
			[]string{"spec", "rollout.maxAge must be absent if strategy.type is OnDelete"}},
		"AnAgeOfMachinesThatAreNeverReplaced": {deploymentXRD, deployment, map[string]any{"spec.strategy": map[string]any{"type": "InPlaceUpdate", "inPlaceUpdate": map[string]any{"fallback": "Never"}}, "spec.rollout": map[string]any{"maxAge": "720h"}},
			[]string{"spec", "rollout.maxAge must be absent if strategy.inPlaceUpdate.fallback is Never"}},
		"AnUpdateInPlaceThatReplacesTheLastMachine": {poolXRD, nodePool, map[string]any{"spec.strategy": map[string]any{"type": "InPlaceUpdate", "inPlaceUpdate": map[string]any{"fallback": "Never", "maxSurge": int64(1), "maxUnavailable": "0%"}}},
			[]string{"spec.strategy.inPlaceUpdate", "maxUnavailable must not be 0 if fallback is Never"}},
		"AFallbackThatThereIsNot": {deploymentXRD, deployment, map[string]any{"spec.strategy": map[string]any{"type": "InPlaceUpdate", "inPlaceUpdate": map[string]any{"fallback": "Recreate"}}},
			[]string{"spec.strategy.inPlaceUpdate.fallback", `supported values: "Replace", "Never"`}},
		"AnOrderOfFailureDomainsThatThereIsNot": {poolXRD, nodePool, map[string]any{"spec.strategy": map[string]any{"failureDomains": "Serial"}},
			[]string{"spec.strategy.failureDomains", `supported values: "Parallel", "OneByOne"`}},
		"StepsOfAPoolWithoutARollingUpdate": {poolXRD, nodePool, map[string]any{"spec.strategy": map[string]any{"type": "Recreate", "rollingUpdate": map[string]any{"steps": []any{map[string]any{"updated": int64(1), "soak": "1m"}}}}},
			[]string{"spec.strategy", "rollingUpdate.steps must be absent unless type is RollingUpdate"}},
		"AnAgeInDays": {deploymentXRD, deployment, map[string]any{"spec.rollout": map[string]any{"maxAge": "30d"}},
			[]string{"spec.rollout.maxAge", "must be a duration"}},
		"AWindowOfAPoolInWords": {poolXRD, nodePool, map[string]any{"spec.rollout": map[string]any{"windows": []any{map[string]any{"schedule": "every night", "duration": "2h"}}}},
			[]string{"spec.rollout.windows[0].schedule"}},
		"AStepThatGoesBack": {deploymentXRD, deployment, map[string]any{"spec.strategy.rollingUpdate.steps": []any{map[string]any{"updated": int64(5), "soak": "1m"}, map[string]any{"updated": int64(2), "soak": "1m"}}},
			[]string{"spec.strategy.rollingUpdate.steps", "updated must be more in each step than in the step before it"}},
		"AStepThatGoesBackInPercent": {deploymentXRD, deployment, map[string]any{"spec.strategy.rollingUpdate.steps": []any{map[string]any{"updated": "50%", "soak": "1m"}, map[string]any{"updated": "10%", "soak": "1m"}}},
			[]string{"spec.strategy.rollingUpdate.steps", "updated must be more in each step than in the step before it"}},
		"TwoStepsOfTheSameNumber": {deploymentXRD, deployment, map[string]any{"spec.strategy.rollingUpdate.steps": []any{map[string]any{"updated": int64(2), "soak": "1m"}, map[string]any{"updated": int64(2), "soak": "1m"}}},
			[]string{"spec.strategy.rollingUpdate.steps", "updated must be more in each step than in the step before it"}},
		"StepsOfNumbersAndPercentages": {deploymentXRD, deployment, map[string]any{"spec.strategy.rollingUpdate.steps": []any{map[string]any{"updated": int64(1), "soak": "1m"}, map[string]any{"updated": "50%", "soak": "1m"}}},
			[]string{"spec.strategy.rollingUpdate.steps", "updated must be a number in all steps, or a percentage in all steps"}},
		"AStepOfZeroPercent": {deploymentXRD, deployment, map[string]any{"spec.strategy.rollingUpdate.steps": []any{map[string]any{"updated": "0%", "soak": "1m"}}},
			[]string{"spec.strategy.rollingUpdate.steps[0].updated", "must be a number from 1 to 10000, or a percentage from 1% to 100%"}},
		"AStepOfNone": {deploymentXRD, deployment, map[string]any{"spec.strategy.rollingUpdate.steps": []any{map[string]any{"updated": int64(0), "soak": "1m"}}},
			[]string{"spec.strategy.rollingUpdate.steps[0].updated", "must be a number from 1 to 10000, or a percentage from 1% to 100%"}},
		"AStepThatHoldsNothing": {deploymentXRD, deployment, map[string]any{"spec.strategy.rollingUpdate.steps": []any{map[string]any{"updated": int64(1)}}},
			[]string{"spec.strategy.rollingUpdate.steps[0]", "must have soak, approval or analyses"}},
		"AnApprovalByOthers": {deploymentXRD, deployment, map[string]any{"spec.strategy.rollingUpdate.steps": []any{map[string]any{"updated": int64(1), "approval": "Automatic"}}},
			[]string{"spec.strategy.rollingUpdate.steps[0].approval", "Automatic", "Manual"}},
		"StepsOfAnotherStrategy": {deploymentXRD, deployment, map[string]any{"spec.strategy": map[string]any{"type": "OnDelete", "rollingUpdate": map[string]any{"steps": []any{map[string]any{"updated": int64(1), "soak": "1m"}}}}},
			[]string{"spec.strategy", "rollingUpdate.steps must be absent unless type is RollingUpdate"}},
		"AWindowOfFourFields": {deploymentXRD, deployment, map[string]any{"spec.rollout.windows": []any{map[string]any{"schedule": "0 2 * *  ", "duration": "2h"}}},
			[]string{"spec.rollout.windows[0].schedule", "0 2 * *"}},
		"AWindowWithATimeZoneInItsSchedule": {deploymentXRD, deployment, map[string]any{"spec.rollout.windows": []any{map[string]any{"schedule": "TZ=UTC 0 2 * * *", "duration": "2h"}}},
			[]string{"spec.rollout.windows[0].schedule", "TZ=UTC"}},
		"AnUnknownPolicyOfFailures": {deploymentXRD, deployment, map[string]any{"spec.rollout.onFailure": "Ignore"},
			[]string{"spec.rollout.onFailure", "Ignore", "Hold", "Rollback"}},
		"SurgeInWords": {deploymentXRD, deployment, map[string]any{"spec.strategy.rollingUpdate.maxSurge": "25 percent"},
			[]string{"spec.strategy.rollingUpdate.maxSurge", "must be a number from 0 to 10000, or a percentage"}},
		"LabelOfNodesWithASpace": {deploymentXRD, deployment, map[string]any{"spec.template.spec.metadata": map[string]any{"labels": map[string]any{"a b": "c"}}},
			[]string{"spec.template.spec.metadata.labels", `the key "a b" must be a name of at most 63 letters`}},
		"LabelOfNodesOfADomainWithCapitals": {machineCRD, machine, map[string]any{"spec.metadata": map[string]any{"labels": map[string]any{"Example.org/a": "c"}}},
			[]string{"spec.metadata.labels", `the key "Example.org/a" must be a name`}},
		"LabelOfNodesThatIsTooLong": {deploymentXRD, deployment, map[string]any{"spec.template.spec.metadata": map[string]any{"labels": map[string]any{"a": strings.Repeat("v", 70)}}},
			[]string{"spec.template.spec.metadata.labels", "the value of a must have at most 63 letters"}},
		"LabelOfNodesThatEndsWithADot": {deploymentXRD, deployment, map[string]any{"spec.template.spec.metadata": map[string]any{"labels": map[string]any{"a": "v."}}},
			[]string{"spec.template.spec.metadata.labels", "the value of a must have at most 63 letters"}},
		"LabelOfNodesThatOnlyDroverSets": {deploymentXRD, deployment, map[string]any{"spec.template.spec.metadata": map[string]any{"labels": map[string]any{"cluster.drover.dev/join-token": "x"}}},
			[]string{"spec.template.spec.metadata.labels", "cluster.drover.dev/join-token and cluster.drover.dev/config are set by Drover"}},
		"LabelOfMachinesWithASpace": {deploymentXRD, deployment, map[string]any{"spec.template.metadata.labels": map[string]any{"pool": "a", "a b": "c"}},
			[]string{"spec.template.metadata.labels", `the key "a b" must be a name`}},
		"NegativeReplicas": {deploymentXRD, deployment, map[string]any{"spec.replicas": int64(-1)},
			[]string{"spec.replicas", "-1", "greater than or equal to 0"}},
		"SurgeAndUnavailableBothZero": {deploymentXRD, deployment, map[string]any{"spec.strategy.rollingUpdate": map[string]any{"maxSurge": int64(0), "maxUnavailable": int64(0)}},
			[]string{"spec.strategy.rollingUpdate", "maxSurge and maxUnavailable cannot both be 0"}},
		"SurgeAndUnavailableBothZeroPercent": {deploymentXRD, deployment, map[string]any{"spec.strategy.rollingUpdate": map[string]any{"maxSurge": "0%", "maxUnavailable": int64(0)}},
			[]string{"spec.strategy.rollingUpdate", "maxSurge and maxUnavailable cannot both be 0"}},
		"NegativeSurge": {deploymentXRD, deployment, map[string]any{"spec.strategy.rollingUpdate.maxSurge": int64(-1)},
			[]string{"spec.strategy.rollingUpdate.maxSurge", "must be a number from 0 to 10000, or a percentage"}},
		"SurgeThatOverflows": {deploymentXRD, deployment, map[string]any{"spec.strategy.rollingUpdate.maxSurge": int64(2147483647)},
			[]string{"spec.strategy.rollingUpdate.maxSurge", "must be a number from 0 to 10000, or a percentage"}},
		"UnavailableAboveTheLargestPool": {deploymentXRD, deployment, map[string]any{"spec.strategy.rollingUpdate.maxUnavailable": int64(10001)},
			[]string{"spec.strategy.rollingUpdate.maxUnavailable", "must be a number from 0 to 10000, or a percentage"}},
		"BudgetThatOverflows": {deploymentXRD, deployment, map[string]any{"spec.remediation.maxInFlight": int64(2147483647)},
			[]string{"spec.remediation.maxInFlight", "must be a number from 0 to 10000, or a percentage"}},
		"SurgeThatIsNoPercentage": {deploymentXRD, deployment, map[string]any{"spec.strategy.rollingUpdate.maxSurge": "half"},
			[]string{"spec.strategy.rollingUpdate.maxSurge", "must be a number from 0 to 10000, or a percentage"}},
		"UnavailableOfMoreThanAll": {deploymentXRD, deployment, map[string]any{"spec.strategy.rollingUpdate.maxUnavailable": "120%"},
			[]string{"spec.strategy.rollingUpdate.maxUnavailable", "percentage from 0% to 100%"}},
		"ClassOfAnUnknownKind": {deploymentXRD, deployment, map[string]any{"spec.template.spec.classRef.kind": "Class"},
			[]string{"spec.template.spec.classRef.kind", "Class", "ClusterMachineClass"}},
		"UserDataOfAMachineClassInAnotherNamespace": {classCRD, class, map[string]any{"spec.userData": map[string]any{"secretRef": map[string]any{"name": "a", "namespace": "other"}}},
			[]string{"spec.userData.secretRef", "namespace must be absent"}},
		"UserDataOfAClusterMachineClassWithoutANamespace": {clusterCRD, clusterClass, map[string]any{"spec.userData": map[string]any{"secretRef": map[string]any{"name": "a"}}},
			[]string{"spec.userData.secretRef", "namespace must be set"}},
		"TemplateOfAMachineClassInAnotherNamespace": {classCRD, class, map[string]any{"spec.userData": map[string]any{"bootstrapTemplateRef": map[string]any{"kind": "KubeadmConfigTemplate", "name": "a", "namespace": "other"}}},
			[]string{"spec.userData.bootstrapTemplateRef", "namespace must be absent"}},
		"TemplateOfAClusterMachineClassWithoutANamespace": {clusterCRD, clusterClass, map[string]any{"spec.userData": map[string]any{"bootstrapTemplateRef": map[string]any{"kind": "KubeadmConfigTemplate", "name": "a"}}},
			[]string{"spec.userData.bootstrapTemplateRef", "namespace must be set"}},
		"UserDataOfTwoSources": {classCRD, class, map[string]any{"spec.userData": map[string]any{"secretRef": map[string]any{"name": "a"}, "bootstrapTemplateRef": map[string]any{"kind": "KubeadmConfigTemplate", "name": "a"}}},
			[]string{"spec.userData", "must have secretRef or bootstrapTemplateRef, and not both"}},
		"TemplateThatIsNone": {classCRD, class, map[string]any{"spec.userData": map[string]any{"bootstrapTemplateRef": map[string]any{"kind": "KubeadmConfig", "name": "a"}}},
			[]string{"spec.userData.bootstrapTemplateRef.kind", "KubeadmConfig"}},
		"AllowedNamespaceThatIsNone": {clusterCRD, clusterClass, map[string]any{"spec.allowedNamespaces": []any{"team-[ab]"}},
			[]string{"spec.allowedNamespaces[0]", "team-[ab]"}},
		"InfrastructureRefOfAMachine": {machineCRD, machine, map[string]any{"spec.infrastructureRef": map[string]any{"name": "workers"}},
			[]string{"spec", "infrastructureRef is a template's: a Machine must leave it empty"}},
		"InfrastructureRefWithoutAName": {deploymentXRD, deployment, map[string]any{"spec.template.spec.infrastructureRef": map[string]any{"kind": "NodeTemplate"}},
			[]string{"spec.template.spec.infrastructureRef.name", "Required value"}},
		"UnknownStrategy": {deploymentXRD, deployment, map[string]any{"spec.strategy.type": "BigBang"},
			[]string{"spec.strategy.type", "BigBang", "RollingUpdate"}},
		"InPlaceSurgeAndUnavailableBothZero": {deploymentXRD, deployment, map[string]any{"spec.strategy.inPlaceUpdate": map[string]any{"maxSurge": int64(0), "maxUnavailable": "0%"}},
			[]string{"spec.strategy.inPlaceUpdate", "maxSurge and maxUnavailable cannot both be 0"}},
		"UnknownOrchestration": {deploymentXRD, deployment, map[string]any{"spec.strategy.inPlaceUpdate": map[string]any{"orchestration": "Magic"}},
			[]string{"spec.strategy.inPlaceUpdate.orchestration", "Magic", "Manual"}},
		"RolloutAfterWhatIsNoTime": {deploymentXRD, deployment, map[string]any{"spec.rollout": map[string]any{"after": "tomorrow"}},
			[]string{"spec.rollout.after", "tomorrow", "must be a time with a time zone", "2026-11-27T08:00:00Z"}},
		"NegativeRevision": {deploymentXRD, deployment, map[string]any{"spec.rollbackTo": map[string]any{"revision": int64(-2)}},
			[]string{"spec.rollbackTo.revision", "-2"}},
		"NoTimeToProgress": {deploymentXRD, deployment, map[string]any{"spec.progressDeadlineSeconds": int64(0)},
			[]string{"spec.progressDeadlineSeconds", "0", "greater than or equal to 1"}},
		"UnknownDeletionOrder": {deploymentXRD, deployment, map[string]any{"spec.deletion": map[string]any{"order": "Largest"}},
			[]string{"spec.deletion.order", "Largest", "Oldest"}},
		"UpdateInATemplate": {deploymentXRD, deployment, map[string]any{"spec.template.spec.inPlaceUpdate": map[string]any{"id": "a", "version": "v1.35.5", "classRef": map[string]any{"name": "small"}}},
			[]string{"spec.template", "spec.inPlaceUpdate is a Machine's"}},
		"SelectorWithAnotherValueThanTheTemplate": {deploymentXRD, deployment, map[string]any{"spec.selector.matchLabels": map[string]any{"pool": "other"}},
			[]string{"spec", "selector.matchLabels must match template.metadata.labels"}},
		"SelectorWithALabelThatTheTemplateLacks": {deploymentXRD, deployment, map[string]any{"spec.selector.matchLabels": map[string]any{"zone": "a"}},
			[]string{"spec", "selector.matchLabels must match template.metadata.labels"}},
		"EmptySelector": {deploymentXRD, deployment, map[string]any{"spec.selector.matchLabels": map[string]any{}},
			[]string{"spec.selector.matchLabels", "at least 1"}},
		"VersionWithoutV": {deploymentXRD, deployment, map[string]any{"spec.template.spec.version": "1.35.4"},
			[]string{"spec.template.spec.version", "must be a kubelet version like v1.35.4"}},
		"VersionWithoutPatch": {machineCRD, machine, map[string]any{"spec.version": "v1.35"},
			[]string{"spec.version", "must be a kubelet version like v1.35.4"}},
		"NoClass": {deploymentXRD, deployment, map[string]any{"spec.template.spec.classRef.name": ""},
			[]string{"spec.template.spec.classRef.name", "at least 1 chars"}},
		"UnknownClusterKind": {machineCRD, machine, map[string]any{"spec.clusterRef.kind": "Kubeconfig"},
			[]string{"spec.clusterRef.kind", "Kubeconfig", "ClusterProviderConfig"}},
		"DurationWithoutUnit": {machineCRD, machine, map[string]any{"spec.drain.timeout": "20"},
			[]string{"spec.drain.timeout", "must be a duration of at most 87600h, with the largest unit first, such as 90s, 10m or 1h30m"}},
		"UnknownTaintEffect": {machineCRD, machine, map[string]any{"spec.taints": []any{map[string]any{"key": "k", "effect": "Never"}}},
			[]string{"spec.taints[0].effect", "Never", "NoSchedule"}},
		"StartupTaintThatIsATaint": {machineCRD, machine, map[string]any{
			"spec.taints":        []any{map[string]any{"key": "k", "value": "v", "effect": "NoSchedule"}},
			"spec.startupTaints": []any{map[string]any{"key": "a", "effect": "NoSchedule"}, map[string]any{"key": "k", "effect": "NoSchedule"}},
		}, []string{"spec", "startupTaints must not repeat taints"}},
		"SkippedPodsWithAnOrder": {machineCRD, machine, map[string]any{"spec.drain.podRules": []any{map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}}, "behavior": "Skip", "order": int64(1)}}},
			[]string{"spec.drain.podRules[0]", "order must be empty where behavior is Skip"}},
		"UnknownPodBehavior": {machineCRD, machine, map[string]any{"spec.drain.podRules": []any{map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}}, "behavior": "Kill"}}},
			[]string{"spec.drain.podRules[0].behavior", "Kill", "WaitCompleted"}},
		"PodRuleThatSelectsNothing": {deploymentXRD, deployment, map[string]any{"spec.template.spec.drain": map[string]any{"podRules": []any{map[string]any{"behavior": "Skip"}}}},
			[]string{"spec.template.spec.drain.podRules[0]", "selector or namespaceSelector must be set"}},
		"EmptyPodSelector": {machineCRD, machine, map[string]any{"spec.drain.podRules": []any{map[string]any{"selector": map[string]any{}}}},
			[]string{"spec.drain.podRules[0].selector", "matchLabels or matchExpressions must be set"}},
		"PodRequirementWithoutValues": {machineCRD, machine, map[string]any{"spec.drain.podRules": []any{map[string]any{"namespaceSelector": map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": "In"}}}}}},
			[]string{"spec.drain.podRules[0].namespaceSelector.matchExpressions[0]", "values must be set for the operators In and NotIn"}},
		"NoEvictRetries": {machineCRD, machine, map[string]any{"spec.drain.maxEvictRetries": int64(0)},
			[]string{"spec.drain.maxEvictRetries", "greater than or equal to 1"}},
		"HookTimeoutWithoutUnit": {machineCRD, machine, map[string]any{"spec.drain.hookTimeout": "60"},
			[]string{"spec.drain.hookTimeout", "must be a duration of at most 87600h, with the largest unit first, such as 90s, 10m or 1h30m"}},
		"UpdateWhoseIDIsNoLabelValue": {setXRD, strings.Replace(deployment, "MachineDeployment", "MachineSet", 1), map[string]any{"spec.inPlaceUpdate": map[string]any{"id": "a/b", "maxUnavailable": int64(1)}},
			[]string{"spec.inPlaceUpdate.id", "a/b"}},
		"NoTimeToRecover": {deploymentXRD, deployment, map[string]any{"spec.template.spec.health": map[string]any{"timeout": "0s"}},
			[]string{"spec.template.spec.health", "timeout must be at least 1s"}},
		"NoTimeToWaitForRoom": {deploymentXRD, deployment, map[string]any{"spec.template.spec.capacityTimeout": "0s"},
			[]string{"spec.template.spec.capacityTimeout", "capacityTimeout must be at least 1s"}},
		"CapacityTimeoutWithoutUnit": {machineCRD, machine, map[string]any{"spec.capacityTimeout": "30"},
			[]string{"spec.capacityTimeout", "must be a duration of at most 87600h, with the largest unit first, such as 90s, 10m or 1h30m"}},
		"HealthTimeoutWithoutUnit": {machineCRD, machine, map[string]any{"spec.health.timeout": "10"},
			[]string{"spec.health.timeout", "must be a duration of at most 87600h, with the largest unit first, such as 90s, 10m or 1h30m"}},
		"ReadyThatIsUnhealthyWhenTrue": {machineCRD, machine, map[string]any{"spec.health.conditions": []any{map[string]any{"type": "Ready"}}},
			[]string{"spec.health", "conditions of type Ready must have the status False or Unknown"}},
		"DevicesThatMissBeforeTheyAreThere": {machineCRD, machine, map[string]any{"spec.health.conditions": []any{map[string]any{"type": "DevicesMissing", "timeout": "30s"}}},
			[]string{"spec.health", "conditions of type DevicesMissing must have a timeout of at least 1m"}},
		"DevicesThatAreNotMissing": {deploymentXRD, deployment, map[string]any{"spec.template.spec.health": map[string]any{"conditions": []any{map[string]any{"type": "DevicesMissing", "status": "False"}}}},
			[]string{"spec.template.spec.health", "conditions of type DevicesMissing must have the status True"}},
		"HealthProfileThatIsNoName": {deploymentXRD, deployment, map[string]any{"spec.template.spec.health": map[string]any{"profiles": []any{"NVIDIA"}}},
			[]string{"spec.template.spec.health.profiles[0]"}},
		"HealthProfileWithoutVersion": {healthCRD, healthProfile, map[string]any{"metadata.name": "acme"},
			[]string{"the name must end with a version"}},
		"HealthProfileWithAReservedName": {healthCRD, healthProfile, map[string]any{"metadata.name": "nvidia-v2"},
			[]string{"names like nvidia-v1 are reserved"}},
		"HealthProfileThatOnlyReportsLater": {healthCRD, healthProfile, map[string]any{"spec.conditions": []any{map[string]any{"type": "A", "action": "Report", "timeout": "1m"}}},
			[]string{"conditions with the action Report must have no timeout"}},
		"AnAnalysisWithoutAName": {deploymentXRD, deployment, map[string]any{"spec.strategy.rollingUpdate.steps": []any{map[string]any{"updated": int64(1), "analyses": []any{""}}}},
			[]string{"spec.strategy.rollingUpdate.steps[0].analyses[0]"}},
		"AStepWithNoAnalyses": {deploymentXRD, deployment, map[string]any{"spec.strategy.rollingUpdate.steps": []any{map[string]any{"updated": int64(1), "analyses": []any{}}}},
			[]string{"spec.strategy.rollingUpdate.steps[0].analyses"}},
		"AnAnalysisOfNothing": {analysisCRD, nodeAnalysis, map[string]any{"spec": map[string]any{"count": int64(1)}},
			[]string{"spec", "must have either nodes or prometheus: name two analyses in a step to have both"}},
		"AnAnalysisOfBoth": {analysisCRD, prometheusAnalysis, map[string]any{"spec.nodes": map[string]any{}},
			[]string{"spec", "must have either nodes or prometheus"}},
		"AnAnalysisThatEndsBeforeItsLastMeasurement": {analysisCRD, nodeAnalysis, map[string]any{"spec.count": int64(10), "spec.interval": "5m"},
			[]string{"spec", "timeout must be at least interval times count - 1"}},
		"AnIntervalOfNone": {analysisCRD, nodeAnalysis, map[string]any{"spec.interval": "0s"},
			[]string{"spec.interval", "must be from 1s to 1h"}},
		"ALimitThatIsNone": {analysisCRD, nodeAnalysis, map[string]any{"spec.nodes.crashingPods": map[string]any{}},
			[]string{"spec.nodes.crashingPods", "must have max, maxAboveOldPercent or both"}},
		"ALimitAboveAll": {analysisCRD, nodeAnalysis, map[string]any{"spec.nodes.crashingPods": map[string]any{"max": "101%"}},
			[]string{"spec.nodes.crashingPods.max", "must be a number from 0 to 100000, or a percentage from 0% to 100%"}},
		"AQueryWithAnUnknownPlaceholder": {analysisCRD, prometheusAnalysis, map[string]any{"spec.prometheus.query": "${secret}"},
			[]string{"spec.prometheus", "query may have the placeholders ${newNodes}, ${oldNodes}, ${newMachineSet}, ${machineDeployment} and ${namespace}, and no others"}},
		"AServerThatIsAFile": {analysisCRD, prometheusAnalysis, map[string]any{"spec.prometheus.url": "file:///etc/passwd"},
			[]string{"spec.prometheus.url", "must be a URL that begins with https:// or http://"}},
		"CredentialsWithoutTLS": {analysisCRD, prometheusAnalysis, map[string]any{"spec.prometheus.url": "http://prometheus.example.org", "spec.prometheus.secretRef": map[string]any{"name": "login"}},
			[]string{"spec.prometheus", "url must begin with https:// if there is a secretRef: credentials are not sent without TLS"}},
		"AQueryThatMayTakeAMinute": {analysisCRD, prometheusAnalysis, map[string]any{"spec.prometheus.timeout": "1m"},
			[]string{"spec.prometheus.timeout", "must be from 1s to 30s"}},
		"UnhealthyConditionTwice": {machineCRD, machine, map[string]any{"spec.health.conditions": []any{map[string]any{"type": "A"}, map[string]any{"type": "A", "timeout": "1m"}}},
			[]string{"spec.health", "conditions must not repeat a type with the same status"}},
		"ANodeThatIsNotReadyIsOnlyReported": {machineCRD, machine, map[string]any{"spec.health.conditions": []any{map[string]any{"type": "Ready", "status": "Unknown", "action": "Report"}}},
			[]string{"spec.health", "conditions of type Ready must have the action Replace or Reboot", "set spec.health.disabled"}},
		"ATimeoutOfWhatIsOnlyReported": {machineCRD, machine, map[string]any{"spec.health.conditions": []any{map[string]any{"type": "A", "action": "Report", "timeout": "1m"}}},
			[]string{"spec.health", "conditions with the action Report must have no timeout: they are reported at once"}},
		"AnActionThatDoesNotExist": {deploymentXRD, deployment, map[string]any{"spec.template.spec.health": map[string]any{"conditions": []any{map[string]any{"type": "A", "action": "reboot"}}}},
			[]string{"spec.template.spec.health.conditions[0].action", `"reboot"`, `"Replace"`, `"Reboot"`, `"Report"`}},
		"AWaitThatIsShorterThanABoot": {machineCRD, machine, map[string]any{"spec.health.reboot": map[string]any{"timeout": "10s"}},
			[]string{"spec.health.reboot", "timeout must be at least 1m: a VM boots meanwhile"}},
		"NoRebootAtAll": {machineCRD, machine, map[string]any{"spec.health.reboot": map[string]any{"limit": int64(0)}},
			[]string{"spec.health.reboot.limit", "greater than or equal to 1"}},
		"ADrainThatDoesNotExist": {machineCRD, machine, map[string]any{"spec.health.reboot": map[string]any{"drain": "never"}},
			[]string{"spec.health.reboot.drain", `"never"`, `"Never"`}},
		"UnhealthyConditionWithoutTimeToRecover": {machineCRD, machine, map[string]any{"spec.health.conditions": []any{map[string]any{"type": "A", "timeout": "0s"}}},
			[]string{"spec.health.conditions[0]", "timeout must be at least 1s"}},
		"UnknownStatusOfACondition": {machineCRD, machine, map[string]any{"spec.health.conditions": []any{map[string]any{"type": "A", "status": "Maybe"}}},
			[]string{"spec.health.conditions[0].status", "Maybe", "Unknown"}},
		"NegativeBudget": {deploymentXRD, deployment, map[string]any{"spec.remediation.maxInFlight": int64(-1)},
			[]string{"spec.remediation.maxInFlight", "must be a number from 0 to 10000, or a percentage"}},
		"BudgetThatIsNoPercentage": {setXRD, strings.Replace(deployment, "MachineDeployment", "MachineSet", 1), map[string]any{"spec.remediation.maxInFlight": "few"},
			[]string{"spec.remediation.maxInFlight", "must be a number from 0 to 10000, or a percentage"}},
		"UnhealthyOfMoreThanAll": {deploymentXRD, deployment, map[string]any{"spec.remediation.maxUnhealthy": "101%"},
			[]string{"spec.remediation.maxUnhealthy", "percentage from 0% to 100%"}},
		"UnknownOrderOfReplacement": {deploymentXRD, deployment, map[string]any{"spec.remediation.order": "Never"},
			[]string{"spec.remediation.order", "Never", "CreateFirst"}},
		"SetWithNegativeReplicas": {setXRD, strings.Replace(deployment, "MachineDeployment", "MachineSet", 1), map[string]any{"spec.replicas": int64(-3)},
			[]string{"spec.replicas", "-3"}},
		"ClassWithoutProvider": {classCRD, class, map[string]any{"spec.provider": ""},
			[]string{"spec.provider"}},
		"ForProviderThatIsNoObject": {classCRD, class, map[string]any{"spec.forProvider": "large"},
			[]string{"spec.forProvider", "must be of type object"}},
		"DeletionAfterTooShortATime": {collectorXRD, collector, map[string]any{"spec.gracePeriod": "9m59s"},
			[]string{"spec.gracePeriod", `invalid value "9m59s": must be at least 10m where policy is Delete`}},
		"NoGracePeriod": {collectorXRD, collector, map[string]any{"spec.policy": "Report", "spec.gracePeriod": "0s"},
			[]string{"spec.gracePeriod", "gracePeriod must be at least 1s"}},
		"NoOrphanAtMost": {collectorXRD, collector, map[string]any{"spec.maxOrphans": int64(0)},
			[]string{"spec.maxOrphans", "0", "greater than or equal to 1"}},
		"AConfirmedOrphanWithoutName": {collectorXRD, collector, map[string]any{"spec.confirmedOrphans": []any{""}},
			[]string{"spec.confirmedOrphans[0]", "at least 1 chars"}},
		"AFormerInstallationThatIsNoID": {collectorXRD, collector, map[string]any{"spec.formerInstallations": []any{"a b"}},
			[]string{"spec.formerInstallations[0]", "a b", "must be a text of letters, digits, -, _ and ."}},
		"ANamespaceThatIsNone": {collectorXRD, collector, map[string]any{"spec.namespace": "A_b"},
			[]string{"spec.namespace", "A_b", "must be a name of lower-case letters, digits and -"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := parse(t, tc.object)
			for path, v := range tc.set {
				setPath(obj, path, v)
			}
			got := schematest.Load(t, tc.schema).Validate(obj, nil).ToAggregate()
			if got == nil {
				t.Fatal("accepted")
			}
			for _, want := range tc.want {
				if !strings.Contains(got.Error(), want) {
					t.Errorf("the error does not contain %q: %v", want, got)
				}
			}
		})
	}
}

func TestWhatAVMWasMadeFromCannotChange(t *testing.T) {
	cases := map[string]struct {
		schema, object string
		path           string
		value          any
		want           string
	}{
		"MachineVersion":         {machineCRD, machine, "spec.version", "v1.36.0", "version is immutable"},
		"MachineClass":           {machineCRD, machine, "spec.classRef.name", "large", "classRef is immutable"},
		"KindOfTheMachineClass":  {machineCRD, machine, "spec.classRef.kind", "ClusterMachineClass", "classRef is immutable"},
		"MachineFailureDomain":   {machineCRD, machine, "spec.failureDomain", "zone-b", "failureDomain is immutable"},
		"MachineCluster":         {machineCRD, machine, "spec.clusterRef.name", "other", "clusterRef is immutable"},
		"DeploymentSelector":     {deploymentXRD, deployment, "spec.selector.matchLabels", map[string]any{"team": "a"}, "selector is immutable"},
		"NamespaceOfACollector":  {collectorXRD, collector, "spec.namespace", "default", "namespace cannot be changed"},
		"HealthProfile":          {healthCRD, healthProfile, "spec.description", "new", "a HealthProfile is immutable"},
		"Profile":                {profileCRD, profile, "spec.description", "new", "an OperatingSystemProfile is immutable"},
		"MachineClassOfProvider": {classCRD, class, "spec.forProvider.size", "large", "a MachineClass is immutable"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := schematest.Load(t, tc.schema)
			old, obj := parse(t, tc.object), parse(t, tc.object)
			if errs := s.Validate(old, nil); len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			setPath(obj, tc.path, tc.value)
			got := s.Validate(obj, old).ToAggregate()
			if got == nil || !strings.Contains(got.Error(), tc.want) {
				t.Errorf("got %v, want %q", got, tc.want)
			}
		})
	}
}

func TestGoodInputIsAcceptedAndDefaulted(t *testing.T) {
	t.Run("MachineDeployment", func(t *testing.T) {
		obj := parse(t, deployment)
		if errs := schematest.Load(t, deploymentXRD).Validate(obj, nil); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		for path, want := range map[string]any{
			"spec.strategy.type":                         "RollingUpdate",
			"spec.strategy.rollingUpdate.maxSurge":       int64(1),
			"spec.strategy.rollingUpdate.maxUnavailable": int64(0),
			"spec.strategy.inPlaceUpdate.maxUnavailable": int64(1),
			"spec.deletion.order":                        "Newest",
			"spec.progressDeadlineSeconds":               int64(1800),
			"spec.revisionHistoryLimit":                  int64(10),
			"spec.template.spec.classRef.kind":           "MachineClass",
			"spec.template.spec.clusterRef.kind":         "ClusterProviderConfig",
			"spec.template.spec.clusterRef.name":         "default",
			"spec.template.spec.drain.timeout":           "2h",
			"spec.template.spec.creationTimeout":         "20m",
			"spec.template.spec.health.timeout":          "10m",
			"spec.remediation.maxInFlight":               int64(1),
			"spec.remediation.maxUnhealthy":              v1alpha1.DefaultMaxUnhealthy,
			"spec.remediation.order":                     "DeleteFirst",
		} {
			if got := getPath(obj, path); got != want {
				t.Errorf("%s is %v, want %v", path, got, want)
			}
		}
	})
	t.Run("OrphanCollector", func(t *testing.T) {
		for _, given := range []map[string]any{
			{"policy": "Report"}, {"policy": "Delete"}, {"policy": "Delete", "gracePeriod": "10m"}, {"policy": "Report", "gracePeriod": "1s"},
		} {
			obj := parse(t, collector)
			obj["spec"] = given
			if errs := schematest.Load(t, collectorXRD).Validate(obj, nil); len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			if got := getPath(obj, "spec.namespace"); got != "crossplane-system" {
				t.Errorf("namespace is %v", got)
			}
		}
	})
	t.Run("UnhealthyConditionsHaveDefaultsThatCanBeEmptied", func(t *testing.T) {
		for name, tc := range map[string]struct{ given, want any }{
			"Default": {nil, []any{
				map[string]any{"type": "KernelDeadlock", "status": "True"}, map[string]any{"type": "ReadonlyFilesystem", "status": "True"},
				map[string]any{"type": "DiskPressure", "status": "True"}, map[string]any{"type": "NetworkUnavailable", "status": "True"},
			}},
			"Empty":    {[]any{}, []any{}},
			"OwnReady": {[]any{map[string]any{"type": "Ready", "status": "Unknown", "timeout": "5m"}}, []any{map[string]any{"type": "Ready", "status": "Unknown", "timeout": "5m"}}},
		} {
			obj := parse(t, deployment)
			if tc.given != nil {
				setPath(obj, "spec.template.spec.health.conditions", tc.given)
			}
			if errs := schematest.Load(t, deploymentXRD).Validate(obj, nil); len(errs) > 0 {
				t.Fatal(name, errs.ToAggregate())
			}
			if got := getPath(obj, "spec.template.spec.health.conditions"); !equality.Semantic.DeepEqual(got, tc.want) {
				t.Errorf("%s: %v, want %v", name, got, tc.want)
			}
		}
	})
	t.Run("ReplicasDefaultToOne", func(t *testing.T) {
		obj := parse(t, strings.Replace(deployment, "  replicas: 3\n", "", 1))
		if errs := schematest.Load(t, deploymentXRD).Validate(obj, nil); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		if got := getPath(obj, "spec.replicas"); got != int64(1) {
			t.Errorf("replicas is %v", got)
		}
	})
	t.Run("UnknownFieldsArePruned", func(t *testing.T) {
		obj := parse(t, deployment)
		setPath(obj, "spec.template.spec.flavour", "sweet")
		if errs := schematest.Load(t, deploymentXRD).Validate(obj, nil); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		if got := getPath(obj, "spec.template.spec.flavour"); got != nil {
			t.Errorf("flavour is %v", got)
		}
	})
	t.Run("ForProviderIsKeptVerbatim", func(t *testing.T) {
		obj := parse(t, class)
		if errs := schematest.Load(t, classCRD).Validate(obj, nil); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		if got := getPath(obj, "spec.forProvider.anything"); got == nil {
			t.Error("anything was pruned")
		}
	})
	t.Run("AnUpdateInPlaceMayChangeTheVersionToItsOwn", func(t *testing.T) {
		s := schematest.Load(t, machineCRD)
		old, obj, other := parse(t, machine), parse(t, machine), parse(t, machine)
		setPath(old, "spec.inPlaceUpdate", map[string]any{"id": "a", "version": "v1.35.5", "classRef": map[string]any{"name": "newer"}})
		if errs := s.Validate(old, nil); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		setPath(obj, "spec.version", "v1.35.5")
		setPath(obj, "spec.classRef.name", "newer")
		if errs := s.Validate(obj, old); len(errs) > 0 {
			t.Error(errs.ToAggregate())
		}
		setPath(other, "spec.version", "v1.36.0")
		if errs := s.Validate(other, old); len(errs) == 0 {
			t.Error("a version that the update does not lead to was accepted")
		}
	})
	t.Run("ProviderIDMayBeSetOnce", func(t *testing.T) {
		s := schematest.Load(t, machineCRD)
		old, obj := parse(t, machine), parse(t, machine)
		_ = s.Validate(old, nil)
		setPath(obj, "spec.providerID", "local:///zone-a/vm-1")
		if errs := s.Validate(obj, old); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		other := parse(t, machine)
		setPath(other, "spec.providerID", "local:///zone-a/vm-2")
		if errs := s.Validate(other, obj); len(errs) == 0 {
			t.Error("providerID changed")
		}
	})
}

func parse(t *testing.T, s string) map[string]any {
	t.Helper()
	obj := map[string]any{}
	if err := yaml.Unmarshal([]byte(s), &obj); err != nil {
		t.Fatal(err)
	}
	whole(obj)
	return obj
}

// whole makes whole numbers int64, as an API server decodes them.
func whole(m map[string]any) {
	for k, v := range m {
		switch v := v.(type) {
		case float64:
			m[k] = int64(v)
		case map[string]any:
			whole(v)
		}
	}
}

func setPath(obj map[string]any, path string, value any) {
	keys := strings.Split(path, ".")
	for _, k := range keys[:len(keys)-1] {
		next, ok := obj[k].(map[string]any)
		if !ok {
			next = map[string]any{}
			obj[k] = next
		}
		obj = next
	}
	obj[keys[len(keys)-1]] = value
}

func getPath(obj map[string]any, path string) any {
	var v any = obj
	for _, k := range strings.Split(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[k]
	}
	return v
}
