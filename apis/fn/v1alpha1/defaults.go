package v1alpha1

import "time"

// Defaults of the schemas of inputs. Crossplane does not apply the schema's own defaults.
const (
	// DefaultTokenTTL is the default of Bootstrap.TokenTTL.
	DefaultTokenTTL = time.Hour
	// DefaultTokenGroup is the only entry of the default of Bootstrap.TokenGroups: kubeadm allows
	// this group to join.
	DefaultTokenGroup = "system:bootstrappers:kubeadm:default-node-token"
	// DefaultReturnGrace is the default of Lifecycle.ReturnGrace. A kubelet tries to renew its
	// lease every 10 s, and after a failure up to 7 s later. A cluster considers a Node lost after
	// 50 s.
	DefaultReturnGrace = 2 * time.Minute
	// DefaultUpMargin and DefaultDownMargin are the defaults of Safety.Overshoot.
	DefaultUpMargin   = 2
	DefaultDownMargin = 1
)
