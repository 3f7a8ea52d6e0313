// Package nutanix implements the VMs of Nutanix AHV for the package native.
//
// # API
//
// The provider calls version 4.1 of the APIs of Prism Central (vmm, prism, clustermgmt, networking). Nutanix
// generates Go clients from the same descriptions (github.com/nutanix/ntnx-api-golang-clients). The package does
// not use them, because they lack parts that the frame requires:
//
//   - They verify the certificate of Prism Central with the roots of the system only, and accept no other
//     transport: a CA of the configuration, the rate limit and a test without a network are impossible.
//   - A call has no context, and is repeated up to five times.
//   - They discard errors of JSON, so that a damaged response looks like an empty one.
//   - The client of vmm alone has 74000 lines, of which the provider needs a handful of calls.
//
// Version 3 lets the caller reserve the UUID of a VM (idempotence_identifiers). Version 4 is the one that Nutanix
// develops (https://www.nutanix.dev/nutanix-api-user-guide), so the package calls version 3 only for what the clients
// of version 4.1 lack: the UUID of a project with a name.
//
// # Identity
//
// Prism Central chooses the UUID of a VM. The provider chooses another UUID before the creation: the external name
// of the managed resource, which the description of the VM has. The UUID of the VM is known from the task of the
// creation. After that, the VM is found by its UUID, which Nutanix never assigns again. A user may then change the
// description.
//
// # Lost responses
//
// A creation has a request ID (NTNX-Request-Id), which is recorded before the call. While the result of a
// creation is unknown, the provider searches for a VM with its name and its external name in the description. If
// there is none after some time, the provider repeats the call with the same request ID, which Prism Central uses
// as an idempotence token. A creation that failed certainly is repeated with another request ID: Prism Central
// would return the failed task again.
package nutanix
