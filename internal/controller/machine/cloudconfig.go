package machine

import (
	"context"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

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
