package machine

import (
	"strings"
	"sync"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// leastLabels of an API group that may have the configurations of a provider. A shorter domain belongs to many
// products.
const leastLabels = 3

// configKinds finds the kinds of providers' configurations.
type configKinds struct {
	mapper apimeta.RESTMapper
	// found kinds, by the group of the VM and the name of the kind. A mapper reads from the API server for each group
	// without the kind.
	found sync.Map
}

// of returns the kind of the configuration that a VM resource refers to, and whether it is namespaced. It is of the
// group of the VM, or of the nearest parent domain that has the kind: instances of ec2.aws.m.upbound.io refer to
// configurations of aws.m.upbound.io. The last result is false if no group has the kind.
func (k *configKinds) of(group, kind string) (schema.GroupVersionKind, bool, bool) {
	key := schema.GroupKind{Group: group, Kind: kind}
	if known, ok := k.found.Load(key); ok {
		m := known.(*apimeta.RESTMapping) //nolint:forcetypeassert // Nothing else is stored.
		return m.GroupVersionKind, m.Scope.Name() == apimeta.RESTScopeNameNamespace, true
	}
	for labels := strings.Split(group, "."); len(labels) >= leastLabels; labels = labels[1:] {
		m, err := k.mapper.RESTMapping(schema.GroupKind{Group: strings.Join(labels, "."), Kind: kind})
		if apimeta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			break
		}
		k.found.Store(key, m)
		return m.GroupVersionKind, m.Scope.Name() == apimeta.RESTScopeNameNamespace, true
	}
	return schema.GroupVersionKind{}, false, false
}
