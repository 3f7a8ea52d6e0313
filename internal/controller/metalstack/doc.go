// Package metalstack implements the machines of metal-stack for the package native. A VM is the allocation of a machine,
// which is a physical server.
//
// # API
//
// The provider calls the metal-api with typed calls of its own, as its description metal-api.json in
// github.com/metal-stack/metal-go v0.43.0 has them. The package does not use the client metal-go:
//
//   - It accepts no other transport. A rate limit, a signature that is made after the wait for it, and a test without a
//     network are impossible. The metal-api refuses a signature that is older than 15 seconds.
//   - It has 149 packages beside the standard library, for the twelve calls of the provider: among them are parts of a
//     database driver, three libraries for JSON Web Tokens, and those of OpenAPI.
//
// # Identity
//
// A machine exists before and after the VM, and the metal-api chooses it. So the ID of a machine alone never identifies
// a VM: the external name of the managed resource is the ID of the machine and the UUID of its allocation, which the
// metal-api never uses again. An allocation of another project than that of the configuration, and that of a firewall,
// count as absent: an HMAC key reaches all projects.
//
// Before a machine is freed or reset, the provider reads it and compares the UUID of its allocation. The calls that free
// and reset a machine have no precondition, so they must follow within actWithin. A machine that another user frees meanwhile first
// boots, is wiped and registers again, which takes minutes, before the metal-api chooses it for the next allocation.
//
// # Lost responses
//
// The metal-api has no idempotency token. The provider adds the tag drover-vm with the UID of the managed resource.
// The metal-api writes the tags together with the allocation, and removes both together. While the result of a
// creation is unknown, the provider searches for the tag. It creates another VM only if there is none after some time
// (settle), which is longer than the metal-api works on a request. If two machines have the tag of one VM nevertheless,
// the VM is the one that was allocated first. The external name of the other is claimed by no managed resource, so an
// inventory reports it as an orphan.
//
// # States
//
// The newest entry in the log of provisioning events counts:
//
//   - "Phoned Home" means that the installed operating system runs. The metal-api allocates a machine in the state
//     "Waiting" only, so the event is that of the present allocation.
//   - "Planned Reboot" with the message OFF means that a user powered off the machine. The command to power it on is no
//     event, so that this one is the newest until the operating system runs.
//   - "Alive" is not in the log: the installer sends it, and it does not mean that the machine runs.
//   - A crash loop means that events came in an unexpected order. It ends with the next "Phoned Home", so it is shown
//     in the text of the state, and is no final failure. The creation timeout of the Machine is.
//   - The liveliness Unknown means that there was no event for some minutes. The machine may be down, or its service
//     for these events may be off. It is shown in the text only: the Node proves more.
//
// The power state that the management controller (BMC) reports is not read, because the metal-api returns it
// together with the password of the BMC.
package metalstack
