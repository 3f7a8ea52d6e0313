package conformance

import (
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"

	"testing"
)

// A Case tests one promise that Drover makes for every provider.
type Case struct {
	// Name of its test.
	Name string
	// Means is the promise, in the words of the docs.
	Means string
	run   func(t *testing.T, c Cloud, l *life)
	// inLife cases run one after the other, with one Machine.
	inLife bool
}

// Names of cases. A Cloud may be unable to have some of them: see Cloud.Cannot.
const (
	CaseWrongField  = "WrongField"
	CaseCreated     = "Created"
	CaseSecrecy     = "Secrecy"
	CaseProviderID  = "ProviderID"
	CaseAddresses   = "Addresses"
	CaseReboot      = "Reboot"
	CaseDrained     = "Drained"
	CaseLost        = "Lost"
	CaseCredentials = "Credentials"
	CaseOrphan      = "Orphan"
	CaseMissing     = "Missing"
	CaseConsole     = "Console"
	CasePoliciesOff = "PoliciesOff"
	CaseSpot        = "SpotInterruption"
	CaseRestart     = "Restart"
	CaseSlowCloud   = "SlowCloud"
	CaseDualStack   = "DualStack"
	CaseAllocation  = "FailedAllocation"
	CaseThrottling  = "Throttling"
)

// cases in the order of the table.
var cases = []Case{
	{CaseWrongField, "A field that `forProvider` does not have, or of a wrong type, is refused at the MachineDeployment with its path, before there is any VM", wrongField, false},
	{CaseCreated, "The VM has the tags that name its Machine, or where tags outlive VMs its name and the tags that many VMs have, and the user data that was rendered for it", created, true},
	{CaseSecrecy, "The join token is in no object but Secrets and, where the kind takes the user data itself, the field that [the table of clouds](README.md#user-data) names; it is refused once the Node has joined", secrecy, true},
	{CaseProviderID, "The providerID of the Machine is that of its Node, byte for byte, and the Machine runs", providerID, true},
	{CaseAddresses, "The addresses of the VM have their types, and the Node gets its serving certificate by them", addresses, true},
	{CaseDualStack, "A VM has more than one IPv4 address and an IPv6 address: the Node gets a serving certificate for all of them, regardless of the component that writes the addresses of the Node, and none for an address that the VM does not have", dualStack, true},
	{CaseReboot, "A user requests a reboot of a Machine: its Node is cordoned and drained, its VM is rebooted once, and the Node reports another boot ID and is uncordoned. The Machine keeps its VM and its Node, and is not replaced", reboot, true},
	{CaseDrained, "A Machine that is deleted keeps its VM until its Node is drained, and no longer", drained, true},
	{CaseLost, "A user deletes a VM at the cloud: the loss is noticed, and the Machine is replaced", lost, false},
	refusal(fn.ErrorCapacityExhausted, "The cloud has no room"),
	refusal(fn.ErrorQuotaExceeded, "The account may have no more VMs"),
	refusal(fn.ErrorInvalidRequest, "The class requests something that the cloud does not have"),
	refusal(fn.ErrorPermissionDenied, "The account may not create VMs"),
	refusal(fn.ErrorThrottled, "The cloud was called too often"),
	{CaseCredentials, "Credentials are missing or wrong: the Machine reports the name of the ProviderConfig, no VM is created or lost, and correct credentials take effect without a restart", credentials, false},
	{CaseOrphan, "A VM that no Machine claims is found, and deleted", orphan, false},
	{CaseMissing, "A user deletes a VM at the cloud, the provider still shows the old state, and no controller deletes the Node: the inventory misses the VM, and its Machine is Failed (`VMLost`) and replaced, but no other Machine", passedOver, false},
	{CaseConsole, "The console of a VM that is late to join is in the condition `NodeReady`, and is not read before that, nor of a VM that joins", console, false},
	{CaseSpot, "A spot VM that the cloud stops fails its Machine within a minute (`VMFailed`), is replaced, and deleted", spotInterruption, false},
	{CasePoliciesOff, "A provider that runs without management policies creates no VM, since it could not delete it: the Machine has the reason `ManagementPoliciesDisabled`, and can be deleted", policiesOff, false},
	{CaseRestart, "A provider that dies between the creation of a VM and the record of it: one VM is in use, the Machine runs or is replaced, and a VM that is left is reported by the OrphanCollector, or is the only one", restart, false},
	{CaseSlowCloud, "A VM starts after its provider observed it, and the poll interval of 10 minutes cannot be shortened: the Machine runs within 3 minutes, and its condition `InfrastructureReady` is True", slowCloud, false},
	{CaseAllocation, "The cloud accepts a VM, and then has no room for it: the Machine reports the error class `CapacityExhausted` and runs when there is room, or it is Failed; nothing is left at the cloud", failedAllocation, false},
	{CaseThrottling, "The cloud refuses every call for more than a minute: the Machine is held, the calls are few, its VM resource is not written again, and it gets one VM in the end", throttling, false},
}

func refusal(code fn.ErrorCode, what string) Case {
	return Case{
		Name: string(code), Means: what + ": the Machine reports this error class, and runs once the cloud accepts its VM",
		run: func(t *testing.T, c Cloud, _ *life) { refused(t, c, code) },
	}
}
