package machine

import (
	"context"
	"strings"
	"sync"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
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

// run runs the pipeline. If it composes the first VM of the Machine, and the configuration that the VM refers to does
// not exist, it runs once more with that fact: a provider reports a missing configuration like missing rights, and the
// deletion of a VM that it cannot reach waits for the configuration.
func (r *Reconciler) run(ctx context.Context, f *facts) (decision, error) {
	d, err := r.runOnce(ctx, f)
	if err != nil || f.configChecked {
		return d, err
	}
	vm := d.Desired.GetResources()[machinev1alpha1.ResourceVM]
	if vm == nil || f.observed[machinev1alpha1.ResourceVM] != nil {
		return d, nil
	}
	f.configChecked = true
	if f.missingConfig = r.missingConfig(ctx, f.machine, vm); f.missingConfig == nil {
		return d, nil
	}
	return r.runOnce(ctx, f)
}

// missingConfig returns the configuration of a provider that a VM refers to, if the API server answers that it does not
// exist. It returns nil for any other answer, such as a missing right: the provider then reports what is wrong.
func (r *Reconciler) missingConfig(ctx context.Context, m *machinev1alpha1.Machine, vm *fnv1.Resource) *plan.MissingConfig {
	resource := vm.GetResource().AsMap()
	apiVersion, _ := resource["apiVersion"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil
	}
	spec, _ := resource["spec"].(map[string]any)
	ref, _ := spec["providerConfigRef"].(map[string]any)
	kind, _ := ref["kind"].(string)
	name, _ := ref["name"].(string)
	if kind == "" || name == "" {
		return nil
	}
	gvk, namespaced, ok := r.configs.of(gv.Group, kind)
	if !ok {
		return nil
	}
	key := client.ObjectKey{Name: name}
	if namespaced {
		key.Namespace = m.GetNamespace()
	}
	config := &metav1.PartialObjectMetadata{}
	config.SetGroupVersionKind(gvk)
	// The cause of another error than NotFound is not the configuration.
	if err := r.live.Get(ctx, key, config); !kerrors.IsNotFound(err) {
		return nil
	}
	return &plan.MissingConfig{Group: gvk.Group, Kind: gvk.Kind, Name: name, Namespace: key.Namespace}
}
