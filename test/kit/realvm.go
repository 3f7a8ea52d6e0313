package kit

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
)

// envRealVMs is the folder that "make real-vms" builds.
const envRealVMs = "DROVER_REAL_VMS"

// realVMArgs are the launcher's, for a local cloud that boots real VMs.
func realVMArgs() []string {
	if dir := os.Getenv(envRealVMs); dir != "" {
		return []string{"--real-vms=" + dir}
	}
	return nil
}

// NewRealFleet is a NewTargetFleet with a class named real, whose VMs boot a real Debian. They
// reach the API server and the mirror through the network that the local cloud gives them.
func (p *Plane) NewRealFleet(t testing.TB) Fleet {
	t.Helper()
	dir := os.Getenv(envRealVMs)
	if dir == "" {
		t.Skipf("NO REAL VM IS TESTED: %s names no folder with the image of real VMs, which \"make real-vms\" builds", envRealVMs)
	}
	if _, err := os.Stat(filepath.Join(dir, "images", localcloud.ImageDebian12Real)); err != nil {
		t.Fatalf("%s must name the folder with the image of real VMs, which \"make real-vms\" builds: %v", envRealVMs, err)
	}
	f := p.newTargetFleet(t)
	server, err := url.Parse(p.Target.Server)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := fmt.Sprintf("https://%s:%s", localcloud.HostAddress, server.Port())
	if err := f.configure(t.Context(), p.Target.Credentials(t).Kubeconfig, &clusterv1alpha1.APIServer{Endpoint: endpoint}); err != nil {
		t.Fatal(err)
	}
	class := f.Class("real", localProvider, fmt.Sprintf(`{"image":%q,"size":"small"}`, localcloud.ImageDebian12Real))
	class.Spec.OperatingSystem.KubeletDownloadURL = "http://" + localcloud.GatewayAddress + "/release"
	f.Create(t, class)
	return f
}
