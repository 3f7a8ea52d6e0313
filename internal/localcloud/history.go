package localcloud

import "time"

// A ChangeKind is the kind of a change of a VM.
type ChangeKind string

// The changes that the cloud records.
const (
	// ChangeCreated: the creation was accepted.
	ChangeCreated ChangeKind = "Created"
	// ChangeTerminating: the deletion was requested for the first time.
	ChangeTerminating ChangeKind = "Terminating"
	// ChangeGone: the deletion is complete, or the VM vanished.
	ChangeGone ChangeKind = "Gone"
)

// A Change is an entry of the cloud's history. The history has every VM that was ever created, including
// deleted ones.
type Change struct {
	At   time.Time  `json:"at"`
	Kind ChangeKind `json:"kind"`
	// VM is the ID of the VM. Name and Tags are as they were when it changed.
	VM   string            `json:"vm"`
	Name string            `json:"name"`
	Tags map[string]string `json:"tags,omitempty"`
}

// History is the response with the history, oldest first.
type History struct {
	Items []Change `json:"items"`
}
