// Package v1 has the names that upjet v2.3.0 and its tests import from crossplane-runtime's
// package of this path. crossplane-runtime v2.3.0 moved them to crossplane/apis. Each is an alias
// of the moved declaration, so upjet's values are those of the present runtime. Only upjet imports
// it.
package v1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Types of the present API.
type (
	Condition            = xpv2.Condition
	ConditionReason      = xpv2.ConditionReason
	ConditionType        = xpv2.ConditionType
	ConditionedStatus    = xpv2.ConditionedStatus
	DeletionPolicy       = xpv2.DeletionPolicy
	LocalSecretReference = xpv2.LocalSecretReference
	ManagementAction     = xpv2.ManagementAction
	ManagementPolicies   = xpv2.ManagementPolicies
	Reference            = xpv2.Reference
	SecretKeySelector    = xpv2.SecretKeySelector
	SecretReference      = xpv2.SecretReference
)

// TypeReady is the type of the condition that a resource is ready.
const TypeReady = xpv2.TypeReady

// Actions of management policies.
const (
	ManagementActionAll            = xpv2.ManagementActionAll
	ManagementActionCreate         = xpv2.ManagementActionCreate
	ManagementActionLateInitialize = xpv2.ManagementActionLateInitialize
	ManagementActionObserve        = xpv2.ManagementActionObserve
	ManagementActionUpdate         = xpv2.ManagementActionUpdate
)

// Available is the condition of a resource that can be used.
func Available() Condition { return xpv2.Available() }

// ReconcileError is the condition of a resource whose last reconciliation failed with err.
func ReconcileError(err error) Condition { return xpv2.ReconcileError(err) }

// ReconcileSuccess is the condition of a resource whose last reconciliation succeeded.
func ReconcileSuccess() Condition { return xpv2.ReconcileSuccess() }
