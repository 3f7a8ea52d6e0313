package aws

import (
	"net/netip"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// tagVM is the tag of an instance with the UID of its managed resource.
const tagVM = "drover-vm"

// tagName is the tag that the console of AWS shows as the name.
const tagName = "Name"

// stateNameOf returns the state of an instance in the words of EC2.
func stateNameOf(i types.Instance) types.InstanceStateName {
	if i.State == nil {
		return ""
	}
	return i.State.Name
}

// reasonOf returns the code of the reason for the state of an instance.
func reasonOf(i types.Instance) string {
	if i.StateReason == nil {
		return ""
	}
	return aws.ToString(i.StateReason.Code)
}

// textOf returns the state in the words of EC2, with its reason.
func textOf(i types.Instance) string {
	text := string(stateNameOf(i))
	if i.StateReason == nil {
		return text
	}
	if message := aws.ToString(i.StateReason.Message); message != "" { // It begins with the code.
		return text + ": " + message
	}
	if code := reasonOf(i); code != "" {
		return text + ": " + code
	}
	return text
}

// spotEnds are the reasons for which EC2 takes back a spot instance.
var spotEnds = []string{"Server.SpotInstanceTermination", "Server.SpotInstanceShutdown"}

func isSpot(i types.Instance) bool { return i.InstanceLifecycle == types.InstanceLifecycleTypeSpot }

// facts of an instance are those that its state depends on.
type facts struct {
	// finished reports whether the instance ran once.
	finished bool
	// created reports whether this provider created the instance. One that was adopted may be stopped.
	created bool
	// checks reports whether the instance shall have the source/destination check.
	checks bool
	// notice is the status of a spot request that EC2 is about to end. It is empty if there is none.
	notice string
}

// stateOf returns the state of an instance that is not terminated.
func stateOf(i types.Instance, f facts) native.State {
	switch name := stateNameOf(i); {
	case f.notice != "", isSpot(i) && name != types.InstanceStateNamePending && name != types.InstanceStateNameRunning:
		// A spot instance that was stopped starts again only when there is capacity, if ever.
		return native.StateFailed
	case name == types.InstanceStateNamePending:
		return native.StateCreating
	case name == types.InstanceStateNameShuttingDown:
		return native.StateDeleting
	case name == types.InstanceStateNameRunning && f.created && !f.finished && !f.checks && len(withCheck(i)) > 0:
		return native.StateIncomplete
	case name == types.InstanceStateNameRunning:
		return native.StateRunning
	}
	return native.StateStopped
}

// withCheck returns the network interfaces with the source/destination check.
func withCheck(i types.Instance) []string {
	var out []string
	for _, n := range i.NetworkInterfaces {
		if aws.ToBool(n.SourceDestCheck) {
			out = append(out, aws.ToString(n.NetworkInterfaceId))
		}
	}
	return out
}

func zoneOf(i types.Instance) string {
	if i.Placement == nil {
		return ""
	}
	return aws.ToString(i.Placement.AvailabilityZone)
}

// providerID returns the providerID that the cloud-controller-manager of AWS writes.
func providerID(i types.Instance) string {
	return "aws:///" + zoneOf(i) + "/" + aws.ToString(i.InstanceId)
}

// addressesOf returns the addresses that EC2 assigned to the instance, or nil if it shows none.
func addressesOf(i types.Instance) []nativev1alpha1.Address {
	var out []nativev1alpha1.Address
	add := func(kind string, text *string) {
		a, err := netip.ParseAddr(aws.ToString(text))
		if err != nil {
			return
		}
		address := nativev1alpha1.Address{Type: kind, Address: a.String()}
		if !slices.Contains(out, address) {
			out = append(out, address)
		}
	}
	add(nativev1alpha1.AddressInternal, i.PrivateIpAddress)
	for _, n := range i.NetworkInterfaces {
		for _, p := range n.PrivateIpAddresses {
			add(nativev1alpha1.AddressInternal, p.PrivateIpAddress)
		}
	}
	for _, n := range i.NetworkInterfaces {
		for _, v6 := range n.Ipv6Addresses {
			add(nativev1alpha1.AddressInternal, v6.Ipv6Address)
		}
	}
	add(nativev1alpha1.AddressExternal, i.PublicIpAddress)
	for _, n := range i.NetworkInterfaces {
		for _, p := range n.PrivateIpAddresses {
			if p.Association != nil {
				add(nativev1alpha1.AddressExternal, p.Association.PublicIp)
			}
		}
	}
	return out
}

// tagOf returns the value of a tag of an instance.
func tagOf(i types.Instance, key string) string {
	for _, t := range i.Tags {
		if aws.ToString(t.Key) == key {
			return aws.ToString(t.Value)
		}
	}
	return ""
}
