package aws

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// others are the actions of EC2 that Drover's provider does not call, and may not by the policy of its example: those of Cluster
// API's provider. They are served with Options.Others.
var others = map[string]func(*call) ([]node, *failure){
	"CreateTags": (*call).createTags, "DescribeInstanceTypes": (*call).describeInstanceTypes, "DescribeSubnets": (*call).describeSubnets,
	"ModifyInstanceMetadataOptions": (*call).modifyInstanceMetadataOptions,
}

// createTags adds tags to resources of the account.
func (c *call) createTags() ([]node, *failure) {
	tags := map[string]string{}
	keys, values := indexed(c.form, "Tag", ".Key"), indexed(c.form, "Tag", ".Value")
	for i, k := range keys {
		if i < len(values) {
			tags[k] = values[i]
		}
	}
	ids := indexed(c.form, "ResourceId", "")
	if len(ids) == 0 {
		return nil, missing("ResourceIdSet")
	}
	for _, id := range ids {
		of := c.tagsOf(id)
		if of == nil {
			return nil, bad("InvalidID", "The ID '%s' is not valid", id)
		}
		all := maps.Clone(of)
		maps.Copy(all, tags)
		if f := validateTags("instance", all); f != nil {
			return nil, f
		}
		maps.Copy(of, tags)
	}
	return []node{flag("return", true)}, nil
}

// tagsOf returns the tags of a resource of the account, nil if there is none.
func (c *call) tagsOf(id string) map[string]string {
	for _, i := range c.instances {
		if i.account != c.key.Account {
			continue
		}
		if i.id == id {
			return i.tags
		}
		for n := range i.interfaces {
			if at := &i.interfaces[n]; at.id == id {
				if at.tags == nil {
					at.tags = map[string]string{}
				}
				return at.tags
			}
		}
	}
	if v := c.volumes[id]; v != nil && v.account == c.key.Account {
		return v.tags
	}
	return nil
}

// describeInstanceTypes returns the architecture of instance types.
func (c *call) describeInstanceTypes() ([]node, *failure) {
	names := indexed(c.form, "InstanceType", "")
	for _, name := range names {
		if family, size, ok := strings.Cut(name, "."); !ok || len(family) < 2 || size == "" {
			return nil, bad("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", name)
		}
	}
	return []node{list("instanceTypeSet", names, func(name string) []node {
		arch := "x86_64"
		if strings.Contains(name, "g.") {
			arch = "arm64"
		}
		return []node{
			text("instanceType", name), flag("currentGeneration", true),
			with("processorInfo", with("supportedArchitectures", text("item", arch))),
		}
	})}, nil
}

// describeSubnets returns the subnets of the only VPC.
func (c *call) describeSubnets() ([]node, *failure) {
	shown, next, f := selected(c, slices.Sorted(maps.Keys(c.subnets)), func(id, name string) ([]string, bool) {
		switch name {
		case "subnet-id":
			return []string{id}, true
		case "state":
			return []string{"available"}, true
		case "availability-zone":
			return []string{c.subnets[id]}, true
		case "vpc-id":
			return []string{"vpc-1"}, true
		}
		return ofTags(nil, name)
	})
	if f != nil {
		return nil, f
	}
	return page("subnetSet", shown, next, func(id string) []node {
		return []node{
			text("subnetId", id), text("state", "available"), text("vpcId", "vpc-1"), text("availabilityZone", c.subnets[id]), text("ownerId", c.key.Account),
			flag("mapPublicIpOnLaunch", false), count("availableIpAddressCount", 200),
		}
	}), nil
}

// modifyInstanceMetadataOptions changes the options that a request has.
func (c *call) modifyInstanceMetadataOptions() ([]node, *failure) {
	i := c.instances[c.form.Get("InstanceId")]
	if i == nil || !c.shows(i) {
		return nil, bad("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", c.form.Get("InstanceId"))
	}
	for _, option := range []string{"HttpEndpoint", "HttpTokens", "HttpPutResponseHopLimit", "HttpProtocolIpv6", "InstanceMetadataTags"} {
		if v := c.form.Get(option); v != "" {
			i.form.Set("MetadataOptions."+option, v)
		}
	}
	return []node{text("instanceId", i.id), with("instanceMetadataOptions", metadataOptions(i)...)}, nil
}

// metadataOptions of an instance. Those that its creation did not have are EC2's defaults.
func metadataOptions(i *instance) []node {
	option := func(name, otherwise string) string { return cmp.Or(i.form.Get("MetadataOptions."+name), otherwise) }
	return []node{
		text("state", "applied"), text("httpTokens", option("HttpTokens", "optional")), text("httpPutResponseHopLimit", option("HttpPutResponseHopLimit", "1")),
		text("httpEndpoint", option("HttpEndpoint", "enabled")), text("httpProtocolIpv6", option("HttpProtocolIpv6", "disabled")),
		text("instanceMetadataTags", option("InstanceMetadataTags", "disabled")),
	}
}
