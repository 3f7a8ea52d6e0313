package v1alpha1

const (
	// LabelVirtualMachine is on the InfraMachine of a VM, on the Machine of cluster.x-k8s.io that owns it, and on the Secret
	// with its user data. It has the external name of the VirtualMachine, by which an inventory finds the VM.
	LabelVirtualMachine = "clusterapi.drover.dev/virtual-machine"
	// LabelBootstrap is on a BootstrapConfig, and on the Machine of cluster.x-k8s.io that owns it. It has the UID of the
	// Bootstrap.
	LabelBootstrap = "clusterapi.drover.dev/bootstrap"
	// LabelKept is on the Clusters of cluster.x-k8s.io that Drover keeps. It uses no other, but those with LabelShared.
	LabelKept = "clusterapi.drover.dev/kept-by-drover"
	// LabelShared is "true" on a Cluster of cluster.x-k8s.io that Cluster API's own controllers keep, and in which Drover has
	// Machines. Each of these has the annotation cluster.x-k8s.io/paused, with which those controllers leave it alone.
	LabelShared = "clusterapi.drover.dev/shared"
	// AnnotationImported is on the objects of Cluster API that kubectl drover import capi took over. Its JSON has the former owners,
	// labels and pause, which the way back restores.
	AnnotationImported = "clusterapi.drover.dev/imported"
	// AnnotationStandsFor names the VirtualMachine or the Bootstrap that a Machine of cluster.x-k8s.io stands for.
	AnnotationStandsFor = "clusterapi.drover.dev/stands-for"
	// FinalizerMachine keeps a Machine of cluster.x-k8s.io until its InfraMachine or its BootstrapConfig is gone: the
	// garbage collector would delete these with it.
	FinalizerMachine = "clusterapi.drover.dev/machine"
)

// StandsFor is the value of AnnotationStandsFor for an object of a kind of this group.
func StandsFor(kind, namespace, name string) string {
	return kind + " " + namespace + "/" + name + " of " + Group
}
