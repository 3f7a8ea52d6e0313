package alibaba

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// minute is the format of times of ECS.
const minute = "2006-01-02T15:04Z"

// maxUserData is the maximum size of user data in bytes, before base64.
const maxUserData = 32 << 10

// region checks the region.
func (c *call) region() *failure {
	switch c.params["RegionId"] {
	case c.opts.Region:
		return nil
	case "":
		return missing("RegionId")
	}
	return fail(http.StatusNotFound, "InvalidRegionId.NotFound", "The specified RegionId does not exist.")
}

// own returns an instance of the account.
func (c *call) own() (*instance, *failure) {
	id := c.params["InstanceId"]
	if id == "" {
		return nil, missing("InstanceId")
	}
	i := c.instances[id]
	if i == nil || i.account != c.key.Account {
		return nil, fail(http.StatusNotFound, "InvalidInstanceId.NotFound", "The specified InstanceId does not exist.")
	}
	return i, nil
}

var (
	validName = regexp.MustCompile(`^[\p{L}][\p{L}0-9_.:-]{1,127}$`)
	validHost = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,62}[a-zA-Z0-9])$`)
)

func (c *call) runInstances() (map[string]any, *failure) {
	if f := c.region(); f != nil {
		return nil, f
	}
	token := c.params["ClientToken"]
	if len(token) > 64 {
		return nil, fail(http.StatusBadRequest, "InvalidClientToken.Malformed", "The specified ClientToken is not valid.")
	}
	known, ok := c.tokens[c.key.Account+"/"+token]
	if token != "" && ok {
		if known.params != canonical(c.params) {
			return nil, fail(http.StatusBadRequest, "IdempotentParameterMismatch", "The specified parameter has changed while using an already used clientToken.")
		}
		return accepted(known.id), nil
	}
	userData, f := c.validate()
	if f != nil {
		return nil, f
	}
	i := c.add(c.key.Account, c.params, tagsOf(c.params), userData, c.now)
	if token != "" {
		c.tokens[c.key.Account+"/"+token] = request{params: canonical(c.params), id: i.id}
	}
	return accepted(i.id), nil
}

func accepted(id string) map[string]any {
	return map[string]any{"InstanceIdSets": map[string]any{"InstanceIdSet": []string{id}}}
}

// validate validates the parameters of a creation, and returns the user data.
func (c *call) validate() (string, *failure) {
	p := c.params
	groups := indexed(p, "SecurityGroupIds", "")
	image := c.images[p["ImageId"]]
	if p["ImageFamily"] != "" {
		for _, i := range c.images {
			if i["ImageFamily"] == p["ImageFamily"] {
				image = i
			}
		}
	}
	switch {
	case p["Amount"] != "1":
		return "", fail(http.StatusBadRequest, "InvalidAmount.NotSupported", "The specified Amount is not supported by this fake.")
	case p["InstanceType"] == "":
		return "", missing("InstanceType")
	case c.types[p["InstanceType"]] == nil:
		return "", fail(http.StatusForbidden, "InvalidInstanceType.ValueNotSupported", "The specified InstanceType does not exist or beyond the permitted range.")
	case p["ImageId"] == "" && p["ImageFamily"] == "":
		return "", missing("ImageId")
	case image == nil:
		return "", fail(http.StatusNotFound, "InvalidImageId.NotFound", "The specified ImageId does not exist.")
	case len(groups) == 0:
		return "", missing("SecurityGroupId")
	case c.vSwitches[p["VSwitchId"]] == "":
		return "", fail(http.StatusNotFound, "InvalidVSwitchId.NotFound", "The VSwitchId provided does not exist in our records.")
	case p["ZoneId"] != "" && p["ZoneId"] != c.vSwitches[p["VSwitchId"]]:
		return "", fail(http.StatusBadRequest, "InvalidParameter.Mismatch", "Specified virtual switch is not in the specified zone.")
	case !validName.MatchString(p["InstanceName"]):
		return "", fail(http.StatusBadRequest, "InvalidInstanceName.Malformed", "The specified InstanceName is wrongly formed.")
	case p["HostName"] != "" && !validHost.MatchString(p["HostName"]):
		return "", fail(http.StatusBadRequest, "InvalidHostName.Malformed", "The specified parameter \"HostName\" is not valid.")
	case p["KeyPairName"] != "" && p["KeyPairName"] != "ops":
		return "", fail(http.StatusNotFound, "InvalidKeyPairName.NotFound", "The specified KeyPairName does not exist in our records.")
	case p["InternetMaxBandwidthIn"] != "" && p["InternetMaxBandwidthOut"] == "":
		return "", missing("InternetMaxBandwidthOut")
	case p["SpotPriceLimit"] != "" && p["SpotStrategy"] != "SpotWithPriceLimit":
		return "", fail(http.StatusBadRequest, "InvalidSpotPriceLimit", "The specified SpotPriceLimit is not valid.")
	}
	for _, g := range groups {
		if !strings.HasPrefix(g, "sg-") {
			return "", fail(http.StatusNotFound, "InvalidSecurityGroupId.NotFound", "The specified SecurityGroupId does not exist.")
		}
	}
	if size := p["SystemDisk.Size"]; size != "" {
		if n, err := strconv.Atoi(size); err != nil || n < image["Size"].(int) {
			return "", fail(http.StatusBadRequest, "InvalidSystemDiskSize.LessThanImageSize", "The specified parameter SystemDisk.Size is less than the image size.")
		}
	}
	if f := validateTags(tagsOf(p)); f != nil {
		return "", f
	}
	data, err := base64.StdEncoding.DecodeString(p["UserData"])
	switch {
	case err != nil:
		return "", fail(http.StatusBadRequest, "InvalidUserData.Base64FormatInvalid", "The specified parameter UserData must be base64 encoded.")
	case len(data) > maxUserData:
		return "", fail(http.StatusBadRequest, "InvalidUserData.SizeExceeded", "The specified parameter \"UserData\" exceeds the size.")
	}
	return string(data), nil
}

func validateTags(tags map[string]string) *failure {
	if len(tags) > 20 {
		return fail(http.StatusBadRequest, "InvalidTagCount", "The specified tags are beyond the permitted range.")
	}
	for k, v := range tags {
		switch {
		case k == "" || len(k) > 128 || strings.HasPrefix(k, "aliyun") || strings.HasPrefix(k, "acs:") || strings.Contains(k, "http://") || strings.Contains(k, "https://"):
			return fail(http.StatusBadRequest, "InvalidTagKey.Malformed", "The specified Tag.n.Key is not valid.")
		case len(v) > 128 || strings.Contains(v, "http://") || strings.Contains(v, "https://"):
			return fail(http.StatusBadRequest, "InvalidTagValue.Malformed", "The specified Tag.n.Value is not valid.")
		}
	}
	return nil
}

func incorrectStatus() *failure {
	return fail(http.StatusForbidden, "IncorrectInstanceStatus", "The current status of the resource does not support this operation.")
}

func (c *call) startInstance() (map[string]any, *failure) {
	i, f := c.own()
	switch {
	case f != nil:
		return nil, f
	case i.status != "Stopped" || i.deleted || len(i.locks) > 0:
		return nil, incorrectStatus()
	}
	if i.ran {
		i.reboots = append(i.reboots, Hard)
	}
	i.status, i.nextAt = "Starting", c.now.Add(c.opts.Step)
	return map[string]any{}, nil
}

func (c *call) rebootInstance() (map[string]any, *failure) {
	i, f := c.own()
	switch {
	case f != nil:
		return nil, f
	case slices.Contains(i.locks, "security"):
		return nil, fail(http.StatusForbidden, "InstanceLockedForSecurity", "The specified operation is denied as your instance is locked for security reasons.")
	case i.status != "Running":
		return nil, incorrectStatus()
	}
	mode := Soft
	if c.params["ForceStop"] == "true" {
		mode = Hard
	}
	i.reboots = append(i.reboots, mode)
	i.status, i.nextAt, i.restarts = "Starting", c.now.Add(c.opts.Step), true
	return map[string]any{}, nil
}

func (c *call) deleteInstance() (map[string]any, *failure) {
	i, f := c.own()
	switch {
	case f != nil:
		return nil, f
	case i.deleted, i.status != "Stopped" && (i.status != "Running" || c.params["Force"] != "true"):
		return nil, incorrectStatus()
	}
	c.stop(i)
	i.status, i.deleted, i.nextAt = "Stopped", true, c.now.Add(c.opts.Step)
	return map[string]any{}, nil
}

// page returns the part of a list that the request selects, and the token of the next page.
func page[T any](c *call, all []T) ([]T, string, *failure) {
	size, err := strconv.Atoi(cmp.Or(c.params["MaxResults"], "10"))
	if err != nil || size < 1 || size > 100 {
		return nil, "", fail(http.StatusBadRequest, "InvalidParameter.MaxResults", "The specified MaxResults is not valid.")
	}
	from := 0
	if token := c.params["NextToken"]; token != "" {
		if _, err := fmt.Sscanf(token, "AAAAA%d", &from); err != nil || from < 0 || from > len(all) {
			return nil, "", fail(http.StatusBadRequest, "InvalidNextToken", "The specified NextToken is not valid.")
		}
	}
	to := min(from+size, len(all))
	if to < len(all) {
		return all[from:to], fmt.Sprintf("AAAAA%d", to), nil
	}
	return all[from:to], "", nil
}

func (c *call) describeInstances() (map[string]any, *failure) {
	if f := c.region(); f != nil {
		return nil, f
	}
	var ids []string
	if text := c.params["InstanceIds"]; text != "" {
		if json.Unmarshal([]byte(text), &ids) != nil || len(ids) > 100 {
			return nil, fail(http.StatusBadRequest, "InvalidInstanceIds.Malformed", "The amount of specified instance Ids exceeds the limit.")
		}
	}
	var selected []*instance
	for _, i := range c.sorted() {
		if i.account == c.key.Account && (ids == nil || slices.Contains(ids, i.id)) && matches(i.tags, tagsOf(c.params)) && c.now.Sub(i.createdAt) >= c.opts.ListedAfter {
			selected = append(selected, i)
		}
	}
	shown, next, f := page(c, selected)
	if f != nil {
		return nil, f
	}
	out := []map[string]any{}
	for _, i := range shown {
		out = append(out, c.asEntry(i))
	}
	return map[string]any{"Instances": map[string]any{"Instance": out}, "NextToken": next, "TotalCount": len(selected)}, nil
}

func (c *call) asEntry(i *instance) map[string]any {
	locks := []map[string]any{}
	for _, l := range i.locks {
		locks = append(locks, map[string]any{"LockReason": l})
	}
	public := []string{}
	if i.publicIP != "" {
		public = append(public, i.publicIP)
	}
	private, v6 := []map[string]any{}, []map[string]any{}
	for n, ip := range i.ips {
		private = append(private, map[string]any{"PrivateIpAddress": ip, "Primary": n == 0})
	}
	for _, ip := range i.ipv6 {
		v6 = append(v6, map[string]any{"Ipv6Address": ip})
	}
	return map[string]any{
		"InstanceId": i.id, "InstanceName": i.params["InstanceName"], "HostName": i.params["HostName"], "RegionId": c.opts.Region,
		"ZoneId": c.vSwitches[i.params["VSwitchId"]], "ImageId": i.params["ImageId"], "InstanceType": i.params["InstanceType"],
		"Status": i.status, "CreationTime": i.createdAt.UTC().Format(minute), "SpotStrategy": cmp.Or(i.params["SpotStrategy"], "NoSpot"),
		"OperationLocks":  map[string]any{"LockReason": locks},
		"PublicIpAddress": map[string]any{"IpAddress": public},
		"EipAddress":      map[string]any{"IpAddress": "", "AllocationId": ""},
		"VpcAttributes":   map[string]any{"VSwitchId": i.params["VSwitchId"], "PrivateIpAddress": map[string]any{"IpAddress": i.ips}},
		"NetworkInterfaces": map[string]any{"NetworkInterface": []map[string]any{{
			"NetworkInterfaceId": "eni-" + i.id, "Type": "Primary",
			"PrivateIpSets": map[string]any{"PrivateIpSet": private}, "Ipv6Sets": map[string]any{"Ipv6Set": v6},
		}}},
		"Tags": tagList(i.tags),
	}
}

func tagList(tags map[string]string) map[string]any {
	list := []map[string]any{}
	for k, v := range tags {
		list = append(list, map[string]any{"TagKey": k, "TagValue": v})
	}
	return map[string]any{"Tag": list}
}

func (c *call) describeInstanceAttribute() (map[string]any, *failure) {
	i, f := c.own()
	if f != nil {
		return nil, f
	}
	return map[string]any{"InstanceId": i.id, "Status": i.status, "HostName": i.params["HostName"]}, nil
}

func (c *call) describeDisks() (map[string]any, *failure) {
	if f := c.region(); f != nil {
		return nil, f
	}
	var selected []*disk
	for _, d := range c.disks {
		if d.account == c.key.Account && matches(d.tags, tagsOf(c.params)) {
			selected = append(selected, d)
		}
	}
	slices.SortFunc(selected, func(a, b *disk) int { return cmp.Compare(b.number, a.number) })
	shown, next, f := page(c, selected)
	if f != nil {
		return nil, f
	}
	out := []map[string]any{}
	for _, d := range shown {
		status := "In_use"
		if d.instance == "" {
			status = "Available"
		}
		out = append(out, map[string]any{
			"DiskId": d.id, "InstanceId": d.instance, "Status": status, "CreationTime": d.createdAt.UTC().Format(time.RFC3339),
			"DeleteWithInstance": !d.keep, "Tags": tagList(d.tags),
		})
	}
	return map[string]any{"Disks": map[string]any{"Disk": out}, "NextToken": next, "TotalCount": len(selected)}, nil
}

func (c *call) describeImages() (map[string]any, *failure) {
	if f := c.region(); f != nil {
		return nil, f
	}
	out := []map[string]any{}
	for id, i := range c.images {
		if (c.params["ImageId"] == "" || c.params["ImageId"] == id) && (c.params["ImageFamily"] == "" || c.params["ImageFamily"] == i["ImageFamily"]) {
			out = append(out, i)
		}
	}
	return map[string]any{"Images": map[string]any{"Image": out}, "TotalCount": len(out), "PageNumber": 1, "PageSize": 10}, nil
}

func (c *call) describeInstanceTypes() (map[string]any, *failure) {
	names := indexed(c.params, "InstanceTypes", "")
	out := []map[string]any{}
	for id, t := range c.types {
		if len(names) == 0 || slices.Contains(names, id) {
			out = append(out, t)
		}
	}
	return map[string]any{"InstanceTypes": map[string]any{"InstanceType": out}, "NextToken": ""}, nil
}

func (c *call) getInstanceConsoleOutput() (map[string]any, *failure) {
	i, f := c.own()
	if f != nil {
		return nil, f
	}
	i.reads++
	return map[string]any{
		"InstanceId": i.id, "ConsoleOutput": base64.StdEncoding.EncodeToString([]byte(i.console)), "LastUpdateTime": c.now.UTC().Format(time.RFC3339),
	}, nil
}

func (c *call) getCallerIdentity() (map[string]any, *failure) {
	return map[string]any{"AccountId": c.key.Account, "IdentityType": "RAMUser", "Arn": "acs:ram::" + c.key.Account + ":user/drover"}, nil
}

var roleARN = regexp.MustCompile(`^acs:ram::([0-9]+):role/(.+)$`)

func (c *call) assumeRole() (map[string]any, *failure) {
	m := roleARN.FindStringSubmatch(c.params["RoleArn"])
	seconds, err := strconv.Atoi(cmp.Or(c.params["DurationSeconds"], "3600"))
	switch {
	case m == nil:
		return nil, fail(http.StatusBadRequest, "InvalidParameter.RoleArn", "The specified RoleArn is not valid.")
	case c.params["RoleSessionName"] == "":
		return nil, missing("RoleSessionName")
	case err != nil || seconds < 900 || seconds > 3600:
		return nil, fail(http.StatusBadRequest, "InvalidParameter.DurationSeconds", "The specified DurationSeconds is not valid.")
	case !slices.Contains(c.key.Roles, c.params["RoleArn"]):
		return nil, fail(http.StatusForbidden, "NoPermission", "You are not authorized to do this action. You should be authorized by RAM.")
	}
	c.sessions++
	k := &key{
		Key:     Key{Account: m[1], Secret: fmt.Sprintf("5ec4e700-session-%d", c.sessions), Token: fmt.Sprintf("CAIS-session-%d", c.sessions)},
		expires: c.now.Add(time.Duration(seconds) * time.Second),
	}
	id := fmt.Sprintf("STS.session%d", c.sessions)
	c.keys[id] = k
	return map[string]any{
		"AssumedRoleUser": map[string]any{"Arn": strings.Replace(c.params["RoleArn"], ":role/", ":assumed-role/", 1) + "/" + c.params["RoleSessionName"]},
		"Credentials": map[string]any{
			"AccessKeyId": id, "AccessKeySecret": k.Secret, "SecurityToken": k.Token, "Expiration": k.expires.UTC().Format(time.RFC3339),
		},
	}, nil
}
