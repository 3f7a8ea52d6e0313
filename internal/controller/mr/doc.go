// Package mr holds what the controllers of our managed resources share: the setup
// of crossplane-runtime's managed reconciler, and what keeps it from writing to the
// API server when nothing changed.
package mr
