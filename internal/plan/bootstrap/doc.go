// Package bootstrap is the planner that decides what a Machine's VM needs to join its
// cluster: a join token, and the user data that contains it. Values that only the
// Machine's controller knows stand in the user data as placeholders. The controller mints
// the token, fills the user data, and publishes it as a Secret beside the Machine.
//
// The token lives only until the Machine's Node has joined, and never longer than
// creationTimeout and an hour. The user data stays as it is from the moment that a VM may
// have been made from it.
package bootstrap
