// Package controller has the controllers that Karpenter leaves to its cloud providers: the conditions of DroverNodeClasses,
// and NodeClaims and Machines of which one is gone.
package controller
