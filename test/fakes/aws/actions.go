package aws

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of EC2.
const (
	// maxUserData is the maximum size of user data in bytes, before base64.
	maxUserData = 16 << 10
	maxTags     = 50
	minResults  = 5
	maxResults  = 1000
	maxValues   = 200
)

// number returns the number in a parameter, or 0.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// indexed returns the values of a parameter such as InstanceId.N.
func indexed(form url.Values, prefix, suffix string) []string {
	var out []string
	for n := 1; ; n++ {
		k := fmt.Sprintf("%s.%d%s", prefix, n, suffix)
		if !form.Has(k) {
			return out
		}
		out = append(out, form.Get(k))
	}
}

// tagsOf returns the tags of a creation by the type of the resource.
func tagsOf(form url.Values) map[string]map[string]string {
	out := map[string]map[string]string{}
	for n := 1; form.Has(fmt.Sprintf("TagSpecification.%d.ResourceType", n)); n++ {
		prefix := fmt.Sprintf("TagSpecification.%d.", n)
		tags := map[string]string{}
		keys, values := indexed(form, prefix+"Tag", ".Key"), indexed(form, prefix+"Tag", ".Value")
		for i, k := range keys {
			if i < len(values) {
				tags[k] = values[i]
			}
		}
		out[form.Get(prefix+"ResourceType")] = tags
	}
	return out
}

// canonical returns the parameters of a creation as a text, without its token.
func canonical(form url.Values) string {
	form = maps.Clone(form)
	form.Del("ClientToken")
	return form.Encode()
}

func (c *call) runInstances() ([]node, *failure) {
	token := c.form.Get("ClientToken")
	if len(token) > 64 {
		return nil, bad("InvalidParameterValue", "Invalid value for ClientToken: it must have at most 64 characters")
	}
	if known, ok := c.tokens[c.key.Account+"/"+token]; token != "" && ok {
		if known.form != canonical(c.form) {
			return nil, bad("IdempotentParameterMismatch", "The request uses the same client token as a previous, but non-identical request. Do not reuse a client token with different requests, unless the requests are identical")
		}
		if i := c.instances[known.id]; i != nil {
			return c.reservation(i), nil
		}
		return nil, bad("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", known.id)
	}
	userData, f := c.validate()
	if f != nil {
		return nil, f
	}
	i := c.add(c.key.Account, c.form, tagsOf(c.form), userData, c.now)
	if token != "" {
		c.tokens[c.key.Account+"/"+token] = request{form: canonical(c.form), id: i.id, at: c.now}
	}
	return c.reservation(i), nil
}

var price = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

// validate validates the parameters of a creation, and returns the user data.
func (c *call) validate() ([]byte, *failure) {
	form := c.form
	img, ok := c.images[form.Get("ImageId")]
	kind := form.Get("InstanceType")
	zone := form.Get("Placement.AvailabilityZone")
	switch {
	case form.Get("MinCount") != "1" || form.Get("MaxCount") != "1":
		return nil, bad("InvalidParameterValue", "This fake creates one instance per request.")
	case form.Get("ImageId") == "":
		return nil, missing("ImageId")
	case !ok:
		return nil, bad("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", form.Get("ImageId"))
	case img.state != "available":
		return nil, bad("InvalidAMIID.Unavailable", "The image id '[%s]' is not available", form.Get("ImageId"))
	case strings.Contains(kind, "g.") != (img.arch == "arm64"):
		return nil, bad("InvalidParameterValue", "The architecture '%s' of the specified instance type does not match the architecture '%s' of the specified AMI.", map[bool]string{true: "arm64", false: "x86_64"}[strings.Contains(kind, "g.")], img.arch)
	case form.Get("KeyName") != "" && form.Get("KeyName") != "ops":
		return nil, bad("InvalidKeyPair.NotFound", "The key pair '%s' does not exist", form.Get("KeyName"))
	case form.Get("IamInstanceProfile.Name") != "" && form.Get("IamInstanceProfile.Name") != "nodes":
		return nil, bad("InvalidParameterValue", "Value (%s) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name", form.Get("IamInstanceProfile.Name"))
	case form.Get("IamInstanceProfile.Name") != "" && form.Get("IamInstanceProfile.Arn") != "":
		return nil, bad("InvalidParameterCombination", "The parameter 'iamInstanceProfile.name' may not be used in combination with 'iamInstanceProfile.arn'")
	case form.Has("NetworkInterface.1.DeviceIndex") && (form.Has("SubnetId") || form.Has("SecurityGroupId.1")):
		return nil, bad("InvalidParameterCombination", "Network interfaces and an instance-level subnet ID may not be specified on the same request")
	case form.Get("InstanceMarketOptions.SpotOptions.MaxPrice") != "" && !price.MatchString(form.Get("InstanceMarketOptions.SpotOptions.MaxPrice")):
		return nil, bad("InvalidParameterValue", "Invalid value for maxPrice")
	case form.Get("InstanceMarketOptions.MarketType") == "spot" && form.Has("InstanceInitiatedShutdownBehavior"):
		return nil, bad("InvalidParameterCombination", "The parameter InstanceInitiatedShutdownBehavior cannot be used with Spot Instances.")
	case form.Get("Placement.HostId") != "" && form.Get("Placement.Tenancy") != "host":
		return nil, bad("InvalidParameterCombination", "The parameter HostId requires the tenancy host")
	case form.Get("Placement.GroupName") != "" && form.Get("Placement.GroupName") != "spread":
		return nil, bad("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", form.Get("Placement.GroupName"))
	case form.Get("CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId") == "cr-full":
		return nil, bad("ReservationCapacityExceeded", "The requested reservation does not have sufficient compatible and available capacity for this request.")
	}
	if f := c.validateInterfaces(zone); f != nil {
		return nil, f
	}
	if f := c.validateVolumes(img); f != nil {
		return nil, f
	}
	for kind, tags := range tagsOf(form) {
		if f := validateTags(kind, tags); f != nil {
			return nil, f
		}
	}
	if _, ok := tagsOf(form)["spot-instances-request"]; ok && form.Get("InstanceMarketOptions.MarketType") != "spot" {
		return nil, bad("InvalidParameterValue", "'spot-instances-request' is not a valid taggable resource type for this operation.")
	}
	data, err := base64.StdEncoding.DecodeString(form.Get("UserData"))
	switch {
	case err != nil:
		return nil, bad("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	case len(data) > maxUserData:
		return nil, bad("InvalidParameterValue", "User data is limited to %d bytes", maxUserData)
	}
	return data, nil
}

func (c *call) validateInterfaces(zone string) *failure {
	several := c.form.Has("NetworkInterface.2.DeviceIndex")
	for n := 1; c.form.Has(fmt.Sprintf("NetworkInterface.%d.DeviceIndex", n)); n++ {
		prefix := fmt.Sprintf("NetworkInterface.%d.", n)
		subnet := c.form.Get(prefix + "SubnetId")
		switch {
		case c.form.Get(prefix+"DeviceIndex") != strconv.Itoa(n-1):
			return bad("InvalidParameterValue", "The device indexes must be 0 to %d.", n-1)
		case c.subnets[subnet] == "":
			return bad("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", subnet)
		case zone != "" && c.subnets[subnet] != zone:
			return bad("InvalidParameterValue", "The specified subnet '%s' is not in the Availability Zone '%s'", subnet, zone)
		case several && c.form.Get(prefix+"AssociatePublicIpAddress") != "":
			return bad("InvalidParameterCombination", "The associatePublicIPAddress parameter cannot be specified when launching with multiple network interfaces.")
		}
		for _, g := range indexed(c.form, prefix+"SecurityGroupId", "") {
			if g != "sg-nodes" && g != "sg-other" {
				return bad("InvalidGroup.NotFound", "The security group '%s' does not exist", g)
			}
		}
	}
	return nil
}

func (c *call) validateVolumes(img image) *failure {
	for n := 1; c.form.Has(fmt.Sprintf("BlockDeviceMapping.%d.DeviceName", n)); n++ {
		prefix := fmt.Sprintf("BlockDeviceMapping.%d.Ebs.", n)
		device := c.form.Get(fmt.Sprintf("BlockDeviceMapping.%d.DeviceName", n))
		size, kind := number(c.form.Get(prefix+"VolumeSize")), c.form.Get(prefix+"VolumeType")
		switch {
		case device == img.rootDevice && size > 0 && size < img.size:
			return bad("InvalidBlockDeviceMapping", "Volume of size %dGB is smaller than snapshot 'snap-1', expect size >= %dGB", size, img.size)
		case device != img.rootDevice && size == 0 && !c.form.Has(prefix+"SnapshotId"):
			return missing("size or snapshotId")
		case c.form.Has(prefix+"Iops") && kind != "gp3" && kind != "io1" && kind != "io2":
			return bad("InvalidParameterCombination", "The parameter iops is not supported for %s volumes.", kind)
		case c.form.Has(prefix+"Throughput") && kind != "gp3":
			return bad("InvalidParameterCombination", "The parameter throughput is not supported for %s volumes.", kind)
		case c.form.Has(prefix+"KmsKeyId") && c.form.Get(prefix+"Encrypted") != "true":
			return bad("InvalidParameterDependency", "The parameter KmsKeyId requires the parameter Encrypted to be set.")
		}
	}
	return nil
}

func validateTags(kind string, tags map[string]string) *failure {
	switch kind {
	case "instance", "volume", "network-interface", "spot-instances-request":
	default:
		return bad("InvalidParameterValue", "'%s' is not a valid taggable resource type for this operation.", kind)
	}
	if len(tags) > maxTags {
		return bad("TagLimitExceeded", "More than %d tags specified", maxTags)
	}
	for k, v := range tags {
		switch {
		case k == "" || len(k) > 128 || strings.HasPrefix(k, "aws:"):
			return bad("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
		case len(v) > 256:
			return bad("InvalidParameterValue", "Tag value exceeds the maximum length of 256 characters")
		}
	}
	return nil
}

// reservation returns the response to a creation.
func (c *call) reservation(i *instance) []node {
	return []node{
		text("reservationId", "r-"+strings.TrimPrefix(i.id, "i-")), text("ownerId", i.account), with("groupSet"),
		list("instancesSet", []*instance{i}, c.entry),
	}
}

// shows reports whether EC2 shows an instance to the caller.
func (c *call) shows(i *instance) bool {
	return i.account == c.key.Account && c.now.Sub(i.createdAt) >= c.opts.ShownAfter && !c.now.Before(c.hidden)
}

// own returns the instances that a request names.
func (c *call) own() ([]*instance, *failure) {
	ids := indexed(c.form, "InstanceId", "")
	if len(ids) == 0 {
		return nil, missing("InstanceId")
	}
	var out []*instance
	for _, id := range ids {
		if !strings.HasPrefix(id, "i-") {
			return nil, bad("InvalidInstanceID.Malformed", "Invalid id: \"%s\"", id)
		}
		i := c.instances[id]
		if i == nil || !c.shows(i) {
			return nil, bad("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
		}
		out = append(out, i)
	}
	return out, nil
}

// codes of states, of the page InstanceState.
var codes = map[string]int{"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}

func stateNode(name, state string) node {
	return with(name, count("code", codes[state]), text("name", state))
}

// change changes the state of instances, and returns the response.
func (c *call) change(all []*instance, do func(*instance)) []node {
	return []node{list("instancesSet", all, func(i *instance) []node {
		before := i.state
		do(i)
		return []node{text("instanceId", i.id), stateNode("currentState", i.state), stateNode("previousState", before)}
	})}
}

func (c *call) terminateInstances() ([]node, *failure) {
	all, f := c.own()
	if f != nil {
		return nil, f
	}
	return c.change(all, func(i *instance) {
		if !i.exists() {
			return
		}
		c.stop(i)
		i.state, i.nextAt = "shutting-down", c.now.Add(c.opts.Step)
		i.reason = reason{"Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown"}
	}), nil
}

func (c *call) startInstances() ([]node, *failure) {
	all, f := c.own()
	if f != nil {
		return nil, f
	}
	for _, i := range all {
		switch {
		case i.spot:
			return nil, bad("UnsupportedOperation", "You can't start the Spot Instance '%s' because the associated Spot Instance request is not an appropriate state to support start.", i.id)
		case i.state != "stopped" && i.state != "running" && i.state != "pending":
			return nil, bad("IncorrectInstanceState", "The instance '%s' is not in a state from which it can be started.", i.id)
		}
	}
	return c.change(all, func(i *instance) {
		if i.state == "stopped" {
			i.state, i.nextAt, i.boots, i.reason = "pending", c.now.Add(c.opts.Step), true, reason{}
			i.reboots = append(i.reboots, Hard)
		}
	}), nil
}

func (c *call) rebootInstances() ([]node, *failure) {
	all, f := c.own()
	if f != nil {
		return nil, f
	}
	for _, i := range all {
		if i.state != "running" {
			return nil, bad("IncorrectState", "The instance '%s' is not in the 'running' state.", i.id)
		}
	}
	for _, i := range all {
		i.reboots = append(i.reboots, Soft)
		if c.opts.Reboot != nil {
			b := c.booted(i)
			c.mu.Later(func() { c.opts.Reboot(b) })
		}
	}
	return []node{flag("return", true)}, nil
}

// A filter selects resources.
type filter struct {
	name   string
	values []string
}

func (c *call) filters() ([]filter, *failure) {
	var out []filter
	for n := 1; c.form.Has(fmt.Sprintf("Filter.%d.Name", n)); n++ {
		f := filter{c.form.Get(fmt.Sprintf("Filter.%d.Name", n)), indexed(c.form, fmt.Sprintf("Filter.%d.Value", n), "")}
		if len(f.values) > maxValues {
			return nil, bad("FilterLimitExceeded", "The maximum number of filter values specified on a single call is %d", maxValues)
		}
		out = append(out, f)
	}
	return out, nil
}

// ofTags returns the values that a filter of tags selects by, and whether the filter is one.
func ofTags(tags map[string]string, name string) ([]string, bool) {
	if name == "tag-key" {
		return slices.Collect(maps.Keys(tags)), true
	}
	k, ok := strings.CutPrefix(name, "tag:")
	if !ok {
		return nil, false
	}
	if v, has := tags[k]; has {
		return []string{v}, true
	}
	return nil, true
}

// selected returns the page of resources that a request selects, and the token of the next page.
func selected[T any](c *call, all []T, values func(T, string) ([]string, bool)) ([]T, string, *failure) {
	filters, f := c.filters()
	if f != nil {
		return nil, "", f
	}
	var out []T
	for _, item := range all {
		matches := true
		for _, f := range filters {
			has, known := values(item, f.name)
			if !known {
				return nil, "", bad("InvalidParameterValue", "The filter '%s' is invalid", f.name)
			}
			matches = matches && slices.ContainsFunc(has, func(v string) bool { return slices.Contains(f.values, v) })
		}
		if matches {
			out = append(out, item)
		}
	}
	size, from := maxResults, 0
	if s := c.form.Get("MaxResults"); s != "" {
		if size = number(s); size < minResults || size > maxResults {
			return nil, "", bad("InvalidParameterValue", "Value ( %s ) for parameter maxResults is invalid. Expecting a value between %d and %d.", s, minResults, maxResults)
		}
	}
	if token := c.form.Get("NextToken"); token != "" {
		b, err := hex.DecodeString(token)
		if err != nil {
			return nil, "", bad("InvalidParameterValue", "Unable to parse pagination token")
		}
		from = min(number(string(b)), len(out))
	}
	to, next := min(from+size, len(out)), ""
	if to < len(out) {
		next = hex.EncodeToString([]byte(strconv.Itoa(to)))
	}
	return out[from:to], next, nil
}

// page returns the response of a list.
func page[T any](name string, entries []T, next string, item func(T) []node) []node {
	out := []node{list(name, entries, item)}
	if next != "" {
		out = append(out, text("nextToken", next))
	}
	return out
}

func (c *call) describeInstances() ([]node, *failure) {
	all := slices.DeleteFunc(c.sorted(), func(i *instance) bool { return !c.shows(i) })
	if c.form.Has("InstanceId.1") {
		var f *failure
		if all, f = c.own(); f != nil {
			return nil, f
		}
	}
	shown, next, f := selected(c, all, func(i *instance, name string) ([]string, bool) {
		switch name {
		case "instance-id":
			return []string{i.id}, true
		case "instance-state-name":
			return []string{i.state}, true
		case "client-token":
			return []string{i.form.Get("ClientToken")}, true
		}
		return ofTags(i.tags, name)
	})
	if f != nil {
		return nil, f
	}
	return page("reservationSet", shown, next, c.reservation), nil
}

func (c *call) entry(i *instance) []node {
	out := []node{
		text("instanceId", i.id), text("imageId", i.form.Get("ImageId")), stateNode("instanceState", i.state), text("instanceType", i.form.Get("InstanceType")),
		count("amiLaunchIndex", 0), text("launchTime", i.createdAt.UTC().Format(time.RFC3339)),
		with("placement", text("availabilityZone", i.zone), text("groupName", i.form.Get("Placement.GroupName")), text("tenancy", cmp.Or(i.form.Get("Placement.Tenancy"), "default"))),
		text("rootDeviceType", "ebs"), text("rootDeviceName", "/dev/sda1"), tagSet(i.tags), text("clientToken", i.form.Get("ClientToken")),
		with("metadataOptions", metadataOptions(i)...),
	}
	if i.reason.code != "" && i.state != "pending" && i.state != "running" {
		out = append(out, with("stateReason", text("code", i.reason.code), text("message", i.reason.message)))
	}
	if i.spot {
		out = append(out, text("instanceLifecycle", "spot"), text("spotInstanceRequestId", spotID(i)))
	}
	if len(i.interfaces) == 0 {
		return out
	}
	first := i.interfaces[0]
	out = append(out, text("subnetId", first.subnet), text("vpcId", "vpc-1"), text("privateIpAddress", first.ips[0]), text("privateDnsName", dnsName(first.ips[0])))
	if first.publicIP != "" {
		out = append(out, text("ipAddress", first.publicIP), text("dnsName", "ec2-"+strings.ReplaceAll(first.publicIP, ".", "-")+".eu-west-1.compute.amazonaws.com"))
	}
	return append(out, list("networkInterfaceSet", i.interfaces, func(n networkInterface) []node {
		entry := []node{
			text("networkInterfaceId", n.id), text("subnetId", n.subnet), text("ownerId", i.account), text("status", "in-use"), flag("sourceDestCheck", n.check),
			text("privateIpAddress", n.ips[0]),
			list("privateIpAddressesSet", n.ips, func(ip string) []node {
				address := []node{text("privateIpAddress", ip), flag("primary", ip == n.ips[0])}
				if ip == n.ips[0] && n.publicIP != "" {
					address = append(address, with("association", text("publicIp", n.publicIP), text("ipOwnerId", "amazon")))
				}
				return address
			}),
			list("ipv6AddressesSet", n.ipv6, func(ip string) []node { return []node{text("ipv6Address", ip)} }),
			list("groupSet", n.groups, func(g string) []node { return []node{text("groupId", g), text("groupName", g)} }),
		}
		return entry
	}))
}

func dnsName(ip string) string {
	return "ip-" + strings.ReplaceAll(ip, ".", "-") + ".eu-west-1.compute.internal"
}

func spotID(i *instance) string { return "sir-" + strings.TrimPrefix(i.id, "i-") }

func (c *call) describeSpotInstanceRequests() ([]node, *failure) {
	var all []*instance
	for _, i := range c.sorted() {
		if i.spot && c.shows(i) {
			all = append(all, i)
		}
	}
	status := func(i *instance) string {
		switch {
		case i.spotStatus != "":
			return i.spotStatus
		case !i.exists():
			return "instance-terminated-no-capacity"
		}
		return "fulfilled"
	}
	shown, next, f := selected(c, all, func(i *instance, name string) ([]string, bool) {
		switch name {
		case "status-code":
			return []string{status(i)}, true
		case "instance-id":
			return []string{i.id}, true
		}
		return ofTags(i.tags, name)
	})
	if f != nil {
		return nil, f
	}
	return page("spotInstanceRequestSet", shown, next, func(i *instance) []node {
		state := "active"
		if !i.exists() {
			state = "closed"
		}
		return []node{
			text("spotInstanceRequestId", spotID(i)), text("instanceId", i.id), text("state", state), text("type", "one-time"),
			text("createTime", i.createdAt.UTC().Format(time.RFC3339)), with("status", text("code", status(i)), text("message", "Your Spot request is "+status(i))),
		}
	}), nil
}

func (c *call) describeImages() ([]node, *failure) {
	ids := indexed(c.form, "ImageId", "")
	for _, id := range ids {
		if _, ok := c.images[id]; !ok {
			return nil, bad("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
		}
	}
	return []node{list("imagesSet", ids, func(id string) []node {
		img := c.images[id]
		return []node{
			text("imageId", id), text("imageState", img.state), text("architecture", img.arch), text("imageOwnerId", "099720109477"), flag("isPublic", true),
			text("imageType", "machine"), text("name", id), text("rootDeviceType", "ebs"), text("rootDeviceName", img.rootDevice), text("virtualizationType", "hvm"),
			list("blockDeviceMapping", []string{img.rootDevice}, func(device string) []node {
				return []node{text("deviceName", device), with("ebs", text("snapshotId", "snap-1"), count("volumeSize", img.size), text("volumeType", "gp3"), flag("deleteOnTermination", true), flag("encrypted", false))}
			}),
		}
	})}, nil
}

func (c *call) describeVolumes() ([]node, *failure) {
	all := slices.SortedFunc(maps.Values(c.volumes), func(a, b *volume) int { return cmp.Compare(a.number, b.number) })
	all = slices.DeleteFunc(all, func(v *volume) bool { return v.account != c.key.Account })
	shown, next, f := selected(c, all, func(v *volume, name string) ([]string, bool) { return ofTags(v.tags, name) })
	if f != nil {
		return nil, f
	}
	return page("volumeSet", shown, next, func(v *volume) []node {
		state, attached := "available", []string{}
		if v.instance != "" {
			state, attached = "in-use", []string{v.instance}
		}
		return []node{
			text("volumeId", v.id), text("status", state), text("createTime", v.createdAt.UTC().Format(time.RFC3339)), tagSet(v.tags),
			list("attachmentSet", attached, func(id string) []node {
				return []node{text("volumeId", v.id), text("instanceId", id), text("device", v.device), text("status", "attached"), flag("deleteOnTermination", !v.keep)}
			}),
		}
	}), nil
}

// An attached network interface.
type attached struct {
	networkInterface
	instance string
}

func (c *call) describeNetworkInterfaces() ([]node, *failure) {
	var all []attached
	for _, i := range c.sorted() {
		for _, n := range i.interfaces {
			if i.account == c.key.Account {
				all = append(all, attached{n, i.id})
			}
		}
	}
	shown, next, f := selected(c, all, func(n attached, name string) ([]string, bool) {
		if name == "attachment.instance-id" {
			return []string{n.instance}, true
		}
		return ofTags(n.tags, name)
	})
	if f != nil {
		return nil, f
	}
	return page("networkInterfaceSet", shown, next, func(n attached) []node {
		return []node{
			text("networkInterfaceId", n.id), text("status", "in-use"), text("subnetId", n.subnet), tagSet(n.tags),
			list("groupSet", n.groups, func(g string) []node { return []node{text("groupId", g), text("groupName", g)} }),
			with("attachment", text("attachmentId", "eni-attach-"+n.id), text("instanceId", n.instance), text("status", "attached"), flag("deleteOnTermination", true)),
		}
	}), nil
}

// describeAddresses has no pages, and the fake no Elastic IP addresses.
func (c *call) describeAddresses() ([]node, *failure) { return []node{with("addressesSet")}, nil }

func (c *call) modifyNetworkInterfaceAttribute() ([]node, *failure) {
	id, check := c.form.Get("NetworkInterfaceId"), c.form.Get("SourceDestCheck.Value")
	for _, i := range c.sorted() {
		for n := range i.interfaces {
			if i.account == c.key.Account && i.interfaces[n].id == id {
				i.interfaces[n].check = check == "true"
				return []node{flag("return", true)}, nil
			}
		}
	}
	return nil, bad("InvalidNetworkInterfaceID.NotFound", "The networkInterface ID '%s' does not exist", id)
}

func (c *call) getConsoleOutput() ([]node, *failure) {
	i := c.instances[c.form.Get("InstanceId")]
	switch {
	case i == nil || !c.shows(i):
		return nil, bad("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", c.form.Get("InstanceId"))
	case c.form.Get("Latest") == "true" && strings.HasPrefix(i.form.Get("InstanceType"), "m4."):
		return nil, bad("UnsupportedOperation", "This instance type does not support retrieving the latest console logs. You can retrieve the standard console logs instead.")
	}
	i.reads++
	return []node{text("instanceId", i.id), text("timestamp", c.now.UTC().Format(time.RFC3339)), text("output", base64.StdEncoding.EncodeToString([]byte(i.console)))}, nil
}

func (c *call) getCallerIdentity() ([]node, *failure) {
	return []node{text("Arn", "arn:aws:iam::"+c.key.Account+":user/drover"), text("UserId", "AIDACKCEVSQ6C2EXAMPLE"), text("Account", c.key.Account)}, nil
}

var roleARN = regexp.MustCompile(`^arn:aws:iam::([0-9]{12}):role/(.+)$`)

func (c *call) assumeRole() ([]node, *failure) {
	arn := c.form.Get("RoleArn")
	externalID, ok := c.key.Roles[arn]
	if !ok || externalID != c.form.Get("ExternalId") {
		return nil, fail(http.StatusForbidden, "AccessDenied", "User: arn:aws:iam::%s:user/drover is not authorized to perform: sts:AssumeRole on resource: %s", c.key.Account, arn)
	}
	return c.session(arn)
}

func (c *call) assumeRoleWithWebIdentity() ([]node, *failure) {
	arn := c.form.Get("RoleArn")
	switch c.webTokens[c.form.Get("WebIdentityToken")] {
	case "":
		return nil, bad("InvalidIdentityToken", "Couldn't retrieve verification key from your identity provider, please reference AssumeRoleWithWebIdentity documentation for requirements")
	case arn:
		return c.session(arn)
	}
	return nil, fail(http.StatusForbidden, "AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity")
}

// session returns temporary credentials of a role.
func (c *call) session(arn string) ([]node, *failure) {
	m := roleARN.FindStringSubmatch(arn)
	if m == nil {
		return nil, bad("ValidationError", "%s is invalid", arn)
	}
	c.sessions++
	seconds := cmp.Or(number(c.form.Get("DurationSeconds")), 3600)
	id, k := fmt.Sprintf("ASIASESSION%09d", c.sessions), &key{
		Key:     Key{Account: m[1], Secret: fmt.Sprintf("5ec4e700-session-%d", c.sessions), Token: fmt.Sprintf("IQoJb3JpZ2luX2VjE-session-%d", c.sessions)},
		expires: c.now.Add(time.Duration(seconds) * time.Second),
	}
	c.keys[id] = k
	name := strings.Replace(strings.Replace(arn, ":iam:", ":sts:", 1), ":role/", ":assumed-role/", 1) + "/" + c.form.Get("RoleSessionName")
	return []node{
		with("AssumedRoleUser", text("AssumedRoleId", "AROA3XFRBF535EXAMPLE:"+c.form.Get("RoleSessionName")), text("Arn", name)),
		with("Credentials", text("AccessKeyId", id), text("SecretAccessKey", k.Secret), text("SessionToken", k.Token), text("Expiration", k.expires.UTC().Format(time.RFC3339))),
	}, nil
}
