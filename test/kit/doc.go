// Package kit has the shared parts of the tests on a local control plane: starting one and
// installing Drover from its packages as a user would, waiting for conditions, and watching all
// changes meanwhile.
package kit
