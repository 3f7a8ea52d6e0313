package gcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/drover-dev/drover/test/fakes/gcptest"
)

func decode(body []byte) map[string]any {
	out := map[string]any{}
	if err := json.Unmarshal(body, &out); err != nil {
		panic(err) // The model has decoded it.
	}
	return out
}

func (k *call) notFound(resource string) *failure {
	return &failure{http.StatusNotFound, "notFound", "The resource '" + resource + "' was not found"}
}

func invalid(field string, value any, why string) *failure {
	return &failure{http.StatusBadRequest, "invalid", fmt.Sprintf("Invalid value for field '%s': '%v'. %s", field, value, why)}
}

// inZone returns the path of a resource of the zone of the call.
func (k *call) inZone(collection, name string) string {
	return "projects/" + k.opts.Project + "/zones/" + k.Parameters["zone"] + "/" + collection + "/" + name
}

func (k *call) checkZone() *failure {
	if zone := k.Parameters["zone"]; !slices.Contains(Zones, zone) {
		return invalid("zone", zone, "Unknown zone.")
	}
	return nil
}

// repeated returns the operation of an earlier request with the request ID.
func (k *call) repeated() (*operation, *failure) {
	values := k.query["requestId"]
	if len(values) == 0 {
		return nil, nil
	}
	if id, err := uuid.Parse(values[0]); err != nil || id == uuid.Nil {
		return nil, invalid("requestId", values[0], "The request ID must be a valid UUID other than zero.")
	}
	return k.requests[k.ID+"/"+values[0]], nil
}

// accept adds an operation, which later requests with the request ID get, too.
func (k *call) accept(i *instance, kind string) *operation {
	o := k.newOperation(i, kind, k.now)
	if values := k.query["requestId"]; len(values) > 0 {
		k.requests[k.ID+"/"+values[0]] = o
	}
	return o
}

// find returns the instance with the name or the number in the path.
func (k *call) find() (*instance, *failure) {
	want := k.Parameters["instance"]
	for _, i := range k.sorted() {
		if i.zone == k.Parameters["zone"] && (i.name == want || i.number() == want) {
			return i, nil
		}
	}
	return nil, k.notFound(k.inZone("instances", want))
}

func notReady(i *instance) *failure {
	return &failure{http.StatusBadRequest, "resourceNotReady", "The resource '" + i.name + "' is not ready"}
}

// insert: https://cloud.google.com/compute/docs/reference/rest/v1/instances/insert.
func (k *call) insert() (any, *failure) {
	if f := k.checkZone(); f != nil {
		return nil, f
	}
	earlier, f := k.repeated()
	if f != nil {
		return nil, f
	}
	if earlier != nil {
		return k.operation(earlier), nil
	}
	name, _ := k.body["name"].(string)
	if f := k.checkInstance(); f != nil {
		return nil, f
	}
	for _, i := range k.instances {
		if i.zone == k.Parameters["zone"] && i.name == name {
			return nil, &failure{http.StatusConflict, "alreadyExists", "The resource '" + k.inZone("instances", name) + "' already exists"}
		}
	}
	i := k.add(name, k.Parameters["zone"], k.body, texts(k.body["labels"]), k.now)
	i.userData = k.metadata()["user-data"]
	k.addAddresses(i)
	o := k.accept(i, "insert")
	if f := k.failureOf(k.raw); f != nil {
		i.failing, i.nextAt = true, k.now.Add(k.opts.Step)
		o.code, o.message, o.endsAt = f.Code, f.Message, i.nextAt
		return k.operation(o), nil
	}
	i.insert = o
	return k.operation(o), nil
}

// addAddresses gives an instance the addresses that it asks for.
func (k *call) addAddresses(i *instance) {
	list, _ := k.body["networkInterfaces"].([]any)
	first, _ := list[0].(map[string]any)
	if ip, ok := first["networkIP"].(string); ok {
		i.addresses[0] = ip
	}
	if len(anyList(first["accessConfigs"])) > 0 {
		i.addresses[1] = fmt.Sprintf("34.90.%d.%d", k.addrs/250, k.addrs%250+2)
	}
	if stack, _ := first["stackType"].(string); strings.Contains(stack, "IPV6") {
		i.addresses[2] = fmt.Sprintf("2600:1900:4060:1b2::%x", k.addrs+1)
	}
}

func anyList(value any) []any {
	out, _ := value.([]any)
	return out
}

func (k *call) metadata() map[string]string {
	out := map[string]string{}
	all, _ := k.body["metadata"].(map[string]any)
	for _, item := range anyList(all["items"]) {
		item, _ := item.(map[string]any)
		key, _ := item["key"].(string)
		out[key], _ = item["value"].(string)
	}
	return out
}

var (
	labelKey    = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)
	labelValue  = regexp.MustCompile(`^[a-z0-9_-]{0,63}$`)
	machineType = regexp.MustCompile(`^(?:projects/[^/]+/)?zones/([^/]+)/machineTypes/([^/]+)$`)
	subnetwork  = regexp.MustCompile(`^projects/([^/]+)/regions/([^/]+)/subnetworks/([^/]+)$`)
	sourceImage = regexp.MustCompile(`^projects/([^/]+)/global/images/(family/)?([^/]+)$`)
)

// maxValue is the maximum size of a value of the metadata.
const maxValue = 256 << 10

// checkInstance checks the rules that the description lacks.
func (k *call) checkInstance() *failure {
	m := machineType.FindStringSubmatch(k.text("machineType"))
	if m == nil || m[1] != k.Parameters["zone"] || machineTypes[m[2]] == nil && !strings.Contains(m[2], "custom-") {
		return invalid("resource.machineType", k.text("machineType"), "The referenced resource cannot be found.")
	}
	for key, value := range texts(k.body["labels"]) {
		if !labelKey.MatchString(key) || !labelValue.MatchString(value) {
			return invalid("resource.labels", "", "Label key or value violates the format constraints: "+key+"="+value)
		}
	}
	for key, value := range k.metadata() {
		if len(value) > maxValue {
			return invalid("resource.metadata.items", key, "Value for metadata key is too large.")
		}
	}
	list := anyList(k.body["networkInterfaces"])
	if len(list) == 0 {
		return invalid("resource.networkInterfaces", "", "At least one network interface is required.")
	}
	for n, item := range list {
		item, _ := item.(map[string]any)
		if f := k.checkInterface(n, item); f != nil {
			return f
		}
	}
	return k.checkDisks()
}

func (k *call) text(key string) string {
	out, _ := k.body[key].(string)
	return out
}

func (k *call) checkInterface(n int, item map[string]any) *failure {
	text, _ := item["subnetwork"].(string)
	field := fmt.Sprintf("resource.networkInterfaces[%d].subnetwork", n)
	if text == "" {
		return nil
	}
	found := subnetwork.FindStringSubmatch(text)
	if found == nil || !strings.HasPrefix(k.Parameters["zone"], found[2]+"-") || !slices.Contains([]string{"nodes", "other"}, found[3]) {
		return invalid(field, text, "The referenced subnetwork resource cannot be found.")
	}
	return nil
}

func (k *call) checkDisks() *failure {
	boots := 0
	for n, item := range anyList(k.body["disks"]) {
		item, _ := item.(map[string]any)
		parameters, _ := item["initializeParams"].(map[string]any)
		if item["boot"] == true {
			boots++
		}
		text, _ := parameters["sourceImage"].(string)
		if text == "" {
			continue
		}
		found := sourceImage.FindStringSubmatch(text)
		if found == nil || k.imageNamed(found[1], found[3], found[2] != "") == nil {
			return k.notFound(text)
		}
		image := k.imageNamed(found[1], found[3], found[2] != "")
		size, _ := parameters["diskSizeGb"].(string)
		least, _ := strconv.Atoi(fmt.Sprint(image["diskSizeGb"]))
		if gb, err := strconv.Atoi(size); err == nil && gb < least {
			return invalid(fmt.Sprintf("resource.disks[%d].initializeParams.diskSizeGb", n), size, fmt.Sprintf("Requested disk size cannot be smaller than the image size (%d GB)", least))
		}
	}
	if boots != 1 {
		return &failure{http.StatusBadRequest, "invalid", "Invalid value for field 'resource.disks': ''. Exactly one boot disk is required."}
	}
	return nil
}

// get: https://cloud.google.com/compute/docs/reference/rest/v1/instances/get.
func (k *call) get() (any, *failure) {
	i, f := k.find()
	if f != nil {
		return nil, f
	}
	labels := map[string]any{}
	for key, value := range i.labels {
		labels[key] = value
	}
	link := gcptest.Link(k.opts.Project, i.zone, i.name)
	out := map[string]any{
		"kind": "compute#instance", "name": i.name, "status": i.status, "labels": labels, "labelFingerprint": "42WmSpB8rSM=", "selfLink": link,
		"creationTimestamp": timestamp(i.createdAt), "zone": strings.TrimSuffix(link, "/instances/"+i.name),
	}
	maps.Copy(out, k.view(i))
	return out, nil
}

func timestamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000-07:00") }

// view returns the fields of an instance that gcptest does not have.
func (c *Cloud) view(i *instance) map[string]any {
	network := map[string]any{
		"kind": "compute#networkInterface", "name": "nic0", "networkIP": i.addresses[0], "fingerprint": "o9WmSpB8rSM=",
		"network": "https://www.googleapis.com/compute/v1/projects/" + c.opts.Project + "/global/networks/default", "stackType": "IPV4_ONLY",
	}
	if i.addresses[1] != "" {
		network["accessConfigs"] = []any{map[string]any{"kind": "compute#accessConfig", "name": "External NAT", "type": "ONE_TO_ONE_NAT", "natIP": i.addresses[1], "networkTier": "PREMIUM"}}
	}
	if i.addresses[2] != "" {
		network["stackType"] = "IPV4_IPV6"
		network["ipv6AccessConfigs"] = []any{map[string]any{
			"kind": "compute#accessConfig", "name": "external-ipv6", "type": "DIRECT_IPV6", "externalIpv6": i.addresses[2], "externalIpv6PrefixLength": 96, "networkTier": "PREMIUM",
		}}
	}
	scheduling := map[string]any{"onHostMaintenance": "MIGRATE", "automaticRestart": true, "preemptible": false, "provisioningModel": "STANDARD"}
	if s, ok := i.body["scheduling"].(map[string]any); ok {
		maps.Copy(scheduling, s)
	}
	out := map[string]any{
		"id": i.number(), "networkInterfaces": []any{network}, "scheduling": scheduling, "deletionProtection": false, "cpuPlatform": "Intel Ice Lake",
	}
	if m := machineType.FindStringSubmatch(i.machineType()); m != nil {
		out["machineType"] = "https://www.googleapis.com/compute/v1/projects/" + c.opts.Project + "/zones/" + i.zone + "/machineTypes/" + m[2]
	}
	return out
}

func (i *instance) machineType() string {
	out, _ := i.body["machineType"].(string)
	return out
}

// delete: https://cloud.google.com/compute/docs/reference/rest/v1/instances/delete.
func (k *call) delete() (any, *failure) {
	i, f := k.find()
	switch {
	case f != nil:
		return nil, f
	case i.deleting, i.failing, i.status == "PROVISIONING":
		return nil, notReady(i)
	}
	k.stop(i)
	i.deleting, i.status, i.nextAt = true, "STOPPING", k.now.Add(k.opts.Step)
	o := k.accept(i, "delete")
	o.endsAt = i.nextAt
	return k.operation(o), nil
}

// start: https://cloud.google.com/compute/docs/reference/rest/v1/instances/start.
func (k *call) start() (any, *failure) {
	i, f := k.find()
	if f != nil {
		return nil, f
	}
	if earlier, f := k.repeated(); f != nil || earlier != nil {
		return k.operation(earlier), f
	}
	if i.deleting || i.status != "TERMINATED" && i.status != "RUNNING" {
		return nil, notReady(i)
	}
	o := k.accept(i, "start")
	if o.endsAt = k.now.Add(k.opts.Step); i.status == "TERMINATED" {
		i.status, i.nextAt = "STAGING", o.endsAt
	}
	return k.operation(o), nil
}

// reset: https://cloud.google.com/compute/docs/reference/rest/v1/instances/reset.
func (k *call) reset() (any, *failure) {
	i, f := k.find()
	if f != nil {
		return nil, f
	}
	if earlier, f := k.repeated(); f != nil || earlier != nil {
		return k.operation(earlier), f
	}
	if i.deleting || i.status != "RUNNING" {
		return nil, notReady(i)
	}
	i.reboots = append(i.reboots, Hard)
	if b := k.booted(i); k.opts.Reboot != nil {
		k.mu.Later(func() { k.opts.Reboot(b) })
	}
	o := k.accept(i, "reset")
	o.endsAt = k.now
	return k.operation(o), nil
}

// serialPort: https://cloud.google.com/compute/docs/reference/rest/v1/instances/getSerialPortOutput.
func (k *call) serialPort() (any, *failure) {
	i, f := k.find()
	if f != nil {
		return nil, f
	}
	i.reads++
	text, start := i.console, 0
	if values := k.query["start"]; len(values) > 0 {
		n, _ := strconv.Atoi(values[0])
		if start = n; n < 0 {
			start = max(0, len(text)+n)
		}
	}
	start = min(start, len(text))
	return map[string]any{
		"kind": "compute#serialPortOutput", "contents": text[start:], "start": strconv.Itoa(start), "next": strconv.Itoa(len(text)),
		"selfLink": gcptest.Link(k.opts.Project, i.zone, i.name) + "/serialPort",
	}, nil
}

// operation: https://cloud.google.com/compute/docs/reference/rest/v1/zoneOperations.
func (k *call) operation(o *operation) any {
	if o == nil {
		return nil
	}
	zone := "https://www.googleapis.com/compute/v1/projects/" + k.opts.Project + "/zones/" + o.zone
	out := map[string]any{
		"kind": "compute#operation", "id": strings.TrimPrefix(o.name, "operation-"), "name": o.name, "zone": zone, "operationType": o.kind,
		"targetId": strconv.FormatUint(o.target, 10), "targetLink": o.link, "insertTime": timestamp(o.createdAt), "status": "PENDING", "progress": 0,
		"user": Account, "selfLink": zone + "/operations/" + o.name,
	}
	if !k.now.Before(o.runsAt) {
		out["status"], out["startTime"] = "RUNNING", timestamp(o.runsAt)
	}
	if !o.endsAt.IsZero() && !k.now.Before(o.endsAt) {
		out["status"], out["progress"], out["endTime"] = "DONE", 100, timestamp(o.endsAt)
		if o.code != "" {
			out["error"] = map[string]any{"errors": []any{map[string]any{"code": o.code, "message": o.message}}}
			out["httpErrorStatusCode"], out["httpErrorMessage"] = http.StatusServiceUnavailable, "SERVICE UNAVAILABLE"
		}
	}
	return out
}

func (k *call) getOperation() (any, *failure) {
	o := k.operations[k.Parameters["operation"]]
	if o == nil || o.zone != k.Parameters["zone"] {
		return nil, k.notFound(k.inZone("operations", k.Parameters["operation"]))
	}
	return k.operation(o), nil
}

// operationFilter is the filter that the fake understands.
var operationFilter = regexp.MustCompile(`^\(operationType = "([a-zA-Z.]+)"\) AND \(targetId = ([0-9]+)\)$`)

func (k *call) listOperations() (any, *failure) {
	var filter string
	if values := k.query["filter"]; len(values) > 0 {
		filter = values[0]
	}
	found := operationFilter.FindStringSubmatch(filter)
	if found == nil {
		return nil, invalid("filter", filter, "Invalid list filter expression.")
	}
	items := []any{}
	for _, name := range slices.Sorted(maps.Keys(k.operations)) {
		o := k.operations[name]
		if o.zone == k.Parameters["zone"] && o.kind == found[1] && strconv.FormatUint(o.target, 10) == found[2] {
			items = append(items, k.operation(o))
		}
	}
	return map[string]any{"kind": "compute#operationList", "id": k.inZone("operations", ""), "items": items}, nil
}
