package realvm

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
)

// TestAMachineInstallsNoContainerdWithoutTheDigestOfItsClass downloads containerd from the URL of
// its class. The first archive there is another one, which the machine must refuse. With the
// right archive, it joins.
func TestAMachineInstallsNoContainerdWithoutTheDigestOfItsClass(t *testing.T) {
	kit.OnlyInLong(t, "TestARealDebianJoinsAndRunsAPod")
	t.Parallel()
	f := plane.NewRealFleet(t, localcloud.ImageDebian12Real)
	archive, err := kit.RealContainerd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const path = "/containerd/v2.3.2/containerd-2.3.2-linux-amd64.tar.gz"
	var right atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != path:
			http.NotFound(w, r)
		case right.Load():
			_, _ = w.Write(archive)
		default:
			_, _ = w.Write([]byte("another archive"))
		}
	}))
	t.Cleanup(server.Close)

	f.ApplyFile(t, "testdata/acme-containerd-v1.yaml", profileNamed("acme-containerd-v1"))
	class := f.RealClass("real", localcloud.ImageDebian12Real, "acme-containerd-v1", nil)
	class.Spec.OperatingSystem.ContainerdDownloadURL = fmt.Sprintf("http://%s:%d/containerd", localcloud.HostAddress, server.Listener.Addr().(*net.TCPAddr).Port)
	digest := sha256.Sum256(archive)
	class.Spec.OperatingSystem.ContainerdDigests = []machinev1alpha1.Digest{{Version: "2.3.2", Architecture: "amd64", SHA256: hex.EncodeToString(digest[:])}}
	startReal(t, f, class)
	awaitConsole(t, f, path+" does not have the digest that the class has for it")
	awaitConsole(t, f, "drover-bootstrap: step download: failed (exit 1), trying again in 5s")

	right.Store(true)
	node := awaitRealNode(t, f)
	if runtime := node.Status.NodeInfo.ContainerRuntimeVersion; !strings.HasPrefix(runtime, "containerd://2.") {
		t.Errorf("the Node runs %s", runtime)
	}
	runAPod(t, f, node)
	endReal(t, f)
}
