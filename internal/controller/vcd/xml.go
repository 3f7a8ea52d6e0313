package vcd

import (
	"encoding/xml"
	"net/url"
	"path"
	"strings"
)

// Namespaces of the API.
const (
	nsVCloud = "http://www.vmware.com/vcloud/v1.5"
	nsOVF    = "http://schemas.dmtf.org/ovf/envelope/1"
	nsXSI    = "http://www.w3.org/2001/XMLSchema-instance"
)

// A reference refers to an object.
type reference struct {
	HREF string `xml:"href,attr,omitempty"`
	Name string `xml:"name,attr,omitempty"`
	Type string `xml:"type,attr,omitempty"`
}

// uuid returns the UUID at the end of the URL of the object, such as that of .../api/vApp/vm-UUID.
func (r reference) uuid() string { return uuidOf(r.HREF) }

// uuidLength is the length of a UUID.
const uuidLength = 36

// uuidOf returns the UUID at the end of a URL or a URN.
func uuidOf(ref string) string {
	if len(ref) < uuidLength {
		return ""
	}
	return strings.ToLower(ref[len(ref)-uuidLength:])
}

// pathOf returns the path of the URL of an object. The host in a URL is the public address of Cloud Director, which
// may differ from the one in the configuration: the token is sent to the latter only.
func pathOf(href string) string {
	u, err := url.Parse(href)
	if err != nil {
		return ""
	}
	return path.Clean("/" + u.Path)
}

// A link is an operation that the user may carry out.
type link struct {
	Rel string `xml:"rel,attr"`
	reference
}

// Types of the responses of queries. A query returns those attributes only that it requests.
type records struct {
	Total     int              `xml:"total,attr"`
	VMs       []record         `xml:"VMRecord"`
	VDCs      []reference      `xml:"OrgVdcRecord"`
	Templates []templateRecord `xml:"VAppTemplateRecord"`
}

// A record is a VM in a query.
type record struct {
	reference
	Description string   `xml:"description,attr"`
	Status      string   `xml:"status,attr"`
	VDC         string   `xml:"vdc,attr"`
	Created     string   `xml:"dateCreated,attr"`
	Metadata    metadata `xml:"Metadata"`
}

type templateRecord struct {
	reference
	Status string `xml:"status,attr"`
}

// metadata of a VM.
type metadata struct {
	Entries []metadataEntry `xml:"MetadataEntry"`
}

type metadataEntry struct {
	Key   string     `xml:"Key"`
	Value typedValue `xml:"TypedValue"`
}

type typedValue struct {
	Type  string `xml:"xsi:type,attr"`
	Value string `xml:"Value"`
}

// A newMetadata merges metadata into that of a VM.
type newMetadata struct {
	XMLName xml.Name        `xml:"Metadata"`
	Xmlns   string          `xml:"xmlns,attr"`
	Xsi     string          `xml:"xmlns:xsi,attr"`
	Entries []metadataEntry `xml:"MetadataEntry"`
}

// A task is a task of Cloud Director.
type task struct {
	reference
	Status    string       `xml:"status,attr"`
	Operation string       `xml:"operationName,attr"`
	Progress  int          `xml:"Progress"`
	Owner     reference    `xml:"Owner"`
	Error     errorElement `xml:"Error"`
}

// isRunning reports whether the task has not ended.
func (t task) isRunning() bool {
	return t.Status == "queued" || t.Status == "preRunning" || t.Status == "running"
}

// A vdc is a virtual data center.
type vdc struct {
	reference
	Enabled         bool        `xml:"IsEnabled"`
	Links           []link      `xml:"Link"`
	Networks        []reference `xml:"AvailableNetworks>Network"`
	StorageProfiles []reference `xml:"VdcStorageProfiles>VdcStorageProfile"`
}

// A vApp is a vApp or a vApp template.
type vApp struct {
	Status int       `xml:"status,attr"`
	Links  []link    `xml:"Link"`
	VMs    []machine `xml:"Children>Vm"`
}

// Statuses of VMs and vApps.
const (
	statusFailedCreation = -1
	statusSuspended      = 3
	statusPoweredOn      = 4
	statusPoweredOff     = 8
	statusPartlyOff      = 20
)

// statusText are the texts of statuses.
var statusText = map[int]string{
	statusFailedCreation: "FAILED_CREATION", 0: "UNRESOLVED", 1: "RESOLVED", 2: "DEPLOYED", statusSuspended: "SUSPENDED", statusPoweredOn: "POWERED_ON",
	5: "WAITING_FOR_INPUT", 6: "UNKNOWN", 7: "UNRECOGNIZED", statusPoweredOff: "POWERED_OFF", 9: "INCONSISTENT_STATE", 10: "MIXED",
	statusPartlyOff: "PARTIALLY_POWERED_OFF",
}

// A machine is a VM.
type machine struct {
	reference
	ID          string        `xml:"id,attr"`
	Status      int           `xml:"status,attr"`
	Deployed    bool          `xml:"deployed,attr"`
	Description string        `xml:"Description"`
	Links       []link        `xml:"Link"`
	Tasks       []task        `xml:"Tasks>Task"`
	Spec        spec          `xml:"VmSpecSection"`
	Networks    []connection  `xml:"NetworkConnectionSection>NetworkConnection"`
	Guest       customization `xml:"GuestCustomizationSection"`
}

// A spec is the hardware of a VM.
type spec struct {
	CPUs           int32         `xml:"NumCpus"`
	CoresPerSocket int32         `xml:"NumCoresPerSocket"`
	MemoryMiB      int64         `xml:"MemoryResourceMb>Configured"`
	Disks          []diskSetting `xml:"DiskSection>DiskSettings"`
}

// A diskSetting is a disk of a VM. A change has the settings of all disks.
type diskSetting struct {
	ID              string          `xml:"DiskId,omitempty"`
	SizeMiB         int64           `xml:"SizeMb"`
	Unit            int             `xml:"UnitNumber"`
	Bus             int             `xml:"BusNumber"`
	Adapter         string          `xml:"AdapterType"`
	ThinProvisioned *bool           `xml:"ThinProvisioned,omitempty"`
	Disk            *reference      `xml:"Disk,omitempty"`
	StorageProfile  *reference      `xml:"StorageProfile,omitempty"`
	OverridesVM     bool            `xml:"overrideVmDefault"`
	IOPS            *iopsAllocation `xml:"IopsAllocation,omitempty"`
}

type iopsAllocation struct {
	Reservation int64 `xml:"Reservation"`
}

// A connection is a network card.
type connection struct {
	Network       string `xml:"network,attr"`
	Index         int    `xml:"NetworkConnectionIndex"`
	IP            string `xml:"IpAddress,omitempty"`
	SecondaryIP   string `xml:"SecondaryIpAddress,omitempty"`
	ExternalIP    string `xml:"ExternalIpAddress,omitempty"`
	Connected     bool   `xml:"IsConnected"`
	MAC           string `xml:"MACAddress,omitempty"`
	Mode          string `xml:"IpAddressAllocationMode"`
	SecondaryMode string `xml:"SecondaryIpAddressAllocationMode,omitempty"`
	Adapter       string `xml:"NetworkAdapterType,omitempty"`
}

type connectionSection struct {
	Info        string       `xml:"ovf:Info"`
	Primary     int          `xml:"PrimaryNetworkConnectionIndex"`
	Connections []connection `xml:"NetworkConnection"`
}

// A customization is how Cloud Director configures the guest.
type customization struct {
	Info         string `xml:"ovf:Info"`
	Enabled      bool   `xml:"Enabled"`
	ComputerName string `xml:"ComputerName,omitempty"`
}

// An instantiation is the body of the request that creates a standalone VM.
type instantiation struct {
	XMLName       xml.Name       `xml:"InstantiateVmTemplateParams"`
	Xmlns         string         `xml:"xmlns,attr"`
	OVF           string         `xml:"xmlns:ovf,attr"`
	Name          string         `xml:"name,attr"`
	PowerOn       bool           `xml:"powerOn,attr"`
	Description   string         `xml:"Description"`
	Item          sourcedItem    `xml:"SourcedVmTemplateItem"`
	AcceptsEULAs  bool           `xml:"AllEULAsAccepted"`
	ComputePolicy *computePolicy `xml:"ComputePolicy,omitempty"`
}

type sourcedItem struct {
	Source         reference     `xml:"Source"`
	General        generalParams `xml:"VmGeneralParams"`
	Instantiation  instParams    `xml:"VmTemplateInstantiationParams"`
	StorageProfile *reference    `xml:"StorageProfile,omitempty"`
}

type generalParams struct {
	Name               string `xml:"Name"`
	Description        string `xml:"Description"`
	NeedsCustomization bool   `xml:"NeedsCustomization"`
	RegenerateBIOSUUID bool   `xml:"RegenerateBiosUuid"`
}

type instParams struct {
	Networks connectionSection `xml:"NetworkConnectionSection"`
}

type computePolicy struct {
	Placement *reference `xml:"VmPlacementPolicy,omitempty"`
	Sizing    *reference `xml:"VmSizingPolicy,omitempty"`
}

// A reconfiguration is the body of a request that changes a VM. A section that it lacks stays.
type reconfiguration struct {
	XMLName     xml.Name       `xml:"Vm"`
	Xmlns       string         `xml:"xmlns,attr"`
	OVF         string         `xml:"xmlns:ovf,attr"`
	Name        string         `xml:"name,attr"`
	Description string         `xml:"Description"`
	Spec        *newSpec       `xml:"VmSpecSection,omitempty"`
	Guest       *customization `xml:"GuestCustomizationSection,omitempty"`
}

type newSpec struct {
	Modified       bool         `xml:"Modified,attr"`
	Info           string       `xml:"ovf:Info"`
	CPUs           *int32       `xml:"NumCpus,omitempty"`
	CoresPerSocket *int32       `xml:"NumCoresPerSocket,omitempty"`
	Memory         *newMemory   `xml:"MemoryResourceMb,omitempty"`
	Disks          *diskSection `xml:"DiskSection,omitempty"`
}

type newMemory struct {
	Configured int64 `xml:"Configured"`
}

type diskSection struct {
	Settings []diskSetting `xml:"DiskSettings"`
}

// productSections are the guest properties of a VM.
type productSections struct {
	XMLName xml.Name       `xml:"ProductSectionList"`
	Xmlns   string         `xml:"xmlns,attr"`
	OVF     string         `xml:"xmlns:ovf,attr"`
	Section productSection `xml:"ovf:ProductSection"`
}

type productSection struct {
	Info       string     `xml:"ovf:Info"`
	Properties []property `xml:"ovf:Property"`
}

type property struct {
	Key              string        `xml:"ovf:key,attr"`
	Type             string        `xml:"ovf:type,attr"`
	UserConfigurable bool          `xml:"ovf:userConfigurable,attr"`
	Label            string        `xml:"ovf:Label"`
	Value            propertyValue `xml:"ovf:Value"`
}

type propertyValue struct {
	Value string `xml:"ovf:value,attr"`
}

// An undeployment powers off a VM and releases its resources.
type undeployment struct {
	XMLName xml.Name `xml:"UndeployVAppParams"`
	Xmlns   string   `xml:"xmlns,attr"`
	Action  string   `xml:"UndeployPowerAction"`
}

// A detachment detaches a named disk from a VM.
type detachment struct {
	XMLName xml.Name  `xml:"DiskAttachOrDetachParams"`
	Xmlns   string    `xml:"xmlns,attr"`
	Disk    reference `xml:"Disk"`
}
