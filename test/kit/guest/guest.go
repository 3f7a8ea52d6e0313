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
)

// poll is how often the local cloud and the cluster are asked. Both are near.
const poll = 200 * time.Millisecond

// tag of a VM of the local cloud that is a guest. It carries no other, so that nobody
// takes it for a VM that Drover made there.
const tag = "guest"

// A Host boots guests at the local cloud. Its Nodes are those of one cluster.
type Host struct {
	Cloud *localcloud.Client
	// Nodes of the cluster that guests join, for what a cloud-controller-manager does.
	Nodes client.Client
	// Failed is told what went wrong when nobody waits for it.
	Failed func(error)
}

// A Request for a guest.
type Request struct {
	// ID of the VM at its cloud. No two guests of a Host may have the same.
	ID string
	// Name of the VM, by which its Node is called.
	Name string
	// UserData as the cloud gives it to the VM: plain or gzip.
	UserData []byte
	// Metadata is the cloud's metadata service as this VM sees it. It answers for every
	// host that the VM asks by plain HTTP. Nil answers nothing.
	Metadata http.Handler
	// SystemUUID is what the SMBIOS of this VM shows, as dmidecode prints it. Empty shows none.
	SystemUUID string
	// ProviderID is what the cloud-controller-manager writes on the Node, if the kubelet
	// has registered none. Empty stands for a cluster that has none.
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

// Boot a guest, and wait until it has its addresses. Its operating system comes up
// after that.
func (h *Host) Boot(ctx context.Context, r Request) (*Guest, error) {
	userData, err := plain(r.UserData)
	if err != nil {
		return nil, fmt.Errorf("user data of %s: %w", r.ID, err)
	}
	// What a real VM runs at its first boot.
	userData, err = runProviderID(ctx, userData, r)
	if err != nil {
		return nil, fmt.Errorf("user data of %s: %w", r.ID, err)
	}
	tags := map[string]string{tag: r.ID}
	// The local cloud would give every Node a providerID of its own.
	if _, err := h.Cloud.CreateFault(ctx, localcloud.Fault{Kind: localcloud.FaultNoProviderID, Match: localcloud.FaultMatch{Tags: tags}}); err != nil {
		return nil, err
	}
	vm, err := h.Cloud.CreateVM(ctx, localcloud.CreateVMRequest{
		Name: r.Name, Image: localcloud.ImageUbuntu2404, Size: localcloud.SizeSmall, UserData: userData, Tags: tags,
	})
	if err != nil {
		return nil, err
	}
	err = wait.PollUntilContextTimeout(ctx, poll, time.Minute, true, func(ctx context.Context) (bool, error) {
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

// SecondOf the addresses of a guest is one that no other guest has, "" if it has none.
func SecondOf(ip string) string {
	a, err := netip.ParseAddr(ip)
	if err != nil || !a.Is4() {
		return ""
	}
	b := a.As4()
	return fmt.Sprintf("10.%d.%d.%d", (b[1]+50)%250, b[2], b[3])
}

// IPv6Of a guest is an address that no other guest has, "" if it has none.
func IPv6Of(ip string) string {
	a, err := netip.ParseAddr(ip)
	if err != nil || !a.Is4() {
		return ""
	}
	b := a.As4()
	return fmt.Sprintf("2001:db8::%x:%x", int(b[0])<<8|int(b[1]), int(b[2])<<8|int(b[3]))
}

// Stop pulls the plug. The guest is gone, and its Node is not.
func (g *Guest) Stop(ctx context.Context) error {
	g.stop()
	if err := g.host.Cloud.DeleteVM(ctx, g.VM.ID); err != nil && !localcloud.IsNotFound(err) {
		return err
	}
	return nil
}

// DeleteNode is what a cloud-controller-manager does when its cloud has the VM no more.
func (g *Guest) DeleteNode(ctx context.Context) error {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: g.Name}}
	return client.IgnoreNotFound(g.host.Nodes.Delete(ctx, n))
}

// initializeNode writes the providerID of the cloud-controller-manager.
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

// plain user data. cloud-init unpacks gzip.
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
