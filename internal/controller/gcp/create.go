package gcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"google.golang.org/api/compute/v1"
	"k8s.io/utils/ptr"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/apis/gcp/v1alpha1"
	cloudgcp "github.com/drover-dev/drover/internal/cloud/gcp"
	"github.com/drover-dev/drover/internal/native"
)

// Create starts the creation of the instance.
func (a *account) Create(ctx context.Context, vm *v1alpha1.VirtualMachine, userData native.UserData) error {
	id := vm.GetAnnotations()[v1alpha1.AnnotationRequestID]
	if id == "" {
		return &native.Error{Class: fn.ErrorTransient, Err: fmt.Errorf("the annotation %s must have the request ID", v1alpha1.AnnotationRequestID), Refused: true}
	}
	data, err := userData(ctx)
	if err != nil {
		return err
	}
	if len(data) > maxMetadata {
		return native.Invalid("userDataSecretRef", "the user data has %d bytes: at most %d are allowed", len(data), maxMetadata)
	}
	p, err := a.project(ctx)
	if err != nil {
		return native.Refused(err)
	}
	zone := ptr.Deref(vm.Spec.ForProvider.Zone, "")
	o, err := p.Service.Instances.Insert(p.ID, zone, instanceOf(p.ID, vm.Spec.ForProvider, meta.GetExternalName(vm), data)).RequestId(id).Context(ctx).Do()
	if hasStatus(err, http.StatusConflict) {
		return a.adopt(ctx, p, vm, zone, err)
	}
	if err != nil {
		return classify("cannot create the instance", err)
	}
	meta.AddAnnotations(vm, map[string]string{v1alpha1.AnnotationOperation: zone + "/" + o.Name})
	return nil
}

// adopt uses the instance that has the name already, if an earlier creation of the VM created it.
func (a *account) adopt(ctx context.Context, p *cloudgcp.Project, vm *v1alpha1.VirtualMachine, zone string, conflict error) error {
	name := ptr.Deref(vm.Spec.ForProvider.Name, "")
	i, err := p.Service.Instances.Get(p.ID, zone, name).Fields("id,labels").Context(ctx).Do()
	switch {
	case hasStatus(err, http.StatusNotFound):
		// It was just deleted, or the conflict is about another resource.
		return native.Refused(classify("cannot create the instance", conflict))
	case err != nil:
		return classify("cannot read the instance that has the name", err)
	case i.Labels[labelVM] != meta.GetExternalName(vm):
		return native.Invalid("name", "%q: zone %s has an instance of this name that was not created for this VM: delete it, or choose another name", name, zone)
	}
	return nil
}

// Continue starts an instance that stopped before it ran.
func (a *account) Continue(ctx context.Context, vm *v1alpha1.VirtualMachine, _ native.UserData) error {
	v := a.views.Recall(meta.GetExternalName(vm))
	if v.id == 0 {
		return &native.Error{Class: fn.ErrorTransient, Err: errors.New("the instance is not known"), Refused: true}
	}
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	_, err = p.Service.Instances.Start(p.ID, v.zone, v.number()).Context(ctx).Do()
	return classify("cannot start the instance", err)
}

// instanceOf returns the instance to create. It is always the same for the same spec and user data: a repeated
// request must equal the first one.
func instanceOf(project string, p v1alpha1.VirtualMachineParameters, uid, userData string) *compute.Instance {
	zone := ptr.Deref(p.Zone, "")
	labels := maps.Clone(p.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[labelVM] = uid
	i := &compute.Instance{
		Name:               ptr.Deref(p.Name, ""),
		MachineType:        "zones/" + zone + "/machineTypes/" + ptr.Deref(p.MachineType, ""),
		Description:        ptr.Deref(p.Description, ""),
		MinCpuPlatform:     ptr.Deref(p.MinCPUPlatform, ""),
		CanIpForward:       ptr.Deref(p.CanIPForward, false),
		Labels:             labels,
		Metadata:           metadataOf(p.Metadata, userData),
		Scheduling:         schedulingOf(p),
		Disks:              disksOf(project, zone, p, labels),
		NetworkInterfaces:  interfacesOf(project, zone, p.NetworkInterfaces),
		ResourcePolicies:   policiesOf(project, zone, p.ResourcePolicies),
		DeletionProtection: false,
		ForceSendFields:    []string{"DeletionProtection"},
	}
	if len(p.ResourceManagerTags) > 0 {
		i.Params = &compute.InstanceParams{ResourceManagerTags: p.ResourceManagerTags}
	}
	if len(p.NetworkTags) > 0 {
		i.Tags = &compute.Tags{Items: p.NetworkTags}
	}
	if s := p.ServiceAccount; s != nil {
		scopes := s.Scopes
		if len(scopes) == 0 {
			scopes = []string{compute.CloudPlatformScope}
		}
		i.ServiceAccounts = []*compute.ServiceAccount{{Email: s.Email, Scopes: scopes}}
	}
	if r := p.Reservation; r != nil {
		i.ReservationAffinity = &compute.ReservationAffinity{ConsumeReservationType: r.Type}
		if r.Name != nil {
			i.ReservationAffinity.Key, i.ReservationAffinity.Values = "compute.googleapis.com/reservation-name", []string{*r.Name}
		}
	}
	for _, g := range p.Accelerators {
		i.GuestAccelerators = append(i.GuestAccelerators, &compute.AcceleratorConfig{
			AcceleratorType: "zones/" + zone + "/acceleratorTypes/" + g.Type, AcceleratorCount: int64(g.Count),
		})
	}
	if s := p.Shielded; s != nil {
		i.ShieldedInstanceConfig = &compute.ShieldedInstanceConfig{
			EnableSecureBoot: ptr.Deref(s.SecureBoot, false), EnableVtpm: ptr.Deref(s.VTPM, true), EnableIntegrityMonitoring: ptr.Deref(s.IntegrityMonitoring, true),
			ForceSendFields: []string{"EnableSecureBoot", "EnableVtpm", "EnableIntegrityMonitoring"},
		}
	}
	if p.ConfidentialType != nil {
		i.ConfidentialInstanceConfig = &compute.ConfidentialInstanceConfig{EnableConfidentialCompute: true, ConfidentialInstanceType: *p.ConfidentialType}
	}
	if p.ThreadsPerCore != nil || p.NestedVirtualization != nil {
		i.AdvancedMachineFeatures = &compute.AdvancedMachineFeatures{
			ThreadsPerCore: int64(ptr.Deref(p.ThreadsPerCore, 0)), EnableNestedVirtualization: ptr.Deref(p.NestedVirtualization, false),
		}
	}
	return i
}

// metadataOf returns the metadata in the order of their keys.
func metadataOf(metadata map[string]string, userData string) *compute.Metadata {
	all := maps.Clone(metadata)
	if all == nil {
		all = map[string]string{}
	}
	if userData != "" {
		all[keyUserData] = userData
	}
	out := &compute.Metadata{}
	for _, k := range slices.Sorted(maps.Keys(all)) {
		out.Items = append(out.Items, &compute.MetadataItems{Key: k, Value: ptr.To(all[k])})
	}
	return out
}

// schedulingOf returns the scheduling of an instance, or nil for the defaults.
func schedulingOf(p v1alpha1.VirtualMachineParameters) *compute.Scheduling {
	if p.Spot == nil && p.Scheduling == nil {
		return nil
	}
	out := &compute.Scheduling{}
	if s := p.Scheduling; s != nil {
		out.AutomaticRestart, out.OnHostMaintenance, out.MinNodeCpus = s.AutomaticRestart, ptr.Deref(s.OnHostMaintenance, ""), int64(ptr.Deref(s.MinNodeCPUs, 0))
		for _, n := range s.NodeAffinities {
			out.NodeAffinities = append(out.NodeAffinities, &compute.SchedulingNodeAffinity{Key: n.Key, Operator: n.Operator, Values: n.Values})
		}
	}
	if s := p.Spot; s != nil {
		out.ProvisioningModel, out.AutomaticRestart, out.OnHostMaintenance = modelSpot, ptr.To(false), "TERMINATE"
		out.InstanceTerminationAction = ptr.Deref(s.TerminationAction, "STOP")
	}
	return out
}

// localSSD is the type of disks that are in the host of the instance.
const localSSD = "local-ssd"

// disksOf returns the boot disk and the further ones.
func disksOf(project, zone string, p v1alpha1.VirtualMachineParameters, labels map[string]string) []*compute.AttachedDisk {
	var out []*compute.AttachedDisk
	add := func(d v1alpha1.DiskParameters) *compute.AttachedDisk {
		a := &compute.AttachedDisk{AutoDelete: true, InitializeParams: &compute.AttachedDiskInitializeParams{}}
		out = append(out, a)
		n := a.InitializeParams
		if d.Type != nil {
			n.DiskType = "zones/" + zone + "/diskTypes/" + *d.Type
		}
		n.DiskSizeGb, n.ProvisionedIops, n.ProvisionedThroughput = int64(ptr.Deref(d.SizeGB, 0)), int64(ptr.Deref(d.IOPS, 0)), int64(ptr.Deref(d.ThroughputMiB, 0))
		if ptr.Deref(d.Type, "") == localSSD {
			a.Type = "SCRATCH"
			return a
		}
		n.Labels, n.ResourcePolicies, n.StoragePool = labels, policiesOf(project, zone, d.ResourcePolicies), ptr.Deref(d.StoragePool, "")
		n.EnableConfidentialCompute = ptr.Deref(d.Confidential, false)
		if d.KMSKeyName != nil {
			a.DiskEncryptionKey = &compute.CustomerEncryptionKey{KmsKeyName: *d.KMSKeyName}
		}
		return a
	}
	if b := p.BootDisk; b != nil {
		a := add(b.DiskParameters)
		a.Boot, a.InitializeParams.SourceImage = true, inProject(project, b.Image)
		for _, f := range b.GuestOSFeatures {
			a.GuestOsFeatures = append(a.GuestOsFeatures, &compute.GuestOsFeature{Type: f})
		}
	}
	for _, d := range p.Disks {
		a := add(d.DiskParameters)
		a.DeviceName, a.Interface = ptr.Deref(d.DeviceName, ""), ptr.Deref(d.Interface, "")
		if d.Image != nil {
			a.InitializeParams.SourceImage = inProject(project, *d.Image)
		}
		if d.Snapshot != nil {
			a.InitializeParams.SourceSnapshot = inProject(project, *d.Snapshot)
		}
		if ptr.Deref(d.Keep, false) {
			a.AutoDelete, a.ForceSendFields = false, []string{"AutoDelete"}
		}
	}
	return out
}

// inProject returns a path with its project.
func inProject(project, path string) string {
	if strings.HasPrefix(path, "projects/") {
		return path
	}
	return "projects/" + project + "/" + path
}

func interfacesOf(project, zone string, list []v1alpha1.NetworkInterface) []*compute.NetworkInterface {
	var out []*compute.NetworkInterface
	for _, n := range list {
		i := &compute.NetworkInterface{
			NetworkIP: ptr.Deref(n.Address, ""), StackType: ptr.Deref(n.StackType, ""), NicType: ptr.Deref(n.NICType, ""), QueueCount: int64(ptr.Deref(n.QueueCount, 0)),
		}
		if n.Network != nil {
			i.Network = qualified("projects/"+project+"/global/networks/", *n.Network)
		}
		if n.Subnetwork != nil {
			i.Subnetwork = qualified("projects/"+project+"/regions/"+regionOf(zone)+"/subnetworks/", *n.Subnetwork)
		}
		if e := n.ExternalAddress; e != nil {
			i.AccessConfigs = []*compute.AccessConfig{{Type: "ONE_TO_ONE_NAT", Name: "External NAT", NetworkTier: ptr.Deref(e.NetworkTier, "")}}
		}
		if ptr.Deref(n.ExternalIPv6, false) {
			i.Ipv6AccessConfigs = []*compute.AccessConfig{{Type: "DIRECT_IPV6", Name: "external-ipv6", NetworkTier: "PREMIUM"}}
		}
		for _, r := range n.AliasRanges {
			i.AliasIpRanges = append(i.AliasIpRanges, &compute.AliasIpRange{IpCidrRange: r.CIDR, SubnetworkRangeName: ptr.Deref(r.SubnetworkRange, "")})
		}
		out = append(out, i)
	}
	return out
}

// policiesOf returns the paths of resource policies.
func policiesOf(project, zone string, list []string) []string {
	var out []string
	for _, name := range list {
		out = append(out, qualified("projects/"+project+"/regions/"+regionOf(zone)+"/resourcePolicies/", name))
	}
	return out
}

// qualified returns a name that is no path with its prefix.
func qualified(prefix, name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return prefix + name
}
