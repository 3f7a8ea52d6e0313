// Package mr has the parts that the controllers of Drover's managed resources share: the setup of
// crossplane-runtime's managed reconciler, and wrappers that avoid writes to the API server when
// nothing changed.
package mr
