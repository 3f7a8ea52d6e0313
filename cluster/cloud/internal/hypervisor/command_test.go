package hypervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommands(t *testing.T) {
	vm := VM{Dir: "/d", Image: "/i", CPUs: 2, MemoryMiB: 4096, IP: "10.200.0.10"}.WithMetadata("http://m/s/")
	probe := VM{Dir: "/d", Image: "/i", CPUs: 1, MemoryMiB: 256, Arguments: []string{"init=/x"}}
	const kernel = "rw systemd.firstboot=off"
	cases := map[string]struct {
		got  []string
		want string
	}{
		"UML": {umlCommand(vm), "/i/linux.uml umid=uml uml_dir=./ mem=4096M ubd0=disk.cow,/i/disk.img root=/dev/ubda con0=null,fd:1 con=null ssl=null " +
			"vec0:transport=bess,dst=net.sock,depth=128,gro=1,mac=52:54:0a:c8:00:0a " + kernel + " ds=nocloud-net;s=http://m/s/ ignition.config.url=http://m/s/user-data"},
		"UMLProbe": {umlCommand(probe), "/i/linux.uml umid=uml uml_dir=./ mem=256M ubd0=disk.cow,/i/disk.img root=/dev/ubda con0=null,fd:1 con=null ssl=null " + kernel + " init=/x"},
		"KVM": {qemuCommand(vm, true), "qemu-system-x86_64 -M q35 -nodefaults -display none -monitor none -serial stdio -accel kvm -cpu host -smp 2 -m 4096M " +
			"-drive file=disk.qcow2,if=virtio,format=qcow2 -device virtio-rng-pci -kernel /i/vmlinuz -initrd /i/initrd.img " +
			"-append " + kernel + " root=/dev/vda console=ttyS0 net.ifnames=0 ds=nocloud-net;s=http://m/s/ ignition.config.url=http://m/s/user-data " +
			"-netdev stream,id=net,server=off,addr.type=unix,addr.path=net.sock -device virtio-net-pci,netdev=net,mac=52:54:0a:c8:00:0a"},
		"QEMUProbe": {qemuCommand(probe, false), "qemu-system-x86_64 -M q35 -nodefaults -display none -monitor none -serial stdio -accel tcg,thread=multi -cpu max -smp 1 -m 256M " +
			"-drive file=disk.qcow2,if=virtio,format=qcow2 -device virtio-rng-pci -kernel /i/vmlinuz -initrd /i/initrd.img " +
			"-append " + kernel + " root=/dev/vda console=ttyS0 net.ifnames=0 init=/x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(tc.got, " "); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// TestUMLGetsTheInitialRAMDiskOfItsImage: most images have none, since all drivers of User
// Mode Linux are in its kernel.
func TestUMLGetsTheInitialRAMDiskOfItsImage(t *testing.T) {
	i := Image(t.TempDir())
	if err := os.WriteFile(i.UMLInitrd(), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(umlCommand(VM{Image: i}), " "); !strings.Contains(got, " initrd="+string(i)+"/initrd.uml ") {
		t.Error(got)
	}
	if got := strings.Join(umlCommand(VM{Image: i, SkipInitrd: true}), " "); strings.Contains(got, "initrd=") {
		t.Error(got)
	}
}

const (
	plainCPU = "flags\t\t: fpu sse avx2 xsave\n"
	amxCPU   = "flags\t\t: fpu sse avx2 xsave amx_bf16 avx512_fp16 amx_tile amx_int8\n"
)

func TestUMLNeedsItsLibraryWithAMX(t *testing.T) {
	if env := umlEnvironment("/i", plainCPU); env != nil {
		t.Errorf("without AMX: %q", env)
	}
	if env := umlEnvironment("/i", amxCPU); len(env) != 1 || env[0] != "LD_PRELOAD=/i/amx.so" {
		t.Errorf("with AMX: %q", env)
	}
}

func TestCheckNamesWhatTheImageLacks(t *testing.T) {
	dir := t.TempDir()
	if err := (uml{}).Check(Image(dir)); err == nil || err.Error() != "the image has no linux.uml" {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{"linux.uml", "disk.img", "amx.so"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := (uml{}).Check(Image(dir)); err != nil {
		t.Error(err)
	}
}
