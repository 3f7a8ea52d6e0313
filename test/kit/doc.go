// Package kit is what the tests on a local control plane share: starting one and
// installing Drover from its packages as a user would, waiting for conditions, and
// looking on while something happens.
package kit
