package vcd

import (
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Namespaces.
const (
	nsVCloud = "http://www.vmware.com/vcloud/v1.5"
	nsOVF    = "http://schemas.dmtf.org/ovf/envelope/1"
	nsXSI    = "http://www.w3.org/2001/XMLSchema-instance"
)

// Statuses of VMs and vApps.
const (
	failedCreation = -1
	unresolved     = 0
	poweredOn      = 4
	poweredOff     = 8
)

var statusTexts = map[int]string{failedCreation: "FAILED_CREATION", unresolved: "UNRESOLVED", poweredOn: "POWERED_ON", poweredOff: "POWERED_OFF"}

// Elements of requests. A tag with a namespace requires it.
type (
	requestInstantiate struct {
		XMLName     xml.Name `xml:"http://www.vmware.com/vcloud/v1.5 InstantiateVmTemplateParams"`
		Name        string   `xml:"name,attr"`
		PowerOn     bool     `xml:"powerOn,attr"`
		Description string   `xml:"http://www.vmware.com/vcloud/v1.5 Description"`
		Item        *struct {
			Source  requestRef `xml:"http://www.vmware.com/vcloud/v1.5 Source"`
			General struct {
				Name        string `xml:"http://www.vmware.com/vcloud/v1.5 Name"`
				Description string `xml:"http://www.vmware.com/vcloud/v1.5 Description"`
			} `xml:"http://www.vmware.com/vcloud/v1.5 VmGeneralParams"`
			Networks *struct {
				Info        string           `xml:"http://schemas.dmtf.org/ovf/envelope/1 Info"`
				Connections []requestNetwork `xml:"http://www.vmware.com/vcloud/v1.5 NetworkConnection"`
			} `xml:"VmTemplateInstantiationParams>NetworkConnectionSection"`
			StorageProfile *requestRef `xml:"http://www.vmware.com/vcloud/v1.5 StorageProfile"`
		} `xml:"http://www.vmware.com/vcloud/v1.5 SourcedVmTemplateItem"`
		EULAs  bool `xml:"http://www.vmware.com/vcloud/v1.5 AllEULAsAccepted"`
		Policy struct {
			Placement *requestRef `xml:"http://www.vmware.com/vcloud/v1.5 VmPlacementPolicy"`
			Sizing    *requestRef `xml:"http://www.vmware.com/vcloud/v1.5 VmSizingPolicy"`
		} `xml:"http://www.vmware.com/vcloud/v1.5 ComputePolicy"`
	}
	requestRef struct {
		HREF string `xml:"href,attr"`
	}
	requestNetwork struct {
		Network   string `xml:"network,attr"`
		Index     int    `xml:"NetworkConnectionIndex"`
		Connected bool   `xml:"IsConnected"`
		Mode      string `xml:"IpAddressAllocationMode"`
		Secondary string `xml:"SecondaryIpAddressAllocationMode"`
		Adapter   string `xml:"NetworkAdapterType"`
	}
	requestVM struct {
		XMLName     xml.Name `xml:"http://www.vmware.com/vcloud/v1.5 Vm"`
		Name        string   `xml:"name,attr"`
		Description string   `xml:"Description"`
		Spec        *struct {
			Modified bool         `xml:"Modified,attr"`
			CPUs     *int         `xml:"NumCpus"`
			Cores    *int         `xml:"NumCoresPerSocket"`
			Memory   *int64       `xml:"MemoryResourceMb>Configured"`
			Disks    *requestDisk `xml:"DiskSection"`
		} `xml:"http://www.vmware.com/vcloud/v1.5 VmSpecSection"`
		Guest *struct {
			Enabled      bool   `xml:"Enabled"`
			ComputerName string `xml:"ComputerName"`
		} `xml:"http://www.vmware.com/vcloud/v1.5 GuestCustomizationSection"`
	}
	requestDisk struct {
		Settings []struct {
			ID      string      `xml:"DiskId"`
			Size    int64       `xml:"SizeMb"`
			Unit    int         `xml:"UnitNumber"`
			Bus     int         `xml:"BusNumber"`
			Adapter string      `xml:"AdapterType"`
			Named   *requestRef `xml:"Disk"`
			Profile *requestRef `xml:"StorageProfile"`
			IOPS    int64       `xml:"IopsAllocation>Reservation"`
		} `xml:"DiskSettings"`
	}
	requestProducts struct {
		XMLName    xml.Name `xml:"http://www.vmware.com/vcloud/v1.5 ProductSectionList"`
		Properties []struct {
			Key   string `xml:"http://schemas.dmtf.org/ovf/envelope/1 key,attr"`
			Type  string `xml:"http://schemas.dmtf.org/ovf/envelope/1 type,attr"`
			Value struct {
				Value string `xml:"http://schemas.dmtf.org/ovf/envelope/1 value,attr"`
			} `xml:"http://schemas.dmtf.org/ovf/envelope/1 Value"`
		} `xml:"ProductSection>Property"`
	}
	requestMetadata struct {
		XMLName xml.Name `xml:"http://www.vmware.com/vcloud/v1.5 Metadata"`
		Entries []struct {
			Key   string `xml:"Key"`
			Value struct {
				Type  string `xml:"http://www.w3.org/2001/XMLSchema-instance type,attr"`
				Value string `xml:"Value"`
			} `xml:"TypedValue"`
		} `xml:"MetadataEntry"`
	}
	requestUndeploy struct {
		XMLName xml.Name `xml:"http://www.vmware.com/vcloud/v1.5 UndeployVAppParams"`
		Action  string   `xml:"UndeployPowerAction"`
	}
	requestDetach struct {
		XMLName xml.Name   `xml:"http://www.vmware.com/vcloud/v1.5 DiskAttachOrDetachParams"`
		Disk    requestRef `xml:"Disk"`
	}
)

// Elements of responses.
type (
	xmlError struct {
		XMLName xml.Name `xml:"Error"`
		Xmlns   string   `xml:"xmlns,attr"`
		Message string   `xml:"message,attr"`
		Major   int      `xml:"majorErrorCode,attr"`
		Minor   string   `xml:"minorErrorCode,attr"`
	}
	xmlRef struct {
		HREF string `xml:"href,attr"`
		Name string `xml:"name,attr,omitempty"`
		Type string `xml:"type,attr,omitempty"`
	}
	xmlLink struct {
		Rel string `xml:"rel,attr"`
		xmlRef
	}
	xmlTask struct {
		XMLName   xml.Name  `xml:"Task"`
		Xmlns     string    `xml:"xmlns,attr,omitempty"`
		HREF      string    `xml:"href,attr"`
		Status    string    `xml:"status,attr"`
		Operation string    `xml:"operationName,attr"`
		Owner     xmlRef    `xml:"Owner"`
		Error     *xmlError `xml:"Error,omitempty"`
		Progress  int       `xml:"Progress"`
	}
	xmlRecords struct {
		XMLName  xml.Name `xml:"QueryResultRecords"`
		Xmlns    string   `xml:"xmlns,attr"`
		Xsi      string   `xml:"xmlns:xsi,attr"`
		Total    int      `xml:"total,attr"`
		PageSize int      `xml:"pageSize,attr"`
		Page     int      `xml:"page,attr"`
		Name     string   `xml:"name,attr"`
		Records  []xmlRecord
	}
	xmlRecord struct {
		XMLName    xml.Name
		Attributes []xml.Attr   `xml:",any,attr"`
		Metadata   *xmlMetadata `xml:"Metadata,omitempty"`
	}
	xmlMetadata struct {
		Entries []xmlEntry `xml:"MetadataEntry"`
	}
	xmlEntry struct {
		Key   string   `xml:"Key"`
		Value xmlTyped `xml:"TypedValue"`
	}
	xmlTyped struct {
		Type  string `xml:"xsi:type,attr"`
		Value string `xml:"Value"`
	}
	xmlVDC struct {
		XMLName  xml.Name  `xml:"Vdc"`
		Xmlns    string    `xml:"xmlns,attr"`
		HREF     string    `xml:"href,attr"`
		Name     string    `xml:"name,attr"`
		Links    []xmlLink `xml:"Link"`
		Networks []xmlRef  `xml:"AvailableNetworks>Network"`
		Enabled  bool      `xml:"IsEnabled"`
		Profiles []xmlRef  `xml:"VdcStorageProfiles>VdcStorageProfile"`
	}
	xmlVApp struct {
		XMLName xml.Name  `xml:"VApp"`
		Xmlns   string    `xml:"xmlns,attr"`
		HREF    string    `xml:"href,attr"`
		Name    string    `xml:"name,attr"`
		Status  int       `xml:"status,attr"`
		Links   []xmlLink `xml:"Link"`
		VMs     []xmlVM   `xml:"Children>Vm"`
	}
	xmlVM struct {
		XMLName     xml.Name  `xml:"Vm"`
		Xmlns       string    `xml:"xmlns,attr,omitempty"`
		OVF         string    `xml:"xmlns:ovf,attr,omitempty"`
		HREF        string    `xml:"href,attr"`
		ID          string    `xml:"id,attr"`
		Name        string    `xml:"name,attr"`
		Status      int       `xml:"status,attr"`
		Deployed    bool      `xml:"deployed,attr"`
		Links       []xmlLink `xml:"Link"`
		Description string    `xml:"Description"`
		Tasks       *xmlTasks `xml:"Tasks,omitempty"`
		Networks    []xmlNIC  `xml:"NetworkConnectionSection>NetworkConnection"`
		Guest       xmlGuest  `xml:"GuestCustomizationSection"`
		Spec        xmlSpec   `xml:"VmSpecSection"`
	}
	xmlTasks struct {
		Tasks []xmlTask `xml:"Task"`
	}
	xmlNIC struct {
		Network   string `xml:"network,attr"`
		Index     int    `xml:"NetworkConnectionIndex"`
		V4        string `xml:"IpAddress,omitempty"`
		V6        string `xml:"SecondaryIpAddress,omitempty"`
		Connected bool   `xml:"IsConnected"`
		MAC       string `xml:"MACAddress"`
		Mode      string `xml:"IpAddressAllocationMode"`
		Secondary string `xml:"SecondaryIpAddressAllocationMode,omitempty"`
		Adapter   string `xml:"NetworkAdapterType"`
	}
	xmlGuest struct {
		Info         string `xml:"ovf:Info"`
		Enabled      bool   `xml:"Enabled"`
		ComputerName string `xml:"ComputerName"`
	}
	xmlSpec struct {
		Info   string    `xml:"ovf:Info"`
		CPUs   int       `xml:"NumCpus"`
		Cores  int       `xml:"NumCoresPerSocket"`
		Memory int64     `xml:"MemoryResourceMb>Configured"`
		Disks  []xmlDisk `xml:"DiskSection>DiskSettings"`
	}
	xmlDisk struct {
		ID      string  `xml:"DiskId"`
		Size    int64   `xml:"SizeMb"`
		Unit    int     `xml:"UnitNumber"`
		Bus     int     `xml:"BusNumber"`
		Adapter string  `xml:"AdapterType"`
		Thin    bool    `xml:"ThinProvisioned"`
		Named   *xmlRef `xml:"Disk,omitempty"`
	}
)

func (c *call) taskXML(t *task) xmlTask {
	out := xmlTask{Xmlns: nsVCloud, HREF: c.base + "/api/task/" + t.id, Operation: t.operation, Owner: xmlRef{HREF: c.base + "/api/vApp/vm-" + t.vm.id, Type: "application/vnd.vmware.vcloud.vm+xml"}}
	if t.operation == operationCreate || t.operation == operationDeleteVApp {
		out.Owner = xmlRef{HREF: c.base + "/api/vApp/vapp-" + t.vApp.id, Type: "application/vnd.vmware.vcloud.vApp+xml"}
	}
	switch {
	case !t.ended && c.now.Before(t.runsAt):
		out.Status = "queued"
	case !t.ended:
		out.Status, out.Progress = "running", 50
	case t.failure != nil:
		out.Status, out.Error = "error", &xmlError{Message: "[ " + uuid.NewString() + " ] " + t.failure.Text, Major: http.StatusBadRequest, Minor: t.failure.Code}
	default:
		out.Status, out.Progress = "success", 100
	}
	return out
}

func (c *call) vdcXML(v *vdc) xmlVDC {
	out := xmlVDC{Xmlns: nsVCloud, HREF: c.base + "/api/vdc/" + v.id, Name: v.name, Enabled: !v.disabled}
	if !c.user.ReadOnly {
		out.Links = append(out.Links, xmlLink{Rel: "add", xmlRef: xmlRef{HREF: out.HREF + "/action/instantiateVmTemplate", Type: "application/vnd.vmware.vcloud.instantiateVmTemplateParams+xml"}})
	}
	for _, name := range slices.Sorted(maps.Keys(v.networks)) {
		out.Networks = append(out.Networks, xmlRef{HREF: c.base + "/api/network/" + v.networks[name], Name: name})
	}
	for _, name := range slices.Sorted(maps.Keys(v.profiles)) {
		out.Profiles = append(out.Profiles, xmlRef{HREF: c.base + "/api/vdcStorageProfile/" + v.profiles[name], Name: name})
	}
	return out
}

func (c *call) vmXML(m *vm) xmlVM {
	out := xmlVM{
		Xmlns: nsVCloud, OVF: nsOVF, HREF: c.base + "/api/vApp/vm-" + m.id, ID: "urn:vcloud:vm:" + m.id, Name: m.name, Status: m.status, Deployed: m.deployed,
		Description: m.description, Links: []xmlLink{{Rel: "up", xmlRef: xmlRef{HREF: c.base + "/api/vApp/vapp-" + m.vApp.id, Type: "application/vnd.vmware.vcloud.vApp+xml"}}},
		Guest: xmlGuest{Info: "Guest", Enabled: m.customized, ComputerName: m.computerName},
		Spec:  xmlSpec{Info: "Spec", CPUs: m.cpus, Cores: m.cores, Memory: m.memory},
	}
	for i, n := range m.nics {
		out.Networks = append(out.Networks, xmlNIC{Network: n.network, Index: i, V4: n.v4, V6: n.v6, Connected: true, MAC: n.mac, Mode: n.mode, Secondary: n.secondaryMode, Adapter: n.adapter})
	}
	for _, k := range m.disks {
		d := xmlDisk{ID: k.id, Size: k.size, Unit: k.unit, Bus: k.bus, Adapter: k.adapter, Thin: true}
		if k.named != "" {
			d.Named = &xmlRef{HREF: c.base + "/api/disk/" + k.named}
		}
		out.Spec.Disks = append(out.Spec.Disks, d)
	}
	if t := c.running(m); t != nil {
		x := c.taskXML(t)
		x.Xmlns = ""
		out.Tasks = &xmlTasks{Tasks: []xmlTask{x}}
	}
	return out
}

// running returns the task that changes a VM, or nil.
func (c *call) running(m *vm) *task {
	for _, t := range c.tasks {
		if t.vm == m && !t.ended {
			return t
		}
	}
	return nil
}

func (c *call) getTemplate(id string) (result, *failure) {
	t := c.org.templates[id]
	if t == nil {
		return result{}, noEntity("vapptemplate", id)
	}
	out := xmlVApp{XMLName: xml.Name{Local: "VAppTemplate"}, Xmlns: nsVCloud, HREF: c.base + "/api/vAppTemplate/vappTemplate-" + t.id, Name: t.name, Status: poweredOff}
	for _, id := range t.vms {
		out.VMs = append(out.VMs, xmlVM{
			OVF: nsOVF, HREF: c.base + "/api/vAppTemplate/vm-" + id, ID: "urn:vcloud:vm:" + id, Name: t.name,
			Spec: xmlSpec{CPUs: 1, Cores: 1, Memory: gib, Disks: []xmlDisk{{ID: "2000", Size: t.diskMiB, Adapter: "5"}}},
		})
	}
	return ok(out)
}

const (
	operationDeleteVApp = "vdcDeleteVapp"
	operationDeleteVM   = "vappDeleteVm"
)

// accept starts a task, unless the user has too many.
func (c *call) accept(operation string, m *vm, takes time.Duration, done func(time.Time) *Message) (result, *failure) {
	if c.user.ReadOnly {
		return result{}, noRight(strings.ToUpper(operation))
	}
	if t := c.running(m); t != nil {
		return result{}, fail(http.StatusBadRequest, "BUSY_ENTITY", "The entity Ref: com.vmware.vcloud.entity.vm:%s is busy completing an operation %s. %s(com.vmware.vcloud.entity.task:%s)", m.id, t.operation, t.operation, t.id)
	}
	if c.opts.Operations > 0 {
		n := 0
		for _, t := range c.tasks {
			if !t.ended && t.org == c.org && t.user == c.name {
				n++
			}
		}
		if n >= c.opts.Operations {
			return result{}, fail(http.StatusBadRequest, "OPERATION_LIMITS_EXCEEDED", "The maximum number of simultaneous operations for user %q on organization %q has been reached.", c.name, c.org.name)
		}
	}
	t := c.begin(c, operation, m, takes, done)
	return result{status: http.StatusAccepted, body: c.taskXML(t)}, nil
}

// create starts the creation of a standalone VM.
func (c *call) create(vdcID string) (result, *failure) {
	v := c.org.vdcs[vdcID]
	if v == nil {
		return result{}, noEntity("vdc", vdcID)
	}
	var r requestInstantiate
	if problem := c.decode("instantiateVmTemplateParams", &r); problem != nil {
		return result{}, problem
	}
	if r.Item == nil || r.Name == "" {
		return result{}, badRequest("Bad request: the name or the source is missing.")
	}
	var source *template
	for _, t := range c.org.templates {
		if slices.ContainsFunc(t.vms, func(id string) bool { return strings.HasSuffix(r.Item.Source.HREF, "/vm-"+id) }) {
			source = t
		}
	}
	if source == nil {
		return result{}, noEntity("vm", r.Item.Source.HREF)
	}
	m := &vm{
		id: uuid.NewString(), name: r.Item.General.Name, description: r.Item.General.Description, created: c.now, cpus: 1, cores: 1, memory: gib,
		disks: []disk{{id: "2000", size: source.diskMiB, adapter: "5"}}, metadata: map[string]string{}, properties: map[string]string{}, profile: "gold",
	}
	if problem := m.configure(v, r); problem != nil {
		return result{}, problem
	}
	m.disks[0].profile = m.profile
	a := &vApp{id: uuid.NewString(), name: r.Name + "-" + uuid.NewString(), org: c.org, vdc: v, owner: c.name, created: c.now}
	m.vApp = a
	out, problem := c.accept(operationCreate, m, c.opts.Step+c.opts.CreateTakes, func(time.Time) *Message {
		m.status, a.status = poweredOff, poweredOff
		return nil
	})
	if problem != nil {
		return out, problem
	}
	c.vApps[a.id] = a
	// A failed creation leaves the vApp alone.
	for _, t := range c.tasks {
		if t.vm == m && t.failure != nil {
			return out, nil
		}
	}
	c.vms[m.id] = m
	return out, nil
}

// configure sets the parts of a VM that its creation sets.
func (m *vm) configure(v *vdc, r requestInstantiate) *failure {
	if r.Item.Networks != nil {
		for i, n := range r.Item.Networks.Connections {
			_, exists := v.networks[n.Network]
			switch {
			case !exists:
				return badRequest("The network %q does not exist in the virtual data center.", n.Network)
			case n.Index != i || n.Mode != "DHCP" && n.Mode != "POOL":
				return badRequest("The network connection %d is not valid.", i)
			}
			m.nics = append(m.nics, nic{network: n.Network, mode: n.Mode, secondaryMode: n.Secondary, adapter: n.Adapter, mac: fmt.Sprintf("00:50:56:%s:%s:%02x", m.id[:2], m.id[2:4], i)})
		}
	}
	if ref := r.Item.StorageProfile; ref != nil {
		if m.profile = nameOf(v.profiles, ref.HREF); m.profile == "" {
			return badRequest("The storage profile does not exist in the virtual data center.")
		}
	}
	for _, p := range []struct {
		ref    *requestRef
		sizing bool
		to     *string
	}{{r.Policy.Sizing, true, &m.sizing}, {r.Policy.Placement, false, &m.placement}} {
		if p.ref == nil {
			continue
		}
		i := slices.IndexFunc(v.policies, func(q computePolicy) bool {
			return q.IsSizingOnly == p.sizing && strings.HasSuffix(p.ref.HREF, "/vdcComputePolicies/"+q.ID)
		})
		if i < 0 {
			return badRequest("The compute policy %s does not exist in the virtual data center.", p.ref.HREF)
		}
		*p.to = v.policies[i].Name
		if p.sizing {
			m.cpus, m.memory = v.policies[i].cpus, v.policies[i].memory
		}
	}
	return nil
}

func nameOf(ids map[string]string, href string) string {
	for name, id := range ids {
		if strings.HasSuffix(href, "/"+id) {
			return name
		}
	}
	return ""
}

func (c *call) routeVApp(id string) (result, *failure) {
	a := c.vApps[id]
	if a == nil || !c.sees(a) {
		return result{}, noEntity("vapp", id)
	}
	m := a.vm(c.Director)
	switch c.method {
	case http.MethodGet:
		out := xmlVApp{
			Xmlns: nsVCloud, HREF: c.base + "/api/vApp/vapp-" + a.id, Name: a.name, Status: a.status,
			Links: []xmlLink{{Rel: "up", xmlRef: xmlRef{HREF: c.base + "/api/vdc/" + a.vdc.id, Type: "application/vnd.vmware.vcloud.vdc+xml"}}},
		}
		if m != nil {
			out.VMs = []xmlVM{c.vmXML(m)}
		}
		return ok(out)
	case http.MethodDelete:
		if m == nil {
			m = &vm{id: uuid.NewString(), name: a.name, vApp: a}
		}
		if m.deployed {
			return result{}, badRequest("The requested operation could not be executed since vApp %q is running", a.name)
		}
		return c.accept(operationDeleteVApp, m, c.opts.Step, func(time.Time) *Message {
			delete(c.vApps, a.id)
			delete(c.vms, m.id)
			return nil
		})
	}
	return result{}, fail(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", "Method not allowed")
}

func (c *call) routeVM(id, action string) (result, *failure) {
	m := c.vms[id]
	if m == nil || !c.sees(m.vApp) {
		return result{}, noEntity("vm", id)
	}
	switch c.method + " " + action {
	case "GET ":
		return ok(c.vmXML(m))
	case "DELETE ":
		return c.deleteVM(m)
	case "POST action/reconfigureVm":
		return c.reconfigure(m)
	case "PUT productSections":
		return c.setProperties(m)
	case "POST metadata":
		return c.mergeMetadata(m)
	case "POST power/action/powerOn":
		if m.status != poweredOff {
			return result{}, badRequest("The requested operation could not be executed on VM %q. Stop the VM and try again.", m.name)
		}
		return c.accept(OperationPowerOn, m, c.opts.Step, func(time.Time) *Message {
			if m.ran {
				m.reboots = append(m.reboots, Hard)
			}
			m.ran = true
			c.boot(m)
			return nil
		})
	case "POST power/action/reboot":
		return c.restart(m, OperationReboot, Soft)
	case "POST power/action/reset":
		return c.restart(m, OperationReset, Hard)
	case "POST action/undeploy":
		return c.undeploy(m)
	case "POST disk/action/detach":
		return c.detach(m)
	}
	return result{}, fail(http.StatusNotFound, "RESOURCE_NOT_FOUND", "%s is not found.", action)
}

// restart reboots or resets a VM that is powered on.
func (c *call) restart(m *vm, operation, mode string) (result, *failure) {
	if m.status != poweredOn {
		return result{}, badRequest("The requested operation could not be executed since VM %q is not powered on.", m.name)
	}
	return c.accept(operation, m, c.opts.Step, func(time.Time) *Message {
		switch {
		case mode == Soft && m.lacksTools:
			return &Message{Code: "VC_OPERATION_ERROR", Text: "null\n - Cannot complete operation because VMware Tools is not running in this virtual machine."}
		case m.status != poweredOn:
			return &Message{Code: "VC_OPERATION_ERROR", Text: "The attempted operation cannot be performed in the current state (Powered off)."}
		}
		m.reboots = append(m.reboots, mode)
		if m.booted && c.opts.Reboot != nil {
			b := m.asBooted()
			c.mu.Later(func() { c.opts.Reboot(b) })
		}
		return nil
	})
}

func (c *call) deleteVM(m *vm) (result, *failure) {
	switch {
	case m.deployed:
		return result{}, badRequest("The requested operation could not be executed on VM %q. Stop the VM and try again.", m.name)
	case slices.ContainsFunc(m.disks, func(k disk) bool { return k.named != "" }):
		return result{}, badRequest("The VM %q has attached named disks. Detach them first.", m.name)
	}
	return c.accept(operationDeleteVM, m, c.opts.Step, func(time.Time) *Message {
		delete(c.vms, m.id)
		delete(c.vApps, m.vApp.id)
		return nil
	})
}

func (c *call) reconfigure(m *vm) (result, *failure) {
	var r requestVM
	if problem := c.decode("vm", &r); problem != nil {
		return result{}, problem
	}
	if m.status != poweredOff {
		return result{}, badRequest("The VM %q must be powered off.", m.name)
	}
	changed := *m
	changed.name, changed.description = r.Name, r.Description
	if r.Guest != nil {
		changed.customized, changed.computerName = r.Guest.Enabled, r.Guest.ComputerName
	}
	if s := r.Spec; s != nil {
		if !s.Modified {
			return result{}, badRequest("The section is not modified.")
		}
		if s.CPUs != nil {
			changed.cpus = *s.CPUs
		}
		if s.Cores != nil {
			changed.cores = *s.Cores
		}
		if s.Memory != nil {
			changed.memory = *s.Memory
		}
		if changed.cpus%changed.cores != 0 {
			return result{}, badRequest("The number of CPUs %d is not a multiple of the number of cores per socket %d.", changed.cpus, changed.cores)
		}
		if s.Disks != nil {
			var problem *failure
			if changed.disks, problem = m.newDisks(*s.Disks); problem != nil {
				return result{}, problem
			}
		}
	}
	return c.accept("vappUpdateVm", m, c.opts.Step, func(time.Time) *Message {
		m.name, m.description, m.customized, m.computerName = changed.name, changed.description, changed.customized, changed.computerName
		m.cpus, m.cores, m.memory, m.disks = changed.cpus, changed.cores, changed.memory, changed.disks
		return nil
	})
}

// newDisks returns the disks of a change. A disk that the change lacks is deleted.
func (m *vm) newDisks(r requestDisk) ([]disk, *failure) {
	var out []disk
	units := map[[2]int]bool{}
	for i, s := range r.Settings {
		k := disk{id: fmt.Sprint(2000 + i), profile: m.profile}
		if s.ID != "" {
			j := slices.IndexFunc(m.disks, func(k disk) bool { return k.id == s.ID })
			if j < 0 {
				return nil, badRequest("The disk %s does not exist.", s.ID)
			}
			k = m.disks[j]
		}
		if s.Size < k.size {
			return nil, badRequest("The size of disk %s cannot be reduced from %d to %d.", s.ID, k.size, s.Size)
		}
		if s.Profile != nil {
			if k.profile = nameOf(m.vApp.vdc.profiles, s.Profile.HREF); k.profile == "" {
				return nil, badRequest("The storage profile does not exist.")
			}
		}
		k.size, k.unit, k.bus, k.adapter, k.iops = s.Size, s.Unit, s.Bus, s.Adapter, s.IOPS
		if at := [2]int{k.bus, k.unit}; units[at] || k.unit == 7 {
			return nil, badRequest("The unit number %d of bus %d is not available.", k.unit, k.bus)
		}
		units[[2]int{k.bus, k.unit}] = true
		out = append(out, k)
	}
	return out, nil
}

func (c *call) setProperties(m *vm) (result, *failure) {
	var r requestProducts
	if problem := c.decode("productSections", &r); problem != nil {
		return result{}, problem
	}
	properties := map[string]string{}
	for _, p := range r.Properties {
		if p.Key == "" || p.Type != "string" {
			return result{}, badRequest("The property %q is not valid.", p.Key)
		}
		properties[p.Key] = p.Value.Value
	}
	return c.accept("vappUpdateVm", m, c.opts.Step, func(time.Time) *Message { m.properties = properties; return nil })
}

func (c *call) mergeMetadata(m *vm) (result, *failure) {
	var r requestMetadata
	if problem := c.decode("metadata", &r); problem != nil {
		return result{}, problem
	}
	for _, e := range r.Entries {
		if e.Key == "" || len(e.Key) > 256 || e.Value.Type != "MetadataStringValue" || len(e.Value.Value) > 1000 {
			return result{}, badRequest("The metadata entry %q is not valid.", e.Key)
		}
	}
	return c.accept("metadataUpdate", m, c.opts.Step, func(time.Time) *Message {
		for _, e := range r.Entries {
			m.metadata[e.Key] = e.Value.Value
		}
		return nil
	})
}

func (c *call) undeploy(m *vm) (result, *failure) {
	var r requestUndeploy
	if problem := c.decode("undeployVAppParams", &r); problem != nil {
		return result{}, problem
	}
	if !m.deployed || r.Action != "powerOff" {
		return result{}, badRequest("The requested operation could not be executed on VM %q, which is not running.", m.name)
	}
	return c.accept("vappUndeployPowerOff", m, c.opts.Step, func(time.Time) *Message {
		c.halt(m)
		m.deployed = false
		return nil
	})
}

func (c *call) detach(m *vm) (result, *failure) {
	var r requestDetach
	if problem := c.decode("diskAttachOrDetachParams", &r); problem != nil {
		return result{}, problem
	}
	i := slices.IndexFunc(m.disks, func(k disk) bool { return k.named != "" && strings.HasSuffix(r.Disk.HREF, "/"+k.named) })
	if i < 0 {
		return result{}, badRequest("The disk is not attached to VM %q.", m.name)
	}
	return c.accept("vappDetachDisk", m, c.opts.Step, func(time.Time) *Message {
		m.disks = slices.Delete(slices.Clone(m.disks), i, i+1)
		return nil
	})
}
