// Package packageguard protects the packages that Machines need: as long as a Machine exists, the API
// server refuses to delete them.
//
// A guard is one ClusterUsage of Crossplane. Crossplane labels the package that the usage names with
// crossplane.io/in-use, and its webhook denies the deletion of a labeled object with the usage's
// reason. There are these guards:
//
//	ClusterUsage              package
//	drover-machines           the Provider that installed the Machine CRD
//	drover-configuration      the Configuration that installed the MachineSet XRD
//	drover-function           the Function whose steps run in this process
//	drover-machines.GROUP     the Provider that installed the kinds of an API group which
//	                          Machines have VMs or companions of
//
// The controller keeps a usage while a Machine exists that needs the package, and deletes it with the
// last one. A Machine that is being deleted counts: its drain and the deletion of its VM need the
// packages. The guard is a warning, not a lock: a package that is deleted between the creation of the
// first Machine and the label of Crossplane is not protected. The policy drover-definitions protects
// the objects of users in any case.
//
// Only packages are guarded. Crossplane makes a package a co-owner of everything that its revisions
// install, so that the deletion of a revision deletes no CRD. A usage of the revision would block
// Crossplane when it prunes old revisions.
//
// Packages are found from the definitions that they installed: the owner references of a definition
// name the revision, and a label of the revision names the package. A definition without such an
// owner was applied by hand, and there is no package to guard. The API groups that Machines need are
// read from status.resourceRefs. The status is no authority: a forged one only causes too many
// guards, or too few.
//
// At rest there is no call. The definitions' metadata and the usages are watched from the first
// successful read on. A kind that is missing or forbidden is never watched, since a failing watch
// is retried forever. The process keeps in memory, and a restart loses:
//   - the package of one revision for each definition, by the UID in the owner reference;
//   - which watches are started;
//   - until when a guard waits after the API server refused it, and the logged error.
package packageguard
