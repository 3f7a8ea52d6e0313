// Package hcloud configures the managed resources that upjet generates from the Terraform provider
// of Hetzner Cloud.
package hcloud

import (
	"context"

	ujconfig "github.com/crossplane/upjet/v2/pkg/config"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hetznercloud/terraform-provider-hcloud/hcloud"

	"github.com/drover-dev/drover/internal/lift"
)

// Group of the managed resources.
const Group = "hcloud.drover.dev"

// Server is the name of the VM resource in Terraform.
const Server = "hcloud_server"

// Provider returns the configuration that both the generator and the controllers use.
func Provider() (*ujconfig.Provider, error) {
	pc, err := lift.SDKProvider{
		Name:      "hetznercloud/hcloud",
		Prefix:    "hcloud",
		Group:     Group,
		ShortName: "hcloud",
		Provider:  hcloud.Provider(),
		Descriptions: map[string]string{
			Server: "A server of Hetzner Cloud.",
		},
		Rules: map[string][]lift.Rule{Server: {eitherGroup}},
	}.Configuration()
	if err != nil {
		return nil, err
	}
	pc.AddResourceConfigurator(Server, server)
	pc.ConfigureResources()
	return pc, nil
}

// PlacementGroupPrefix is the field that Drover adds to Terraform's. Its controllers choose the group.
const PlacementGroupPrefix = "placement_group_prefix"

var eitherGroup = lift.Rule{
	Rule: "!((has(self.forProvider.placementGroupId) || has(self.initProvider) && has(self.initProvider.placementGroupId)) && " +
		"(has(self.forProvider.placementGroupPrefix) || has(self.initProvider) && has(self.initProvider.placementGroupPrefix)))",
	Message: "spec.forProvider.placementGroupId and spec.forProvider.placementGroupPrefix exclude each other",
}

func server(r *ujconfig.Resource) {
	r.Kind = "VirtualMachine"
	// It contains the bootstrap token: it must come from a Secret, and never be in the status.
	r.TerraformResource.Schema["user_data"].Sensitive = true
	r.MarkAsRequired("image")
	lift.Hide(r,
		// Settings that a short-lived VM does not need, or that would prevent the deletion of the
		// VM.
		"delete_protection", "rebuild_protection", "shutdown_before_deletion", "rescue", "iso", "keep_disk", "ignore_remote_firewall_ids",
		// These have no effect any more.
		"datacenter", "allow_deprecated_images",
	)
	r.TerraformResource.Schema[PlacementGroupPrefix] = &schema.Schema{Type: schema.TypeString, Optional: true}
	for field, text := range descriptions {
		r.TerraformResource.Schema[field].Description = text
	}
	r.TerraformResource.CustomizeDiff = ofConfigurations(r.TerraformResource.CustomizeDiff)
	// The choices of the cloud are in the status. Writing them to the spec too would cost an update
	// per VM.
	r.LateInitializer.IgnoredFields = []string{"location", "firewall_ids", "network", "public_net", "image", "placement_group_id"}
}

// ofConfigurations skips a check of the configuration if upjet has no configuration, for example of
// a deleted server. The check would panic then.
func ofConfigurations(check schema.CustomizeDiffFunc) schema.CustomizeDiffFunc {
	return func(ctx context.Context, d *schema.ResourceDiff, meta any) error {
		if raw := d.GetRawConfig(); raw.IsNull() || !raw.Type().IsObjectType() {
			return nil
		}
		return check(ctx, d, meta)
	}
}

// descriptions of the fields. The Terraform provider has them only in its documentation pages.
var descriptions = map[string]string{
	"name":               "Name of the server, unique in its project, and its host name.",
	"server_type":        "Name of the server type, like cpx31.",
	"image":              "Name of an image, like ubuntu-24.04, or ID of a snapshot.",
	"location":           "Name of the location, like fsn1. By default Hetzner chooses.",
	"user_data":          "Cloud-init user data, of 32 KiB at most.",
	"ssh_keys":           "Names or IDs of SSH keys of the project.",
	"labels":             "Labels of the server.",
	"firewall_ids":       "IDs of the firewalls that are applied to the server.",
	"placement_group_id": "ID of the placement group, which holds ten servers at most.",
	PlacementGroupPrefix: "Prefix of the names of placement groups that Drover creates, and deletes when they are empty. The server is created in one that has room: a group holds ten servers. " +
		"The field has no effect on a server that exists.\n+kubebuilder:validation:MaxLength=50\n+kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`",
	"backups":           "Make backups, which cost a fifth of the server.",
	"network":           "Private networks that the server is attached to.",
	"public_net":        "Whether the server has public addresses, and which primary IPs. By default it has a new one of each kind. At most one.",
	"ipv4_address":      "The public IPv4 address.",
	"ipv6_address":      "The first address of the public IPv6 network.",
	"ipv6_network":      "The public IPv6 network.",
	"status":            "State of the server: initializing, starting, running, stopping, off, deleting, rebuilding, migrating, unknown.",
	"primary_disk_size": "Size of the disk in GB.",
}
