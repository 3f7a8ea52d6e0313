// Package bootstrap is the step that gives a Machine what its VM needs to join: a
// join token of the target cluster, and the user data that holds it. What only the
// cluster says stands in the user data as a placeholder: the JoinToken's controller
// fills it in, and publishes the whole as a Secret, so that a VM whose provider awaits
// that can be asked for at the same time.
//
// The token lives only until the Machine's Node is there: then its JoinToken is revoked.
// The user data stays as it is from the moment that a VM may have been made from it.
package bootstrap
