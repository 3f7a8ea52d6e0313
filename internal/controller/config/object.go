package config

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

// An object is a ProviderConfig or a ClusterProviderConfig.
type object struct {
	client.Object
	ref    target.Ref
	spec   *v1alpha1.ProviderConfigSpec
	status *v1alpha1.ProviderConfigStatus
}

func (o object) reachable() xpv2.Condition { return o.status.GetCondition(v1alpha1.ConditionReachable) }

// asObject returns false for anything else.
func asObject(obj client.Object) (object, bool) {
	switch c := obj.(type) {
	case *v1alpha1.ProviderConfig:
		return object{Object: c, ref: target.NamespacedRef(c.GetNamespace(), c.GetName()), spec: &c.Spec, status: &c.Status}, true
	case *v1alpha1.ClusterProviderConfig:
		return object{Object: c, ref: target.ClusterRef(c.GetName()), spec: &c.Spec.ProviderConfigSpec, status: &c.Status}, true
	}
	return object{}, false
}
