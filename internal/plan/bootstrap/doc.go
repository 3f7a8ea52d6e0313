// Package bootstrap is the planner of the join token and the user data by which a Machine's VM
// joins its cluster. The user data has placeholders for values that only the Machine's controller
// knows. The controller creates the token, fills the user data, and publishes it as a Secret beside
// the Machine.
//
// The token exists only until the Machine's Node has joined, and at most for creationTimeout plus
// one hour. As soon as a VM may have been created from the user data, it does not change any more.
package bootstrap
