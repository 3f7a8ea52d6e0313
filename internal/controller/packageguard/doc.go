// Package packageguard protects the package that installed the Machine CRD: as long as a
// Machine exists, the API server refuses to delete the Provider.
//
// Without the guard, "kubectl delete provider" deletes the ProviderRevision, its CRDs and
// thereby every Machine. The guard is one ClusterUsage of Crossplane, called
// drover-machines. Crossplane labels the Provider that the usage names with
// crossplane.io/in-use, and its webhook denies the deletion of a labeled object with the
// usage's reason.
//
// The controller keeps the usage while a Machine exists and deletes it with the last one.
// A Machine that is being deleted counts: its drain and the deletion of its VM need this
// provider. The guard is a warning, not a lock: a Provider that is deleted between the
// creation of the first Machine and the label of Crossplane is not protected.
//
// Only the Provider is guarded. Crossplane makes it a co-owner of all that its revisions
// install, so that the deletion of a ProviderRevision deletes no CRD. A usage of the
// revision would block Crossplane when it prunes old revisions.
//
// The Provider is found from the CRD: its owner references name the ProviderRevision, and
// a label of the revision names the Provider. A CRD without such an owner was applied by
// hand, and there is no package to guard.
//
// At rest there is no call. The CRD's metadata and the usage are watched by name, from the
// first successful read on; a kind that is missing or forbidden is never watched, since
// a failing watch is retried forever. The process remembers, and a restart loses:
//   - the Provider of one ProviderRevision, by the UID in the CRD's owner reference;
//   - which of the two watches are started;
//   - until when the guard waits after the API server refused it, and the logged error.
package packageguard
