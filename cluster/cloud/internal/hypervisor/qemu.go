package hypervisor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/drover-dev/drover/cluster/cloud/internal/network"
)

const (
	qemuSystem = "qemu-system-x86_64"
	qemuImage  = "qemu-img"
	kvmDevice  = "/dev/kvm"
)

// qemu runs the image's ordinary kernel: with KVM at native speed, and without it by translating
// each instruction, at a third of that speed or less.
type qemu struct {
	guard Guard
	kvm   bool
}

func (q qemu) Name() string {
	if q.kvm {
		return "KVM"
	}
	return "QEMU without KVM"
}

func (qemu) Protocol() network.Protocol { return network.Stream }

func (q qemu) Check(i Image) error {
	for _, name := range []string{qemuSystem, qemuImage} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%s is not installed", name)
		}
	}
	if q.kvm {
		f, err := os.OpenFile(kvmDevice, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return exists(i.Kernel(), i.Initrd(), i.Disk())
}

func (q qemu) Start(vm VM, console io.Writer) (*Machine, error) {
	if err := q.disk(vm); err != nil {
		return nil, err
	}
	return q.guard.Start(vm.Dir, nil, qemuCommand(vm, q.kvm), console)
}

// disk creates the VM's own file on top of the shared image, once.
func (qemu) disk(vm VM) error {
	file := filepath.Join(vm.Dir, "disk.qcow2")
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := exec.Command(qemuImage, "create", "-q", "-f", "qcow2", "-F", "raw", "-b", vm.Image.Disk(), file).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", qemuImage, err, out)
	}
	return nil
}

func qemuCommand(vm VM, kvm bool) []string {
	accelerator := []string{"-accel", "tcg,thread=multi", "-cpu", "max"}
	if kvm {
		accelerator = []string{"-accel", "kvm", "-cpu", "host"}
	}
	args := append([]string{qemuSystem, "-M", "q35", "-nodefaults", "-display", "none", "-monitor", "none", "-serial", "stdio"}, accelerator...)
	args = append(args, "-smp", strconv.Itoa(vm.CPUs), "-m", mebibytes(vm.MemoryMiB),
		"-drive", "file=disk.qcow2,if=virtio,format=qcow2", "-device", "virtio-rng-pci",
		"-kernel", vm.Image.Kernel(), "-initrd", vm.Image.Initrd(),
		"-append", commandLine(vm, "root=/dev/vda", "console=ttyS0", "net.ifnames=0"))
	if vm.IP != "" {
		args = append(args, "-netdev", "stream,id=net,server=off,addr.type=unix,addr.path="+socketName,
			"-device", "virtio-net-pci,netdev=net,mac="+network.MAC(vm.IP))
	}
	return args
}
