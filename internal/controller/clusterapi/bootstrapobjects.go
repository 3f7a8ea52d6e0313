package clusterapi

import (
	"errors"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Annotations of an object that was made from a template, as Cluster API sets them.
const (
	annotationClonedName  = "cluster.x-k8s.io/cloned-from-name"
	annotationClonedGroup = "cluster.x-k8s.io/cloned-from-groupkind"
)

// machineOfBootstrap returns the Machine that owns a BootstrapConfig. It has no dataSecretName: a bootstrap provider that
// finds one makes no user data.
func machineOfBootstrap(b *v1alpha1.Bootstrap, spec v1alpha1.ProviderConfigSpec, k kind, cluster *unstructured.Unstructured) *unstructured.Unstructured {
	p := b.Spec.ForProvider
	// The VM is that of the Machine of Drover, at any cloud.
	owner := b.Name
	if c := metav1.GetControllerOf(b); c != nil {
		owner = c.Name
	}
	s := machineSpec(spec.ClusterName, p.Version, p.FailureDomain)
	s["bootstrap"] = map[string]any{"configRef": referenceOf(k.core, k, b.Namespace, b.Name)}
	s["infrastructureRef"] = referenceOf(k.core, kind{GroupVersionKind: machinev1alpha1.MachineGroupVersionKind}, b.Namespace, owner)
	o := shadow(k.core, b, v1alpha1.BootstrapGroupVersionKind.Kind, b.Name, cluster, s)
	o.SetLabels(map[string]string{v1alpha1.LabelBootstrap: string(b.UID), labelCluster: spec.ClusterName})
	return o
}

// bootstrapMachineStatus is the status of the Machine that owns a BootstrapConfig. With the name of the Node, bootstrap
// providers stop to renew the token by which the VM joins.
func bootstrapMachineStatus(c contract, b *v1alpha1.Bootstrap, now time.Time) map[string]any {
	out := map[string]any{"conditions": []any{
		condition(conditionTruth, "Kept", fmt.Sprintf("this Machine only stands for Bootstrap %s/%s of %s: change and delete the Machine of %s above that", b.Namespace, b.Name, v1alpha1.Group, machinev1alpha1.Group), now),
	}}
	if n := b.Spec.ForProvider.NodeName; n != nil {
		ref := map[string]any{"name": *n}
		if c == v1beta1 {
			ref["apiVersion"], ref["kind"] = "v1", "Node"
		}
		out["nodeRef"] = ref
	}
	return out
}

// configOf returns the BootstrapConfig of a template, without its owner.
func configOf(b *v1alpha1.Bootstrap, spec v1alpha1.ProviderConfigSpec, k kind, template *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	outer, found, err := unstructured.NestedMap(template.Object, "spec", "template")
	if err == nil && !found {
		err = errors.New("required value")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: spec.template: %w", describe(template), err)
	}
	inner, ok := outer["spec"].(map[string]any)
	if !ok {
		inner = map[string]any{} // Each field of the provider may have a default.
	}
	labels, _, _ := unstructured.NestedStringMap(template.Object, "spec", "template", "metadata", "labels")
	annotations, _, _ := unstructured.NestedStringMap(template.Object, "spec", "template", "metadata", "annotations")
	all := map[string]string{}
	maps.Copy(all, labels)
	all[v1alpha1.LabelBootstrap], all[labelCluster] = string(b.UID), spec.ClusterName
	notes := map[string]string{}
	maps.Copy(notes, annotations)
	notes[annotationClonedName], notes[annotationClonedGroup] = template.GetName(), template.GroupVersionKind().GroupKind().String()
	o := newObject(k.GroupVersionKind, b.Namespace, b.Name)
	o.SetLabels(all)
	o.SetAnnotations(notes)
	o.Object["spec"] = inner
	return o, nil
}
