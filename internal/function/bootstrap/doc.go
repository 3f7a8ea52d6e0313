// Package bootstrap is the step that gives a Machine what its VM needs to join: a
// join token of the target cluster, and the user data that holds it.
//
// The token lives only until the Machine's Node is there. The user data is rendered
// once: from the moment that a VM may have been made from it, it stays as it is.
package bootstrap
