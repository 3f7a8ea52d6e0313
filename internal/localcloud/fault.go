package localcloud

// FaultKind is the kind of a fault.
type FaultKind string

// The kinds of faults. Vanish and KubeletStops act at once and on every VM that matches. Those of lists apply
// to the next Count lists whose own options match. MirrorFails lasts until it is deleted. The remaining ones
// apply to the next Count creations that match.
const (
	// FaultCreateFails: the creation fails with Code and Message. With Delay it is accepted, and the VM goes to
	// StateFailed after Delay.
	FaultCreateFails FaultKind = "CreateFails"
	// FaultCreateAnswerLost: the VM is created, the connection breaks after Delay without a response.
	FaultCreateAnswerLost FaultKind = "CreateAnswerLost"
	// FaultNeverBoots: the VM is Running, its operating system never starts.
	FaultNeverBoots FaultKind = "NeverBoots"
	// FaultSlowBoot: the boot of the VM takes Delay longer.
	FaultSlowBoot FaultKind = "SlowBoot"
	// FaultNoProviderID: the VM's Node registers without a provider ID, as without a cloud controller manager.
	FaultNoProviderID FaultKind = "NoProviderID"
	// FaultVanish: VMs are gone, without a trace in the API.
	FaultVanish FaultKind = "Vanish"
	// FaultKubeletStops: VMs stay Running, their kubelet stops and does not start again.
	FaultKubeletStops FaultKind = "KubeletStops"
	// FaultUnavailable: the creation fails with CodeUnavailable, and Retry-After if Delay is set. Nothing is
	// created.
	FaultUnavailable FaultKind = "Unavailable"
	// FaultListFails: the list fails with Code and Message.
	FaultListFails FaultKind = "ListFails"
	// FaultListIncomplete: the zone of the oldest VM that is listed is unreachable,
	// and the list lacks its VMs.
	FaultListIncomplete FaultKind = "ListIncomplete"
	// FaultMirrorFails: the mirror answers real VMs with 503, until the fault is deleted.
	FaultMirrorFails FaultKind = "MirrorFails"
)

// Fault is an injected failure.
type Fault struct {
	// ID is given by the cloud.
	ID   string    `json:"id,omitempty"`
	Kind FaultKind `json:"kind"`
	// Code of the error of FaultCreateFails and FaultListFails. Default CodeInternal.
	Code string `json:"code,omitempty"`
	// Message of the error of these two and of FaultUnavailable.
	Message string `json:"message,omitempty"`
	// Count is how many creations or lists it affects before it is used up, default 1; in responses, how many are
	// left. In the response to Vanish and KubeletStops it is how many VMs were affected.
	Count int `json:"count,omitempty"`
	// Delay: see the kinds.
	Delay Duration `json:"delay,omitempty"`
	// Match selects the VMs. Empty matches all.
	Match FaultMatch `json:"match"`
}

// FaultMatch selects VMs. A VM matches when all that is set matches.
type FaultMatch struct {
	// Name is a glob as of path.Match.
	Name string            `json:"name,omitempty"`
	Tags map[string]string `json:"tags,omitempty"`
	// Size of VMs. Lists have none.
	Size string `json:"size,omitempty"`
}

// FaultList is the response of ListFaults: the faults that are not used up.
type FaultList struct {
	Items []Fault `json:"items"`
}
