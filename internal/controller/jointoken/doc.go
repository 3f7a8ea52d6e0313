// Package jointoken keeps a bootstrap token in the target cluster as long as its
// JoinToken is there, and publishes what a kubelet needs to join with it.
//
// The token's ID comes from the JoinToken's UID, so that an answer that is lost
// leaves one token and not two. The secret half is random; it is kept in the target
// cluster and in the connection Secret, and nowhere else.
//
// Tokens carry the UIDs of their JoinToken and of the configuration that they were made
// through. One whose JoinToken is gone was left over, and is swept.
package jointoken
