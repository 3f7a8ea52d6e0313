package hypervisor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/drover-dev/drover/cluster/cloud/internal/network"
)

// uml is User Mode Linux: a Linux kernel that is an ordinary process. It needs no privilege and no
// device of the host. Its programs run at native speed, but its system calls are slower. It has one
// CPU.
type uml struct{ guard Guard }

func (uml) Name() string { return "User Mode Linux" }

func (uml) Protocol() network.Protocol { return network.Packets }

func (uml) Check(i Image) error {
	if err := exists(i.UML(), i.Disk()); err != nil {
		return err
	}
	if hasAMX(cpuinfo()) {
		if err := exists(i.AMX()); err != nil {
			return fmt.Errorf("the processor has AMX, with which the kernel ends at its first program: %w", err)
		}
	}
	return nil
}

func (u uml) Start(vm VM, console io.Writer) (*Machine, error) {
	return u.guard.Start(vm.Dir, umlEnvironment(vm.Image, cpuinfo()), umlCommand(vm), console)
}

// umlCommand uses paths relative to the VM's folder, because a socket's path has at most 107 bytes.
func umlCommand(vm VM) []string {
	args := []string{
		vm.Image.UML(), "umid=uml", "uml_dir=./", fmt.Sprintf("mem=%dM", vm.MemoryMiB),
		// The image is shared. Writes of the VM go to its own file.
		"ubd0=disk.cow," + vm.Image.Disk(), "root=/dev/ubda",
		"con0=null,fd:1", "con=null", "ssl=null",
	}
	if exists(vm.Image.UMLInitrd()) == nil {
		args = append(args, "initrd="+vm.Image.UMLInitrd())
	}
	if vm.IP != "" {
		args = append(args, fmt.Sprintf("vec0:transport=bess,dst=%s,depth=128,gro=1,mac=%s", socketName, network.MAC(vm.IP)))
	}
	return append(args, strings.Fields(commandLine(vm))...)
}

// umlEnvironment is empty except on processors with AMX. There, the state of the floating-point
// unit is 11 KB. User Mode Linux before 6.13 reserves less, ptrace refuses a partial state, and the
// kernel ends at its first program. The library enlarges the buffer for ptrace.
func umlEnvironment(i Image, cpuinfo string) []string {
	if hasAMX(cpuinfo) {
		return []string{"LD_PRELOAD=" + i.AMX()}
	}
	return nil
}

func hasAMX(cpuinfo string) bool {
	for _, flag := range strings.Fields(cpuinfo) {
		if flag == "amx_tile" {
			return true
		}
	}
	return false
}

func cpuinfo() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	return string(b)
}

// exists returns an error with the first file that is missing.
func exists(files ...string) error {
	for _, f := range files {
		if _, err := os.Stat(f); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the image has no %s", filepath.Base(f))
		} else if err != nil {
			return err
		}
	}
	return nil
}

func mebibytes(n int) string { return strconv.Itoa(n) + "M" }
