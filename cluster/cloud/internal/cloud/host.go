package cloud

import (
	"fmt"
	"slices"

	"github.com/drover-dev/drover/internal/localcloud"

	"github.com/drover-dev/drover/cluster/cloud/internal/kubelet"
)

// host is the interface of a VM to its guest.
type host struct {
	cloud *Cloud
	id    string
}

// Save implements guest.Host. It changes only the kubelet's state, so that it neither starts nor
// stops the guest that calls it.
func (h host) Save(s kubelet.State) error {
	h.cloud.mu.Lock()
	defer h.cloud.mu.Unlock()
	r, ok := h.cloud.vms[h.id]
	if !ok || !r.on() {
		return fmt.Errorf("VM %s is not running", h.id)
	}
	next := *r
	next.Kubelet = s
	if err := h.cloud.vmFiles.Put(h.id, next); err != nil {
		return err
	}
	h.cloud.vms[h.id] = &next
	return nil
}

// Fail implements real.Host. The VM remains as Failed until it is deleted.
func (h host) Fail(message string) {
	h.cloud.mu.Lock()
	defer h.cloud.mu.Unlock()
	r, ok := h.cloud.vms[h.id]
	if !ok || !r.on() {
		return
	}
	next := *r
	next.VM.State, next.VM.Error = localcloud.StateFailed, &localcloud.VMError{Code: localcloud.CodeInternal, Message: message}
	if err := h.cloud.put(next); err != nil {
		h.cloud.log.Error("cannot keep the failure of a VM", "vm", h.id, "err", err)
	}
	h.cloud.note(h.id, "failed: %s", message)
}

// MirrorFails implements real.Host.
func (h host) MirrorFails() bool {
	h.cloud.mu.Lock()
	defer h.cloud.mu.Unlock()
	r, ok := h.cloud.vms[h.id]
	return ok && slices.ContainsFunc(h.cloud.account.Faults, func(f localcloud.Fault) bool {
		return f.Kind == localcloud.FaultMirrorFails && matches(f.Match, r.VM.Name, r.VM.Size, r.VM.Tags)
	})
}

// Console implements guest.Host and real.Host.
func (h host) Console(format string, args ...any) {
	h.cloud.mu.Lock()
	defer h.cloud.mu.Unlock()
	if _, ok := h.cloud.vms[h.id]; ok {
		h.cloud.note(h.id, format, args...)
	}
}
