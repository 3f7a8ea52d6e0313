// Package hypervisor boots real virtual machines as processes of the host. Three hypervisors have
// one interface: KVM, User Mode Linux and QEMU's emulation. Choose finds one that works on this
// host by booting with it.
package hypervisor

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/drover-dev/drover/cluster/cloud/internal/network"
)

// A VM is the input of a hypervisor's boot.
type VM struct {
	// Dir is the VM's own folder, with its disk and its network's socket.
	Dir   string
	Image Image
	CPUs  int
	// MemoryMiB is the memory of the guest. The host allocates pages when the guest touches them.
	MemoryMiB int
	// IP is the VM's address; empty for a VM without a network.
	IP string
	// Arguments are added to the kernel's command line.
	Arguments []string
}

// Socket is the path of the socket that the VM's network listens on.
func (vm VM) Socket() string { return filepath.Join(vm.Dir, socketName) }

const socketName = "net.sock"

// An Image is a folder with an operating system.
type Image string

func (i Image) file(name string) string { return filepath.Join(string(i), name) }

// Disk is the root file system: ext4 without a partition table.
func (i Image) Disk() string { return i.file("disk.img") }

// UML is a kernel that runs as a program of the host.
func (i Image) UML() string { return i.file("linux.uml") }

// UMLInitrd is the initial RAM disk for UML. Only images that need one have it.
func (i Image) UMLInitrd() string { return i.file("initrd.uml") }

// AMX is a library for UML on processors with AMX; see uml.go.
func (i Image) AMX() string { return i.file("amx.so") }

// Kernel is the kernel for QEMU.
func (i Image) Kernel() string { return i.file("vmlinuz") }

// Initrd is the initial RAM disk of Kernel.
func (i Image) Initrd() string { return i.file("initrd.img") }

// A Hypervisor boots VMs.
type Hypervisor interface {
	Name() string
	// Check reports requirements that the host or the image lacks. Nil does not prove that the
	// hypervisor works: only a boot does.
	Check(Image) error
	// Protocol is how its VMs transfer Ethernet frames.
	Protocol() network.Protocol
	// Start boots a VM. A VM that was started before continues with its disk. The VM's console
	// output is copied to console until the VM ends.
	Start(vm VM, console io.Writer) (*Machine, error)
}

// All returns the hypervisors, the fastest first.
func All(g Guard) []Hypervisor {
	return []Hypervisor{qemu{guard: g, kvm: true}, uml{guard: g}, qemu{guard: g}}
}

// commandLine returns the command line of the kernel, with the arguments of one hypervisor.
func commandLine(vm VM, own ...string) string {
	args := append([]string{"rw", "systemd.firstboot=off"}, own...)
	return strings.Join(append(args, vm.Arguments...), " ")
}

// WithMetadata passes the URL of the VM's metadata to cloud-init and Ignition. The URL ends with a
// slash, because cloud-init appends the names of the documents.
func (vm VM) WithMetadata(url string) VM {
	vm.Arguments = append([]string{"ds=nocloud-net;s=" + url, "ignition.config.url=" + url + "user-data"}, vm.Arguments...)
	return vm
}
