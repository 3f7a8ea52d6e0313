package kit

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/internal/localplane"
)

// envRealVMs names the folder that "make real-vms" builds.
const envRealVMs = "DROVER_REAL_VMS"

// realVMArgs are the arguments of the launcher for a local cloud that boots real VMs.
func realVMArgs() []string {
	if dir := os.Getenv(envRealVMs); dir != "" {
		return []string{"--real-vms=" + dir}
	}
	return nil
}

// HasRealVMs reports whether the local cloud of a Plane boots real VMs.
func HasRealVMs() bool { return os.Getenv(envRealVMs) != "" }

// realSlots limits the number of tests that have real VMs at the same time: each VM keeps a
// processor busy.
var realSlots = make(chan struct{}, 2)

// NewRealFleet is a NewTargetFleet for real VMs of an image: they reach the API server and the mirror
// through the network of the local cloud.
func (p *Plane) NewRealFleet(t testing.TB, image string) Fleet {
	t.Helper()
	dir := os.Getenv(envRealVMs)
	if dir == "" {
		t.Skipf("NO REAL VM IS TESTED: %s names no folder with the images of real VMs, which \"make real-vms\" builds", envRealVMs)
	}
	if _, err := os.Stat(filepath.Join(dir, "images", image)); err != nil {
		t.Fatalf("%s must name the folder with the images of real VMs, which \"make real-vms\" builds: %v", envRealVMs, err)
	}
	select {
	case realSlots <- struct{}{}:
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
	// Cleanups run in reverse order: the VMs of the fleet are deleted by then.
	t.Cleanup(func() { <-realSlots })
	f := p.newTargetFleet(t)
	server, err := url.Parse(p.Target.Server)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := fmt.Sprintf("https://%s:%s", localcloud.HostAddress, server.Port())
	if err := f.configure(t.Context(), p.Target.Credentials(t).Kubeconfig, &clusterv1alpha1.APIServer{Endpoint: endpoint}); err != nil {
		t.Fatal(err)
	}
	return f
}

// RealClass returns a class of real VMs. They download from the mirror of the local cloud.
func (f Fleet) RealClass(name, image, profile string, parameters map[string]string) *machinev1alpha1.MachineClass {
	class := f.Class(name, localProvider, fmt.Sprintf(`{"image":%q,"size":"small"}`, image))
	class.Spec.OperatingSystem.Profile, class.Spec.OperatingSystem.Parameters = profile, parameters
	class.Spec.OperatingSystem.KubeletDownloadURL = "http://" + localcloud.GatewayAddress + "/release"
	return class
}

// RealDetector returns the folder with node-problem-detector and the configuration of its kernel monitor.
func RealDetector() string { return filepath.Join(os.Getenv(envRealVMs), "node-problem-detector") }

// RealContainerd returns the archive of a containerd 2 release, with the programs of a real VM
// image.
func RealContainerd(ctx context.Context) ([]byte, error) {
	disk := filepath.Join(os.Getenv(envRealVMs), "images", localcloud.ImageFlatcarLike, "disk.img")
	dir, err := os.MkdirTemp("", "containerd-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	t := tar.NewWriter(z)
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		file := filepath.Join(dir, name)
		// The disk is one ext4 file system. Computers that build the images have the tools for it.
		cmd := exec.CommandContext(ctx, "debugfs", "-R", fmt.Sprintf("dump /usr/bin/%s %s", name, file), disk)
		cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
		if text, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", disk, err, text)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s has no /usr/bin/%s: %w", disk, name, err)
		}
		if err := t.WriteHeader(&tar.Header{Name: "bin/" + name, Mode: 0o755, Size: int64(len(b)), Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := t.Write(b); err != nil {
			return nil, err
		}
	}
	err = errors.Join(t.Close(), z.Close())
	return out.Bytes(), err
}

// RealKubelet is the path of the kubelet that real VMs run.
func RealKubelet(version string) string {
	return filepath.Join(os.Getenv(envRealVMs), "mirror", "release", version, "bin", "linux", "amd64", "kubelet")
}

// ApplyFile applies a manifest of cluster-scoped objects, and deletes them when the test ends.
func (f Fleet) ApplyFile(t testing.TB, file string, objects ...client.Object) {
	t.Helper()
	t.Cleanup(func() {
		for _, o := range objects {
			if err := client.IgnoreNotFound(f.Client.Delete(context.Background(), o)); err != nil {
				t.Error(err)
			}
		}
	})
	if err := localplane.Apply(t.Context(), f.Client, file); err != nil {
		t.Fatal(err)
	}
}
