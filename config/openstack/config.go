// Package openstack configures the managed resources that upjet generates from the Terraform
// provider of OpenStack.
package openstack

import (
	ujconfig "github.com/crossplane/upjet/v2/pkg/config"
	"github.com/terraform-provider-openstack/terraform-provider-openstack/v3/openstack"

	"github.com/drover-dev/drover/internal/lift"
)

// Group of the managed resources.
const Group = "openstack.drover.dev"

// Names of the resources in Terraform.
const (
	Instance   = "openstack_compute_instance_v2"
	Port       = "openstack_networking_port_v2"
	FloatingIP = "openstack_networking_floatingip_v2"
)

// Provider returns the configuration that both the generator and the controllers use.
func Provider() (*ujconfig.Provider, error) {
	pc, err := lift.SDKProvider{
		Name:      "terraform-provider-openstack/openstack",
		Prefix:    "openstack",
		Group:     Group,
		ShortName: "openstack",
		Provider:  openstack.Provider(),
		Descriptions: map[string]string{
			Instance:   "An instance of OpenStack Compute.",
			Port:       "A port of OpenStack Networking, for the interface of an instance.",
			FloatingIP: "A floating IP address of OpenStack Networking, for a port.",
		},
	}.Configuration()
	if err != nil {
		return nil, err
	}
	pc.AddResourceConfigurator(Instance, instance)
	pc.AddResourceConfigurator(Port, port)
	pc.AddResourceConfigurator(FloatingIP, floatingIP)
	pc.ConfigureResources()
	return pc, nil
}

func instance(r *ujconfig.Resource) {
	r.Kind = "VirtualMachine"
	// It contains the bootstrap token: it must come from a Secret, and never be in the status.
	r.TerraformResource.Schema["user_data"].Sensitive = true
	// This is not an attribute of the Terraform provider: the controller reads it.
	r.TerraformResource.Schema[lift.ConsoleAttribute] = lift.ConsoleSchema()
	lift.Hide(r,
		// Settings that a short-lived VM does not need.
		"admin_pass", "power_state", "stop_before_destroy", "force_delete", "hypervisor_hostname", "availability_zone_hints",
		// It has no effect any more, because OpenStack removed the feature.
		"personality",
	)
	describe(r, descriptions)
	// The choices of the cloud are in the status. Writing them to the spec too would cost an update
	// per VM.
	r.LateInitializer.IgnoredFields = []string{
		"region", "image_id", "image_name", "flavor_id", "flavor_name", "security_groups", "availability_zone", "network",
	}
}

// describe sets the descriptions of fields.
func describe(r *ujconfig.Resource, texts map[string]string) {
	for field, text := range texts {
		r.TerraformResource.Schema[field].Description = text
	}
}

// descriptions of the fields of an instance. The Terraform provider has them only in its documentation pages.
var descriptions = map[string]string{
	"region":            "Region. The default is that of the provider config.",
	"name":              "Name of the instance, and its host name.",
	"image_id":          "ID of the image. One of image_id, image_name and a bootable block_device is needed.",
	"image_name":        "Name of the image, which must be that of one only.",
	"flavor_id":         "ID of the flavor. One of flavor_id and flavor_name is needed.",
	"flavor_name":       "Name of the flavor.",
	"user_data":         "Cloud-init user data, of 64 KiB at most in base64.",
	"security_groups":   "Names of the security groups.",
	"availability_zone": "Availability zone. By default OpenStack chooses.",
	"network_mode":      "auto or none, in the place of networks.",
	"network":           "Networks, in the order of the interfaces.",
	"metadata":          "Metadata of the instance.",
	"config_drive":      "Give the instance its user data on a disk too, where there is no metadata service.",
	"key_pair":          "Name of a key pair of the user.",
	"block_device":      "Disks. Without one the instance has the flavor's disk, with the image.",
	"scheduler_hints":   "Hints for the scheduler, like a server group. At most one.",
	"tags":              "Tags of the instance, of 60 characters at most.",
	"vendor_options":    "What differs between clouds.",
	"access_ip_v4":      "The IPv4 address to reach the instance by.",
	"access_ip_v6":      "The IPv6 address to reach the instance by.",
	"all_metadata":      "All metadata that the instance has.",
	"all_tags":          "All tags that the instance has.",
	"created":           "When the instance was created.",
	"updated":           "When the instance was changed.",
}
