package guest

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/patience"
)

// poll is the interval of polling. The local cloud and the cluster are on the same computer.
const poll = 200 * time.Millisecond

// tag of a VM of the local cloud that is a guest. The VM has no other tag, so that no component
// mistakes it for a VM that Drover created there.
const tag = "guest"

// A Host boots guests in the local cloud. Their Nodes are in one cluster.
type Host struct {
	Cloud *localcloud.Client
	// Nodes is a client of the cluster that guests join, with the rights of a
	// cloud-controller-manager.
	Nodes client.Client
	// Failed gets the errors that no caller waits for.
	Failed func(error)
}

// A Request for a guest.
type Request struct {
	// ID of the VM in its cloud, unique per Host.
	ID string
	// Name of the VM and of its Node.
	Name string
	// Address of the VM in its cloud. Empty means one of the local cloud's choice.
	Address string
	// UserData as the cloud passes it to the VM: plain or gzip.
	UserData []byte
	// Metadata is the cloud's metadata service for this VM. It answers each plain HTTP request of
	// the VM, to any host. Nil means that there is no service.
	Metadata http.Handler
	// SystemUUID is the UUID in the SMBIOS of the VM, in the notation of dmidecode. Empty means that the
	// VM has none.
	SystemUUID string
	// OVFEnvironment is the document that VMware Tools read in the VM. Empty means that the VM has no VMware Tools.
	OVFEnvironment string
	// ProviderID is the ID that the cloud-controller-manager writes to the Node if the kubelet
	// registers none. Empty means that the cluster has no cloud-controller-manager.
	ProviderID string
}

// A Guest runs until it is stopped.
type Guest struct {
	Request
	// VM at the local cloud.
	VM localcloud.VM

	host *Host
	stop context.CancelFunc
}

// Boot a guest, and wait until it has its addresses. Its operating system starts after that.
func (h *Host) Boot(ctx context.Context, r Request) (*Guest, error) {
	userData, err := plain(r.UserData)
	if err != nil {
		return nil, fmt.Errorf("user data of %s: %w", r.ID, err)
	}
	// A real VM would run this script at its first boot.
	userData, err = runProviderID(ctx, userData, r)
	if err != nil {
		return nil, fmt.Errorf("user data of %s: %w", r.ID, err)
	}
	tags := map[string]string{tag: r.ID}
	// Otherwise the local cloud would give every Node its own kind of providerID.
	if _, err := h.Cloud.CreateFault(ctx, localcloud.Fault{Kind: localcloud.FaultNoProviderID, Match: localcloud.FaultMatch{Tags: tags}}); err != nil {
		return nil, err
	}
	vm, err := h.Cloud.CreateVM(ctx, localcloud.CreateVMRequest{
		Name: r.Name, Image: localcloud.ImageUbuntu2404, Size: localcloud.SizeSmall, Address: r.Address, UserData: userData, Tags: tags,
	})
	if err != nil {
		return nil, err
	}
	err = wait.PollUntilContextTimeout(ctx, poll, patience.Limit(), true, func(ctx context.Context) (bool, error) {
		vm, err = h.Cloud.GetVM(ctx, vm.ID)
		return err == nil && len(vm.Addresses) > 0, err
	})
	if err != nil {
		return nil, err
	}
	g := &Guest{Request: r, VM: *vm, host: h}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	g.stop = stop
	if r.ProviderID != "" {
		go g.initializeNode(life)
	}
	return g, nil
}

// IP of the guest.
func (g *Guest) IP() string {
	for _, a := range g.VM.Addresses {
		if a.Type == localcloud.AddressInternalIP {
			return a.Address
		}
	}
	return ""
}

// SecondOf returns a second address of the guest with this IP, unique per guest, or "".
func SecondOf(ip string) string {
	a, err := netip.ParseAddr(ip)
	if err != nil || !a.Is4() {
		return ""
	}
	b := a.As4()
	return fmt.Sprintf("10.%d.%d.%d", (b[1]+50)%250, b[2], b[3])
}

// IPv6Of returns an IPv6 address of the guest with this IP, unique per guest, or "".
func IPv6Of(ip string) string {
	a, err := netip.ParseAddr(ip)
	if err != nil || !a.Is4() {
		return ""
	}
	b := a.As4()
	return fmt.Sprintf("2001:db8::%x:%x", int(b[0])<<8|int(b[1]), int(b[2])<<8|int(b[3]))
}

// Stop the guest as if its power failed. The VM is deleted, and its Node stays.
func (g *Guest) Stop(ctx context.Context) error {
	g.stop()
	if err := g.host.Cloud.DeleteVM(ctx, g.VM.ID); err != nil && !localcloud.IsNotFound(err) {
		return err
	}
	return nil
}

// Reboot the guest. It keeps its disk, and its Node reports another boot ID.
func (g *Guest) Reboot(ctx context.Context) error { return g.host.Cloud.RebootVM(ctx, g.VM.ID) }

// DeleteNode deletes the Node as a cloud-controller-manager does after the VM is deleted at its
// cloud.
func (g *Guest) DeleteNode(ctx context.Context) error {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: g.Name}}
	return client.IgnoreNotFound(g.host.Nodes.Delete(ctx, n))
}

// initializeNode writes the providerID like a cloud-controller-manager.
func (g *Guest) initializeNode(ctx context.Context) {
	n := &corev1.Node{}
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		if err := g.host.Nodes.Get(ctx, client.ObjectKey{Name: g.Name}, n); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		if n.Spec.ProviderID != "" {
			return true, nil
		}
		before := n.DeepCopy()
		n.Spec.ProviderID = g.ProviderID
		err := g.host.Nodes.Patch(ctx, n, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return false, nil
		}
		return true, err
	})
	if err != nil && ctx.Err() == nil && g.host.Failed != nil {
		g.host.Failed(fmt.Errorf("providerID of Node %s: %w", g.Name, err))
	}
}

// plain returns the user data without gzip, as cloud-init does.
func plain(userData []byte) ([]byte, error) {
	if !bytes.HasPrefix(userData, []byte{0x1f, 0x8b}) {
		return userData, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(userData))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
