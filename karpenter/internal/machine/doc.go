// Package machine decides about the Machine of a NodeClaim: how it is made, what its status means to Karpenter, and when one
// of the two goes because of the other. It has no client and no clock.
package machine
