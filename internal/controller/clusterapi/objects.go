package clusterapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	// labelCluster is the label by which providers find the Cluster of an object.
	labelCluster = "cluster.x-k8s.io/cluster-name"
	// finalizerCore is the finalizer that Cluster API's own controller adds to each Machine, also to one that is paused.
	finalizerCore = "machine.cluster.x-k8s.io"
	// conditionTruth is the condition of Clusters and Machines that reports who keeps them.
	conditionTruth = "KeptByDrover"

	bootstrapSecretType = "cluster.x-k8s.io/secret"
	formatCloudConfig   = "cloud-config"
	formatIgnition      = "ignition"
)

func newObject(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(gvk)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// ownedBy returns a reference to an object as the controller.
func ownedBy(o *unstructured.Unstructured) metav1.OwnerReference {
	return *metav1.NewControllerRef(o, o.GroupVersionKind())
}

// belongsTo returns a reference to an object as an owner that is not the controller.
func belongsTo(o *unstructured.Unstructured) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), UID: o.GetUID()}
}

// clusterOf returns the Cluster of a configuration.
func clusterOf(c contract, spec v1alpha1.ProviderConfigSpec, infra kind, namespace string, endpoint *v1alpha1.Endpoint) *unstructured.Unstructured {
	o := newObject(c.coreKind("Cluster"), namespace, spec.ClusterName)
	o.SetLabels(map[string]string{v1alpha1.LabelKept: "true", labelCluster: spec.ClusterName})
	s := map[string]any{}
	if spec.InfraCluster != nil {
		s["infrastructureRef"] = referenceOf(c, infra, namespace, spec.InfraCluster.Name)
	}
	if endpoint != nil {
		s["controlPlaneEndpoint"] = map[string]any{"host": endpoint.Host, "port": int64(endpoint.Port)}
	}
	o.Object["spec"] = s
	return o
}

// referenceOf returns a reference to an object of a provider in the form of a contract.
func referenceOf(c contract, k kind, namespace, name string) map[string]any {
	if c == v1beta1 {
		apiVersion, kind := k.ToAPIVersionAndKind()
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "namespace": namespace, "name": name}
	}
	return map[string]any{"apiGroup": k.Group, "kind": k.Kind, "name": name}
}

// clusterStatus is the status of a Cluster whose InfraCluster is provisioned. Its control plane is not made here: it
// exists, because Drover joins Nodes to it.
func clusterStatus(c contract, now time.Time) map[string]any {
	conditions := []any{
		condition(conditionTruth, "Kept", "Drover keeps this Cluster for the VMs and the user data of its Machines; Cluster API's own controllers do not run", now),
		condition("InfrastructureReady", "Provisioned", "The InfraCluster is provisioned, or there is none", now),
		condition("ControlPlaneInitialized", "Initialized", "The control plane exists: Nodes join it", now),
	}
	if c == v1beta1 {
		return map[string]any{"infrastructureReady": true, "controlPlaneReady": true, "phase": "Provisioned", "conditions": conditions}
	}
	return map[string]any{
		"initialization": map[string]any{"infrastructureProvisioned": true, "controlPlaneInitialized": true},
		"phase":          "Provisioned", "conditions": conditions,
	}
}

func condition(typ, reason, message string, now time.Time) map[string]any {
	return map[string]any{"type": typ, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now.UTC().Format(time.RFC3339)}
}

// isClusterReady reports whether a Cluster has the status that providers of VMs wait for.
func isClusterReady(c contract, o *unstructured.Unstructured) bool {
	path := []string{"status", "initialization", "infrastructureProvisioned"}
	if c == v1beta1 {
		path = []string{"status", "infrastructureReady"}
	}
	done, _, _ := unstructured.NestedBool(o.Object, path...)
	return done
}

// machineOf returns the Machine of a VM.
func machineOf(vm *v1alpha1.VirtualMachine, name string, spec v1alpha1.ProviderConfigSpec, k kind, cluster *unstructured.Unstructured) *unstructured.Unstructured {
	p := vm.Spec.ForProvider
	s := machineSpec(spec.ClusterName, p.Version, p.FailureDomain)
	s["bootstrap"] = map[string]any{"dataSecretName": *p.Name}
	s["infrastructureRef"] = referenceOf(k.core, k, vm.Namespace, *p.Name)
	o := shadow(k.core, vm, v1alpha1.VirtualMachineGroupVersionKind.Kind, *p.Name, cluster, s)
	o.SetLabels(map[string]string{v1alpha1.LabelVirtualMachine: name, labelCluster: spec.ClusterName})
	return o
}

// machineSpec is the spec of a Machine, without its references.
func machineSpec(clusterName string, version, failureDomain *string) map[string]any {
	s := map[string]any{"clusterName": clusterName}
	if version != nil {
		s["version"] = *version
	}
	if failureDomain != nil {
		s["failureDomain"] = *failureDomain
	}
	return s
}

// isShared reports whether Cluster API's own controllers keep a Cluster, which Drover may use beside them.
func isShared(cluster *unstructured.Unstructured) bool {
	return cluster != nil && cluster.GetLabels()[v1alpha1.LabelShared] == "true"
}

// shadow returns a Machine that stands for an object of a kind of Drover, without its labels. In a shared Cluster it is paused
// from the beginning, so that Cluster API's controllers do nothing with it but to add their finalizer.
func shadow(c contract, of metav1.Object, kindOf, name string, cluster *unstructured.Unstructured, spec map[string]any) *unstructured.Unstructured {
	o := newObject(c.coreKind("Machine"), of.GetNamespace(), name)
	annotations := map[string]string{v1alpha1.AnnotationStandsFor: v1alpha1.StandsFor(kindOf, of.GetNamespace(), of.GetName())}
	if isShared(cluster) {
		annotations[annotationPaused] = "true"
	}
	o.SetAnnotations(annotations)
	o.SetFinalizers([]string{v1alpha1.FinalizerMachine})
	o.SetOwnerReferences([]metav1.OwnerReference{belongsTo(cluster)})
	o.Object["spec"] = spec
	return o
}

// machineStatus is the status of the Machine of a VM. It has only facts that do not change: the state of the VM is in the
// status of the VirtualMachine.
func machineStatus(c contract, vm *v1alpha1.VirtualMachine, now time.Time) map[string]any {
	truth := condition(conditionTruth, "Kept", fmt.Sprintf("this Machine only stands for VirtualMachine %s/%s of %s, which has the state of the VM: change and delete the Machine of %s above that", vm.Namespace, vm.Name, v1alpha1.Group, machinev1alpha1.Group), now)
	if c == v1beta1 {
		return map[string]any{"bootstrapReady": true, "conditions": []any{truth}}
	}
	return map[string]any{"initialization": map[string]any{"bootstrapDataSecretCreated": true}, "conditions": []any{truth}}
}

// infraMachineOf returns the InfraMachine of a VM, without its owner.
func infraMachineOf(vm *v1alpha1.VirtualMachine, name string, spec v1alpha1.ProviderConfigSpec, k kind) (*unstructured.Unstructured, error) {
	p := vm.Spec.ForProvider
	o := newObject(k.GroupVersionKind, vm.Namespace, *p.Name)
	labels, annotations := maps.Clone(p.InfraMachine.Metadata.Labels), maps.Clone(p.InfraMachine.Metadata.Annotations)
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, p.Tags)
	labels[v1alpha1.LabelVirtualMachine], labels[labelCluster] = name, spec.ClusterName
	if id := p.Tags[machinev1alpha1.TagInstallation]; id != "" {
		labels[machinev1alpha1.TagInstallation] = id
	}
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
	s := map[string]any{}
	if err := json.Unmarshal(p.InfraMachine.Spec.Raw, &s); err != nil {
		return nil, fmt.Errorf("must be an object: %w", err)
	}
	o.Object["spec"] = s
	return o, nil
}

// formatOf returns the format of user data, as a bootstrap provider reports it.
func formatOf(userData string) string {
	if t := strings.TrimLeft(userData, " \t\r\n"); strings.HasPrefix(t, "{") && strings.Contains(t, `"ignition"`) {
		return formatIgnition
	}
	return formatCloudConfig
}

// describe returns the kind, the namespace and the name of an object, for errors.
func describe(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}
