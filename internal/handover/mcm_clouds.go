package handover

import (
	"cmp"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A cloud has VMs whose external name is in the providerID of their Nodes, and whose provider finds a VM by its external name alone.
type cloud struct {
	// name is spec.provider of the class, and begins the API group of the VMs.
	name string
	// form of a providerID, as the cloud-controller-manager writes it, with the external name, and shape is its description.
	form  *regexp.Regexp
	shape string
	// status is the field below status.atProvider that reports the VM. If it is the external name, prefix makes a providerID of it.
	status, prefix string
	// instanceType is the field of spec.forProvider that a Node has in the label node.kubernetes.io/instance-type.
	instanceType string
	// zone is the label of a Node with the failure domain, topology.kubernetes.io/zone if it is empty.
	zone string
}

var clouds = []cloud{
	{name: "alibaba", form: regexp.MustCompile(`^[a-z0-9-]+\.(i-[a-z0-9]+)$`), shape: "REGION.INSTANCE-ID", status: "providerID", instanceType: "instanceType"},
	{name: "aws", form: regexp.MustCompile(`^aws:///[a-z0-9-]+/(i-[0-9a-f]+)$`), shape: "aws:///ZONE/INSTANCE-ID", status: "providerID", instanceType: "instanceType"},
	{name: "hcloud", form: regexp.MustCompile(`^hcloud://([0-9]+)$`), shape: "hcloud://SERVER-ID", status: "id", prefix: "hcloud://", instanceType: "serverType", zone: corev1.LabelTopologyRegion},
	{name: "openstack", form: regexp.MustCompile(`^openstack:///([0-9a-f-]{36})$`), shape: "openstack:///INSTANCE-ID", status: "id", prefix: "openstack:///", instanceType: "flavorName"},
}

// cloud of the class, nil if it is none of clouds.
func (w *World) cloud() *cloud {
	class := w.class()
	if class == nil {
		return nil
	}
	for i := range clouds {
		if clouds[i].name == stringAt(class, "spec", "provider") {
			return &clouds[i]
		}
	}
	return nil
}

// names of clouds whose VMs can be taken over.
func namesOfClouds() string {
	var out []string
	for _, c := range clouds {
		out = append(out, c.name)
	}
	return strings.Join(out, ", ")
}

// externalName returns the external name in the providerID of a Node, "" if it has another form.
func (c *cloud) externalName(providerID string) string {
	if m := c.form.FindStringSubmatch(providerID); m != nil {
		return m[1]
	}
	return ""
}

// isOf reports whether the providerID of a Machine of machine-controller-manager is of a VM. Its driver puts another place before the
// ID than the cloud-controller-manager: aws:///REGION/ID in place of aws:///ZONE/ID.
func (c *cloud) isOf(providerID, external string) bool {
	i := strings.LastIndexAny(providerID, "/.")
	return external != "" && providerID[i+1:] == external
}

// instanceTypes returns the instance types of the VMs of a class, none if it has another field for them.
func (c *cloud) instanceTypes(class *unstructured.Unstructured) []string {
	var out []string
	if one := stringAt(class, "spec", "forProvider", c.instanceType); one != "" {
		out = append(out, one)
	}
	list, _, _ := unstructured.NestedSlice(class.Object, "spec", "instanceTypes")
	for _, e := range list {
		entry, _ := e.(map[string]any)
		name, _ := entry["name"].(string)
		typ, _ := entry["instanceType"].(string)
		out = append(out, cmp.Or(typ, name))
	}
	return out
}

// reported returns the providerID that a VM resource reports.
func (c *cloud) reported(vm *unstructured.Unstructured) string {
	if is := stringAt(vm, "status", "atProvider", c.status); is != "" {
		return c.prefix + is
	}
	return ""
}
