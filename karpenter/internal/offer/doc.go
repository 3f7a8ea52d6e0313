// Package offer decides what Karpenter may choose from: the offerings of a DroverNodeClass, and what is wrong with it. It has
// no client: the caller reads the classes.
package offer
