// Package jointoken keeps the bootstrap token of each Machine in its target cluster, and
// the Machine's user data in a Secret beside the Machine.
//
// The creation of a Machine costs two writes, in this order:
//
//  1. the token, a Secret of kube-system in the target cluster,
//  2. the Secret beside the Machine, with the token, the API server and the user data.
//
// A revocation costs one more: it deletes the token, and leaves the Secret.
//
// The protocol survives a crash, and a lost response, at every point:
//
//   - The ID of the token comes from the Machine's UID, so that a second attempt finds
//     the token of the first one, and uses its secret half.
//   - A published secret half is used again for as long as its total life lasts: a VM
//     that boots with it can join.
//   - The time of minting is on both Secrets, so that no restart prolongs a life.
//   - The Secret beside the Machine names the hash of the template that its user data was
//     filled from: user data is never filled again to find out whether it is current.
//
// User data that Drover does not write is a Secret of the user, in the namespace of the Machine, or in the
// namespace that a ClusterMachineClass names. Only this package reads it, again with each Request, until a VM may
// exist. An annotation of the Secret beside the Machine describes the user's Secret.
//
// The token has the UIDs of its Machine and of the configuration that it was minted through. A token without
// the UID of the Machine is never used. The Sweeper deletes tokens, and Nodes that never became Ready, whose
// Machine no longer exists.
//
// The secret half is kept in the two Secrets and in memory, and is never part of an error
// or event.
package jointoken
