package localcloud

// FaultKind is what goes wrong.
type FaultKind string

// The kinds of faults. Vanish and KubeletStops act at once and on every VM that
// matches; those of lists wait for the next Count lists whose own options match; MirrorFails
// lasts until it is deleted; the others wait for the next Count creations that match.
const (
	// FaultCreateFails: the creation is answered with Code and Message. With
	// Delay it is accepted, and the VM goes to StateFailed after Delay.
	FaultCreateFails FaultKind = "CreateFails"
	// FaultCreateAnswerLost: the VM is created, the connection breaks after
	// Delay without an answer.
	FaultCreateAnswerLost FaultKind = "CreateAnswerLost"
	// FaultNeverBoots: the VM is Running, its operating system never comes up.
	FaultNeverBoots FaultKind = "NeverBoots"
	// FaultSlowBoot: the VM boots Delay later than it would.
	FaultSlowBoot FaultKind = "SlowBoot"
	// FaultNoProviderID: the VM's Node registers without a provider ID, as where no
	// cloud controller manager gives it one.
	FaultNoProviderID FaultKind = "NoProviderID"
	// FaultVanish: VMs are gone, without a trace in the API.
	FaultVanish FaultKind = "Vanish"
	// FaultKubeletStops: VMs stay Running, their kubelet ends for good.
	FaultKubeletStops FaultKind = "KubeletStops"
	// FaultUnavailable: the creation is answered with CodeUnavailable, and
	// Retry-After when Delay is set. Nothing is created.
	FaultUnavailable FaultKind = "Unavailable"
	// FaultListFails: the list is answered with Code and Message.
	FaultListFails FaultKind = "ListFails"
	// FaultListIncomplete: the zone of the oldest VM that is listed is unreachable,
	// and the list lacks its VMs.
	FaultListIncomplete FaultKind = "ListIncomplete"
	// FaultMirrorFails: the mirror answers real VMs with 503, until the fault is deleted.
	FaultMirrorFails FaultKind = "MirrorFails"
)

// Fault is something to go wrong.
type Fault struct {
	// ID is given by the cloud.
	ID   string    `json:"id,omitempty"`
	Kind FaultKind `json:"kind"`
	// Code of the error of FaultCreateFails and FaultListFails. Default CodeInternal.
	Code string `json:"code,omitempty"`
	// Message of the error of these two and of FaultUnavailable.
	Message string `json:"message,omitempty"`
	// Count is how many creations or lists it hits before it is used up, default 1; in
	// answers, how many are left. In the answer to Vanish and KubeletStops it is
	// how many VMs were hit.
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
}

// FaultList is the answer to ListFaults: those that are not used up.
type FaultList struct {
	Items []Fault `json:"items"`
}
