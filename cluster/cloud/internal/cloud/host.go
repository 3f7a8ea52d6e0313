package cloud

import (
	"fmt"

	"github.com/drover-dev/drover/cluster/cloud/internal/kubelet"
)

// host is a VM as its guest sees it.
type host struct {
	cloud *Cloud
	id    string
}

// Save implements guest.Host. It changes nothing but the kubelet's state, so the
// guest that calls it is not started or stopped by it.
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

// Console implements guest.Host.
func (h host) Console(format string, args ...any) {
	h.cloud.mu.Lock()
	defer h.cloud.mu.Unlock()
	if _, ok := h.cloud.vms[h.id]; ok {
		h.cloud.note(h.id, format, args...)
	}
}
