package metalstack

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// tagVM is the key of the tag of a machine with the UID of its managed resource.
const tagVM = "drover-vm"

// roleMachine is the role of an allocation that is no firewall.
const roleMachine = "machine"

// Provisioning events.
const (
	eventPhonedHome    = "Phoned Home"
	eventPlannedReboot = "Planned Reboot"
	// messageOff is the message of a planned reboot if the machine is powered off.
	messageOff = "OFF"
)

// stateLocked is the state of a machine that the metal-api neither frees nor installs again.
const stateLocked = "LOCKED"

// A machine is a machine of the metal-api, with the fields that the provider reads. The user data, which the metal-api
// returns too, is not one of them.
type machine struct {
	ID         string      `json:"id"`
	RackID     string      `json:"rackid"`
	Liveliness string      `json:"liveliness"`
	Tags       []string    `json:"tags"`
	Allocation *allocation `json:"allocation"`
	Partition  struct {
		ID string `json:"id"`
	} `json:"partition"`
	State struct {
		Value       string `json:"value"`
		Description string `json:"description"`
		Issuer      string `json:"issuer"`
	} `json:"state"`
	Events struct {
		CrashLoop bool    `json:"crash_loop"`
		LastError *event  `json:"last_error_event"`
		Log       []event `json:"log"`
	} `json:"events"`
}

// An event is a provisioning event. The log has the newest one first.
type event struct {
	Event   string `json:"event"`
	Message string `json:"message"`
}

// isOff reports whether a user powered off the machine.
func (e event) isOff() bool { return e.Event == eventPlannedReboot && e.Message == messageOff }

// An allocation is the use of a machine by a project.
type allocation struct {
	UUID     string    `json:"allocationuuid"`
	Created  time.Time `json:"created"`
	Name     string    `json:"name"`
	Hostname string    `json:"hostname"`
	Project  string    `json:"project"`
	Role     string    `json:"role"`
	Image    *struct {
		ID      string    `json:"id"`
		Expires time.Time `json:"expirationDate"`
	} `json:"image"`
	Networks []struct {
		IPs      []string `json:"ips"`
		Private  bool     `json:"private"`
		Underlay bool     `json:"underlay"`
	} `json:"networks"`
}

// attributes returns the tags with a value.
func (m machine) attributes() map[string]string {
	out := map[string]string{}
	for _, t := range m.Tags {
		if k, v, ok := strings.Cut(t, "="); ok {
			out[k] = v
		}
	}
	return out
}

// isIn reports whether the machine is allocated as a machine of the project, and not as a firewall.
func (m machine) isIn(project string) bool {
	return m.Allocation != nil && m.Allocation.UUID != "" && m.Allocation.Project == project && m.Allocation.Role == roleMachine
}

// externalName returns the external name of the VM that the machine is allocated for.
func (m machine) externalName() string { return m.ID + "/" + m.Allocation.UUID }

// providerID returns the providerID that the cloud-controller-manager metal-ccm writes.
func (m machine) providerID() string { return "metal://" + m.Partition.ID + "/" + m.ID }

// addresses returns the addresses that metal-stack assigned to the machine.
func (m machine) addresses() []nativev1alpha1.Address {
	var out []nativev1alpha1.Address
	for _, n := range m.Allocation.Networks {
		if n.Underlay {
			continue
		}
		kind := nativev1alpha1.AddressExternal
		if n.Private {
			kind = nativev1alpha1.AddressInternal
		}
		for _, text := range n.IPs {
			ip, err := netip.ParseAddr(text)
			if err != nil {
				continue
			}
			if a := (nativev1alpha1.Address{Type: kind, Address: ip.Unmap().String()}); !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}

// newest returns the newest provisioning event.
func (m machine) newest() event {
	if len(m.Events.Log) == 0 {
		return event{}
	}
	return m.Events.Log[0]
}

// isLocked reports whether the metal-api refuses to free the machine.
func (m machine) isLocked() bool { return m.State.Value == stateLocked }

// stateOf returns the state of an allocated machine. A VM that is finished ran once.
func stateOf(m machine, finished bool) native.State {
	e := m.newest()
	switch {
	case e.Event == eventPhonedHome:
		return native.StateRunning
	case e.isOff():
		return native.StateStopped
	case !finished:
		return native.StateCreating
	case e.Event == eventPlannedReboot:
		return native.StateRunning
	}
	return native.StateStopped
}

// text returns the state in the words of metal-stack.
func (m machine) text() string {
	e := m.newest()
	out := cmp.Or(e.Event, "no provisioning event")
	if e.Event != eventPhonedHome && e.Message != "" {
		out += " (" + e.Message + ")"
	}
	if m.Events.CrashLoop {
		out += ", crash loop"
		if last := m.Events.LastError; last != nil && last.Event != "" {
			out += " since " + strings.TrimSpace(last.Event+" "+last.Message)
		}
	}
	if m.Liveliness != "" && m.Liveliness != "Alive" {
		out += ", liveliness " + m.Liveliness
	}
	if m.State.Value != "" {
		out += ", " + m.lock()
	}
	return out
}

// lock returns the state of the machine that a user set, with its reason.
func (m machine) lock() string {
	out := m.State.Value
	if m.State.Description != "" {
		out += ": " + m.State.Description
	}
	if m.State.Issuer != "" {
		out += " (" + m.State.Issuer + ")"
	}
	return out
}

// inOrder sorts allocated machines by the time of their allocation.
func inOrder(machines []machine) {
	slices.SortFunc(machines, func(a, b machine) int {
		return cmp.Or(a.Allocation.Created.Compare(b.Allocation.Created), strings.Compare(a.Allocation.UUID, b.Allocation.UUID))
	})
}

// read returns the machine that is allocated for the VM with the external name, or nil if there certainly is none.
func (a *account) read(ctx context.Context, externalName string) (*machine, error) {
	id, uuid, ok := strings.Cut(externalName, "/")
	if !ok || id == "" || uuid == "" {
		return nil, nil
	}
	var m machine
	err := a.call(ctx, http.MethodGet, "/v1/machine/"+url.PathEscape(id), nil, &m)
	switch {
	case isNotFound(err):
		return nil, nil
	case err != nil:
		return nil, classify("cannot read machine "+id, err)
	case m.ID != id:
		return nil, &native.Error{Class: fn.ErrorTransient, Err: errors.New("the response has another machine"), Refused: true}
	case !m.isIn(a.project) || m.Allocation.UUID != uuid:
		return nil, nil
	}
	return &m, nil
}

// search returns the machines of the project that have all the tags.
func (a *account) search(ctx context.Context, tags ...string) ([]machine, error) {
	var out []machine
	query := map[string]any{"allocation_project": a.project, "allocation_role": roleMachine}
	if len(tags) > 0 {
		query["tags"] = tags
	}
	if err := a.call(ctx, http.MethodPost, "/v1/machine/find", query, &out); err != nil {
		return nil, classify("cannot search for machines", err)
	}
	// The metal-api ignores the fields of a query that it does not know.
	out = slices.DeleteFunc(out, func(m machine) bool {
		return !m.isIn(a.project) || slices.ContainsFunc(tags, func(t string) bool { return !slices.Contains(m.Tags, t) })
	})
	inOrder(out)
	return out, nil
}
