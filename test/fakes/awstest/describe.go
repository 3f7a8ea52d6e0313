package awstest

import (
	"encoding/xml"
	"slices"
	"strings"
	"sync"
	"time"
)

// An Instance of EC2.
type Instance struct {
	ID, Zone string
	// State is pending, running, shutting-down, terminated, stopping or stopped.
	State string
	// StateReason is a message such as "Client.UserInitiatedShutdown: User initiated shutdown".
	StateReason string
	Tags        map[string]string
	LaunchTime  time.Time
}

// An Attachable is a NetworkInterface, Volume or Address. AttachedTo is an instance, "" if nothing uses it.
type Attachable struct {
	ID         string
	AttachedTo string
	Tags       map[string]string
	CreatedAt  time.Time
}

// Beside are the resources beside instances.
type Beside struct{ NetworkInterfaces, Volumes, Addresses []Attachable }

// A Memory is a Backend that keeps its content in memory.
type Memory struct {
	mu        sync.Mutex
	instances map[string][]Instance
	beside    map[string]Beside
}

func place(account, region string) string { return account + " " + region }

// Instances of an account in a region.
func (m *Memory) Instances(account, region string) []Instance {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.instances[place(account, region)])
}

// Beside the instances of an account in a region.
func (m *Memory) Beside(account, region string) Beside {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.beside[place(account, region)]
}

// Set the instances of an account in a region.
func (m *Memory) Set(account, region string, instances ...Instance) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.instances == nil {
		m.instances = map[string][]Instance{}
	}
	m.instances[place(account, region)] = instances
}

// SetBeside sets the resources beside instances.
func (m *Memory) SetBeside(account, region string, b Beside) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.beside == nil {
		m.beside = map[string]Beside{}
	}
	m.beside[place(account, region)] = b
}

type errorItem struct {
	Code    string `xml:"Code"`
	Message string `xml:"Message"`
}

type errorResponse struct {
	XMLName   xml.Name    `xml:"Response"`
	Errors    []errorItem `xml:"Errors>Error"`
	RequestID string      `xml:"RequestID"`
}

type tag struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

func tagsOf(tags map[string]string) []tag {
	var out []tag
	for k, v := range tags {
		out = append(out, tag{k, v})
	}
	slices.SortFunc(out, func(a, b tag) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// selectable returns the values that a tag filter selects by, and whether the filter is one.
func selectable(tags map[string]string, filter string) ([]string, bool) {
	key, ok := strings.CutPrefix(filter, "tag:")
	if !ok {
		return nil, false
	}
	if v, has := tags[key]; has {
		return []string{v}, true
	}
	return nil, true
}

// codes of states, of the page InstanceState.
var codes = map[string]int{"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}

type instanceXML struct {
	InstanceID string `xml:"instanceId"`
	State      struct {
		Code int    `xml:"code"`
		Name string `xml:"name"`
	} `xml:"instanceState"`
	LaunchTime string `xml:"launchTime"`
	Placement  struct {
		Zone string `xml:"availabilityZone"`
	} `xml:"placement"`
	StateReason *struct {
		Code    string `xml:"code"`
		Message string `xml:"message"`
	} `xml:"stateReason"`
	Tags []tag `xml:"tagSet>item"`
}

type reservationXML struct {
	ReservationID string        `xml:"reservationId"`
	OwnerID       string        `xml:"ownerId"`
	Instances     []instanceXML `xml:"instancesSet>item"`
}

type describeInstancesResponse struct {
	XMLName      xml.Name         `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeInstancesResponse"`
	RequestID    string           `xml:"requestId"`
	Reservations []reservationXML `xml:"reservationSet>item"`
	NextToken    string           `xml:"nextToken,omitempty"`
}

func describeInstances(id, owner string, all []Instance, p page) (any, *failure) {
	some, next, f := of(p, all, func(i Instance, filter string) ([]string, bool) {
		switch filter {
		case "instance-id":
			return []string{i.ID}, true
		case "instance-state-name":
			return []string{i.State}, true
		}
		return selectable(i.Tags, filter)
	})
	if f != nil {
		return nil, f
	}
	out := describeInstancesResponse{RequestID: id, NextToken: next}
	for _, i := range some {
		x := instanceXML{InstanceID: i.ID, LaunchTime: i.LaunchTime.UTC().Format(time.RFC3339), Tags: tagsOf(i.Tags)}
		x.State.Code, x.State.Name, x.Placement.Zone = codes[i.State], i.State, i.Zone
		if i.StateReason != "" {
			code, _, _ := strings.Cut(i.StateReason, ":")
			x.StateReason = &struct {
				Code    string `xml:"code"`
				Message string `xml:"message"`
			}{code, i.StateReason}
		}
		out.Reservations = append(out.Reservations, reservationXML{"r-" + strings.TrimPrefix(i.ID, "i-"), owner, []instanceXML{x}})
	}
	return out, nil
}

type attachmentXML struct {
	AttachmentID string `xml:"attachmentId,omitempty"`
	InstanceID   string `xml:"instanceId,omitempty"`
	VolumeID     string `xml:"volumeId,omitempty"`
	Status       string `xml:"status"`
}

type networkInterfaceXML struct {
	ID         string         `xml:"networkInterfaceId"`
	Status     string         `xml:"status"`
	Attachment *attachmentXML `xml:"attachment"`
	Tags       []tag          `xml:"tagSet>item"`
}

type volumeXML struct {
	ID          string          `xml:"volumeId"`
	Status      string          `xml:"status"`
	CreateTime  string          `xml:"createTime"`
	Attachments []attachmentXML `xml:"attachmentSet>item"`
	Tags        []tag           `xml:"tagSet>item"`
}

type addressXML struct {
	PublicIP      string `xml:"publicIp"`
	AllocationID  string `xml:"allocationId"`
	AssociationID string `xml:"associationId,omitempty"`
	InstanceID    string `xml:"instanceId,omitempty"`
	Tags          []tag  `xml:"tagSet>item"`
}

func attachableValues(a Attachable, filter string) ([]string, bool) {
	return selectable(a.Tags, filter)
}

func describeNetworkInterfaces(id string, all []Attachable, p page) (any, *failure) {
	some, next, f := of(p, all, attachableValues)
	if f != nil {
		return nil, f
	}
	out := struct {
		XMLName   xml.Name              `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeNetworkInterfacesResponse"`
		RequestID string                `xml:"requestId"`
		Items     []networkInterfaceXML `xml:"networkInterfaceSet>item"`
		NextToken string                `xml:"nextToken,omitempty"`
	}{RequestID: id, NextToken: next}
	for _, a := range some {
		x := networkInterfaceXML{ID: a.ID, Status: "available", Tags: tagsOf(a.Tags)}
		if a.AttachedTo != "" {
			x.Status, x.Attachment = "in-use", &attachmentXML{AttachmentID: "eni-attach-" + a.ID, InstanceID: a.AttachedTo, Status: "attached"}
		}
		out.Items = append(out.Items, x)
	}
	return out, nil
}

func describeVolumes(id string, all []Attachable, p page) (any, *failure) {
	some, next, f := of(p, all, attachableValues)
	if f != nil {
		return nil, f
	}
	out := struct {
		XMLName   xml.Name    `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeVolumesResponse"`
		RequestID string      `xml:"requestId"`
		Items     []volumeXML `xml:"volumeSet>item"`
		NextToken string      `xml:"nextToken,omitempty"`
	}{RequestID: id, NextToken: next}
	for _, a := range some {
		x := volumeXML{ID: a.ID, Status: "available", CreateTime: a.CreatedAt.UTC().Format(time.RFC3339), Tags: tagsOf(a.Tags)}
		if a.AttachedTo != "" {
			x.Status, x.Attachments = "in-use", []attachmentXML{{VolumeID: a.ID, InstanceID: a.AttachedTo, Status: "attached"}}
		}
		out.Items = append(out.Items, x)
	}
	return out, nil
}

// describeAddresses has no pages.
func describeAddresses(id string, all []Attachable, p page) (any, *failure) {
	p.size, p.from = len(all), 0
	some, _, f := of(p, all, attachableValues)
	if f != nil {
		return nil, f
	}
	out := struct {
		XMLName   xml.Name     `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeAddressesResponse"`
		RequestID string       `xml:"requestId"`
		Items     []addressXML `xml:"addressesSet>item"`
	}{RequestID: id}
	for i, a := range some {
		x := addressXML{PublicIP: "203.0.113." + string(rune('1'+i%9)), AllocationID: a.ID, Tags: tagsOf(a.Tags)}
		if a.AttachedTo != "" {
			x.AssociationID, x.InstanceID = "eipassoc-"+a.ID, a.AttachedTo
		}
		out.Items = append(out.Items, x)
	}
	return out, nil
}
