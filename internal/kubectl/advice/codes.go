package advice

import (
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Codes returns the advice for the codes of clouds' errors, the failures of Machines, and the reasons of Crossplane and of upjet,
// by reason, as For returns it.
func Codes() map[string]Advice {
	out := map[string]Advice{}
	for reason, a := range codes {
		out[reason] = a.OfTheUsualCase()
	}
	return out
}

// codes of clouds' errors and failures of Machines. Crossplane's reasons of Synced are among them, and those of LastAsyncOperation.
var codes = map[string]Advice{
	string(fn.ErrorQuotaExceeded): {
		Meaning: "The quota of the account at the cloud is used up.",
		Do:      "Raise the quota at the cloud, delete VMs that are of no use, or lower replicas. Drover tries again by itself.",
	},
	string(fn.ErrorCapacityExhausted): {
		Meaning: "The cloud has no room for the VM, here and now.",
		Do:      "Wait, or use another failure domain or another class. Drover tries again by itself.",
	},
	string(fn.ErrorInvalidRequest): {
		Meaning: "The cloud refuses the request: the class names something that the cloud does not have, such as an image or a size.",
		Do:      "Create a class with correct spec.forProvider and name it in spec.template.spec.classRef: a class is immutable.",
	},
	string(fn.ErrorPermissionDenied): {
		Meaning: "The cloud refuses the credentials of its ProviderConfig.",
		Do:      "Renew the credentials, or grant the right that the message names.",
	},
	string(fn.ErrorProviderConfigNotFound): {
		Meaning: "The ProviderConfig that the class names does not exist.",
		Do:      "Create it, or name another one in a class of its own: a class is immutable.",
	},
	string(fn.ErrorThrottled): {
		Meaning: "The cloud receives too many requests of the account.",
		Do:      "",
	},
	string(fn.ErrorTransient): {
		Meaning: "The cloud reports an error that may pass.",
		Do:      "If it lasts, read the message and the conditions of the VM resource.",
	},
	string(machinev1alpha1.FailureCreateFailed): {
		Meaning: "The provider gave up the creation of the VM.",
		Do:      "Read the message: it has the error of the cloud.",
	},
	string(machinev1alpha1.FailureCreateUnknown): {
		Meaning: "The answer of the cloud was lost: it is unknown whether a VM was created.",
		Do:      "Let the set replace the Machine. An OrphanCollector reports a VM that was left.",
	},
	string(machinev1alpha1.FailureCapacityTimeout): {
		Meaning: "The cloud had no room for the VM for longer than spec.capacityTimeout.",
		Do:      "Use another failure domain or another class.",
	},
	string(machinev1alpha1.FailureVMLost): {
		Meaning: "The VM does not exist any more, although the Machine was not deleted.",
		Do:      "Find out at the cloud which client deleted the VM.", Replaced: true,
	},
	string(machinev1alpha1.FailureVMFailed): {
		Meaning: "The provider reports that the VM failed for good.",
		Do:      "Read the message and the console of the VM.", Replaced: true,
	},
	string(machinev1alpha1.FailureNodeDeleted): {
		Meaning: "The Node was deleted, and its kubelet does not create another.",
		Do:      "Find out which client deleted the Node.", Replaced: true,
	},
	string(machinev1alpha1.FailureJoinTimeout): {
		Meaning: "No healthy Node joined within spec.creationTimeout.",
		Do:      "Read the console of the VM: the image, the user data, the mirror and the way to the API server are the usual causes.",
		Keep:    "To keep a VM for analysis, run kubectl drover preserve.",
	},
	string(machinev1alpha1.FailureNodeUnhealthy): {
		Meaning: "The Node was unhealthy for longer than spec.health allows.",
		Do:      "Check the VM, its kubelet and its network.", Replaced: true,
	},
	"ReconcilePaused": {
		Meaning: "The annotation crossplane.io/paused holds the object: nothing of it is changed.",
		Do:      "Remove the annotation.",
	},
	"ReconcileError": {
		Meaning: "Crossplane or the provider cannot reconcile the object.",
		Do:      "Correct what the message names: the Composition in spec.crossplane, credentials, rights, or the class of new Machines.",
	},
	"AsyncCreateFailure": {
		Meaning: "The provider could not create the resource at the cloud.",
		Do:      "Read the message: it has the error of the cloud. The provider tries again by itself.",
	},
	"AsyncUpdateFailure": {
		Meaning: "The provider could not update the resource at the cloud.",
		Do:      "Read the message: it has the error of the cloud. The provider tries again by itself.",
	},
	"AsyncDeleteFailure": {
		Meaning: "The provider could not delete the resource at the cloud.",
		Do:      "Read the message: it has the error of the cloud. The provider tries again by itself.",
	},
	"ApplyFailure": {
		Meaning: "Terraform could not create or change the resource at the cloud.",
		Do:      "Read the message: it has the error of the cloud. The provider tries again by itself.",
	},
	"DestroyFailure": {
		Meaning: "Terraform could not delete the resource at the cloud.",
		Do:      "Read the message: it has the error of the cloud. The provider tries again by itself.",
	},
}
