// Package offer decides on the choice that Karpenter has: the offerings of a DroverNodeClass, and its problems. It has no
// client: the caller reads the classes.
package offer
