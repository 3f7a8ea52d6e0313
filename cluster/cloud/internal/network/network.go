// Package network gives each real VM a network of its own inside the daemon, so that it needs no
// interface, no route and no privilege on the host. The VM gets its address by DHCP. It reaches the
// daemon's metadata service and mirror at Gateway, the host's loopback at Host, and all other
// addresses as the host does. VMs do not reach each other.
package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/containers/gvisor-tap-vsock/pkg/types"
	"github.com/containers/gvisor-tap-vsock/pkg/virtualnetwork"
	"github.com/sirupsen/logrus"

	"github.com/drover-dev/drover/internal/localcloud"
)

const (
	// Subnet has the addresses of all VMs.
	Subnet = "10.200.0.0/16"
	// Gateway is the router, the name server and the address of the metadata service.
	Gateway = localcloud.GatewayAddress
	// Host is the host's loopback, where the API server of a local control plane is.
	Host = localcloud.HostAddress

	gatewayMAC = "52:54:00:c8:00:01"
	mtu        = 1500
)

// A Protocol is how a VM transfers its Ethernet frames.
type Protocol string

const (
	// Packets has one frame per packet of a SOCK_SEQPACKET socket, for User Mode Linux.
	Packets Protocol = "unixpacket"
	// Stream has the length before each frame, for QEMU.
	Stream Protocol = "unix"
)

func init() {
	// The library logs every VM that is powered off as an error.
	logrus.SetOutput(io.Discard)
}

// MAC returns the hardware address of the VM with an IPv4 address.
func MAC(ip string) string {
	b := net.ParseIP(ip).To4()
	return fmt.Sprintf("52:54:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3])
}

// A Network is the network of one VM.
type Network struct {
	socket net.Listener
	web    net.Listener
	end    context.CancelFunc
	all    sync.WaitGroup
}

// Open creates the network of the VM with the address ip. The VM connects to a socket that Open
// creates at path. The handler serves port 80 of Gateway.
func Open(path string, p Protocol, ip string, h http.Handler) (*Network, error) {
	v, err := virtualnetwork.New(&types.Configuration{
		MTU: mtu, Subnet: Subnet, GatewayIP: Gateway, GatewayMacAddress: gatewayMAC,
		DHCPStaticLeases:  map[string]string{ip: MAC(ip)},
		GatewayVirtualIPs: []string{Host},
		NAT:               map[string]string{Host: "127.0.0.1"},
	})
	if err != nil {
		return nil, err
	}
	web, err := v.Listen("tcp", net.JoinHostPort(Gateway, "80"))
	if err != nil {
		return nil, err
	}
	// A daemon that was killed did not delete its socket.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(err, web.Close())
	}
	socket, err := net.Listen(string(p), path)
	if err != nil {
		return nil, errors.Join(err, web.Close())
	}
	ctx, end := context.WithCancel(context.Background())
	n := &Network{socket: socket, web: web, end: end}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	n.all.Go(func() { _ = srv.Serve(web) })
	n.all.Go(func() { n.accept(ctx, v, p) })
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	return n, nil
}

// accept serves one connection at a time: a VM that reboots connects again.
func (n *Network) accept(ctx context.Context, v *virtualnetwork.VirtualNetwork, p Protocol) {
	for {
		conn, err := n.socket.Accept()
		if err != nil {
			return
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		if p == Packets {
			_ = v.AcceptBess(ctx, conn)
		} else {
			_ = v.AcceptQemu(ctx, conn)
		}
		stop()
		_ = conn.Close()
	}
}

// Close ends the network, and waits until it serves nothing any more.
func (n *Network) Close() {
	n.end()
	_ = n.socket.Close()
	n.all.Wait()
}
