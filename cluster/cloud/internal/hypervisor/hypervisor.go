// Package hypervisor boots real virtual machines as processes of the host. Three
// hypervisors have one interface: KVM, User Mode Linux and QEMU's emulation. Choose finds
// out by booting which of them works on this host.
package hypervisor

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/drover-dev/drover/cluster/cloud/internal/network"
)

// A VM is what a hypervisor boots.
type VM struct {
	// Dir is the VM's own folder: its disk, and its network's socket.
	Dir   string
	Image Image
	CPUs  int
	// MemoryMiB is how much the guest sees. The host gives what the guest touches.
	MemoryMiB int
	// IP is the VM's address; empty for a VM without a network.
	IP string
	// Arguments are added to the kernel's command line.
	Arguments []string
}

// Socket is where the VM's network is expected.
func (vm VM) Socket() string { return filepath.Join(vm.Dir, socketName) }

const socketName = "net.sock"

// An Image is a folder with an operating system.
type Image string

func (i Image) file(name string) string { return filepath.Join(string(i), name) }

// Disk is the root file system: ext4 without a partition table.
func (i Image) Disk() string { return i.file("disk.img") }

// UML is a kernel that is a program of the host.
func (i Image) UML() string { return i.file("linux.uml") }

// UMLInitrd is the initial RAM disk of UML. Images that do not need one have none.
func (i Image) UMLInitrd() string { return i.file("initrd.uml") }

// AMX is a library for UML on processors with AMX; see uml.go.
func (i Image) AMX() string { return i.file("amx.so") }

// Kernel and Initrd are for QEMU.
func (i Image) Kernel() string { return i.file("vmlinuz") }

// Initrd is the initial RAM disk of Kernel.
func (i Image) Initrd() string { return i.file("initrd.img") }

// A Hypervisor boots VMs.
type Hypervisor interface {
	Name() string
	// Check reports what the host or the image lacks. No problem does not mean that it works:
	// only a boot shows that.
	Check(Image) error
	// Protocol is how its VMs hand over Ethernet frames.
	Protocol() network.Protocol
	// Start boots a VM; a VM that was started before goes on with its disk. What the VM writes
	// to its console is copied to console until the VM ends.
	Start(vm VM, console io.Writer) (*Machine, error)
}

// All are the hypervisors, the fastest first.
func All(g Guard) []Hypervisor {
	return []Hypervisor{qemu{guard: g, kvm: true}, uml{guard: g}, qemu{guard: g}}
}

// commandLine of the kernel, with what each hypervisor needs of its own.
func commandLine(vm VM, own ...string) string {
	args := append([]string{"rw", "systemd.firstboot=off"}, own...)
	return strings.Join(append(args, vm.Arguments...), " ")
}

// WithMetadata tells cloud-init and Ignition where the VM's metadata is. The URL ends in a
// slash: cloud-init appends the names of the documents.
func (vm VM) WithMetadata(url string) VM {
	vm.Arguments = append([]string{"ds=nocloud-net;s=" + url, "ignition.config.url=" + url + "user-data"}, vm.Arguments...)
	return vm
}
