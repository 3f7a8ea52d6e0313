package v1alpha1

// GetLastHandledReconcileAt returns the last value of the annotation
// crossplane.io/reconcile-requested-at that was handled.
func (mg *VirtualMachine) GetLastHandledReconcileAt() string {
	return mg.Status.LastHandledReconcileAt
}

// SetLastHandledReconcileAt sets the last value of the annotation
// crossplane.io/reconcile-requested-at that was handled. The managed reconciler calls it.
func (mg *VirtualMachine) SetLastHandledReconcileAt(token string) {
	mg.Status.LastHandledReconcileAt = token
}
