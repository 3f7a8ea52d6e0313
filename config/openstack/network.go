package openstack

import (
	ujconfig "github.com/crossplane/upjet/v2/pkg/config"

	"github.com/drover-dev/drover/internal/lift"
)

func port(r *ujconfig.Resource) {
	r.Kind = "Port"
	// A port whose creation was not answered is found by its name and its description: tags are set by a
	// second call, which a provider that dies in between never sends.
	r.MarkAsRequired("name", "description")
	lift.Hide(r,
		// Nova sets these when it attaches the port.
		"device_id", "device_owner",
		// The port must be in the project of the instance.
		"tenant_id",
		// Attributes that could replace the description.
		"value_specs",
	)
	replaceNothing(r)
	describe(r, portDescriptions)
	r.LateInitializer.IgnoredFields = []string{
		"region", "admin_state_up", "mac_address", "tenant_id", "device_owner", "device_id", "port_security_enabled", "binding", "dns_name", "qos_policy_id",
	}
}

func floatingIP(r *ujconfig.Resource) {
	r.Kind = "FloatingIP"
	// A floating IP without a port is of no use to a Machine, and has no name to be found by.
	r.MarkAsRequired("description", "port_id")
	lift.Hide(r,
		"tenant_id",
		// Attributes that could replace the description.
		"value_specs",
	)
	replaceNothing(r)
	describe(r, floatingIPDescriptions)
	r.LateInitializer.IgnoredFields = []string{"region", "address", "tenant_id", "fixed_ip", "subnet_id", "dns_name", "dns_domain"}
}

// replaceNothing has no difference from the spec require a replacement. Otherwise Terraform's deletion of a
// resource with such a difference is followed by a creation, which would leave a new resource behind.
func replaceNothing(r *ujconfig.Resource) {
	for _, s := range r.TerraformResource.Schema {
		s.ForceNew = false
	}
}

// portDescriptions are the descriptions of the fields of a port.
var portDescriptions = map[string]string{
	"region":                "Region. The default is that of the provider config.",
	"name":                  "Name of the port.",
	"description":           "Description of the port. With the name it identifies the port after a creation whose answer was lost: no two ports of a project may have both in common.",
	"network_id":            "ID of the network.",
	"admin_state_up":        "Whether the port forwards packets. Default true.",
	"mac_address":           "MAC address. By default Neutron chooses one.",
	"security_group_ids":    "IDs of the security groups. The default is the group default of the project.",
	"no_security_groups":    "Give the port no security group at all. Not with security_group_ids.",
	"fixed_ip":              "Addresses of the port. The default is one address of a subnet of the network for each IP version.",
	"no_fixed_ip":           "Give the port no address. Not with fixed_ip.",
	"allowed_address_pairs": "Addresses beside its own from which the port may send, such as the Pod network.",
	"extra_dhcp_option":     "Options that DHCP gives to the port.",
	"tags":                  "Tags of the port.",
	"port_security_enabled": "Whether Neutron filters the packets of the port. The default is that of the network. A port without it has no security groups and no allowed address pairs.",
	"binding":               "Kind and host of the port, such as for SR-IOV. At most one.",
	"dns_name":              "Name of the port in the DNS of the network.",
	"qos_policy_id":         "ID of a QoS policy. The default is that of the network.",
	"all_fixed_ips":         "All addresses of the port.",
}

// floatingIPDescriptions are the descriptions of the fields of a floating IP.
var floatingIPDescriptions = map[string]string{
	"region":      "Region. The default is that of the provider config.",
	"description": "Description of the floating IP. It identifies the floating IP after a creation whose answer was lost: no two floating IPs of a project may have the same.",
	"pool":        "Name of the external network.",
	"port_id":     "ID of the port that the floating IP leads to.",
	"fixed_ip":    "Address of the port that the floating IP leads to, of a port with several.",
	"subnet_id":   "ID of the subnet of the external network. By default Neutron chooses one. Not with subnet_ids.",
	"subnet_ids":  "IDs of subnets of the external network. The first one with a free address is used. Not with subnet_id.",
	"address":     "A certain address, which not every project may choose. By default Neutron chooses one.",
	"tags":        "Tags of the floating IP.",
	"dns_name":    "Name of the floating IP in the DNS.",
	"dns_domain":  "Domain of dns_name, with a dot at its end.",
}
