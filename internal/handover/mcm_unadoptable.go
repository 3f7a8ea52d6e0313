package handover

// unadoptable has the reasons for which VMs of some clouds that both systems have cannot be taken over.
var unadoptable = map[string]string{
	"azure":      "the network interface and the disks of a VM are resources of their own, which would have to be imported too",
	"gcp":        "its provider finds an instance by the label drover-vm, and the import sets none",
	"kubevirt":   "the VM and its disk are objects that Drover would write",
	"metalstack": "the external name has the ID of an allocation, which no providerID has",
}
