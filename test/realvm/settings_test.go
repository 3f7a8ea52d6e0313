package realvm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
)

const (
	// sshKey is a public key whose private key does not exist.
	sshKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ9+SyGD7BFCWzZmxyTpbdzDXgXAoYxOIYHvHWGAQFU operator@example.org"
	// mirroredImage is in a registry that does not exist: only the local cloud's mirror has it.
	mirroredImage = mirroredRepository + ":3.10"
	// mirroredRepository is the image name that the kubelet passes to credential providers,
	// without the tag.
	mirroredRepository = "registry.example.org/pause"
)

// TestUbuntusUserDataJoinsWithTheSettingsOfAClass boots the user data of Ubuntu on a Debian 13,
// which has the same cloud-init, the same units and none of the packages that a kubelet needs.
// Its class has each setting, except those of a downloaded containerd. The machine prints the
// results of the settings. This is the longest test of real VMs, and in the last of their files:
// Go resumes parallel tests from the last one backwards, so if it were in an earlier file, it
// would run alone at the end.
func TestUbuntusUserDataJoinsWithTheSettingsOfAClass(t *testing.T) {
	kit.OnlyInLong(t, "TestARealDebianJoinsAndRunsAPod")
	t.Parallel()
	f := plane.NewRealFleet(t, localcloud.ImageDebian13Real)
	d := newDownloads(t)
	class := f.RealClass("real", localcloud.ImageDebian13Real, "ubuntu-24.04-v1", map[string]string{"extraPackages": "hello"})
	d.apply(t, &class.Spec.OperatingSystem)
	startReal(t, f, class)
	node := awaitRealNode(t, f)
	if info := node.Status.NodeInfo; !strings.HasPrefix(info.ContainerRuntimeVersion, "containerd://1.7") || !strings.HasPrefix(info.OSImage, "Debian GNU/Linux 13") {
		t.Errorf("the Node is not the real Debian 13: %+v", info)
	}

	pod := realPod(f, node.Name)
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].ImagePullPolicy = mirroredImage, corev1.PullAlways
	awaitPod(t, f, pod)

	awaitConsole(t, f, "drover-bootstrap: all steps are done")
	text := console(t, f)
	for _, want := range []string{
		"proof before the join: containerd is active, the kubelet is inactive",
		"proof after the join: the extra package says Hello, world!",
		"proof after the join: the file says managed by the platform team",
		"proof after the join: the step before the join wrote data",
		"proof after the join: the unit is active",
		"proof after the join: containerd may open 524287 files",
		"proof after the join: containerd has the proxy " + d.proxyURL(),
		"proof after the join: the time is of ntp1.example.org ntp2.example.org",
		"proof after the join: operator logs in with " + sshKey,
		"drover: the certificates are trusted already",
		"proof after the join: pods get the name servers of /run/systemd/resolve/resolv.conf",
		"acme-credentials: was asked for " + mirroredRepository,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the console does not show %q", want)
		}
	}
	// The kubelet and the provider were downloaded through the proxy, from a server that is only
	// trusted by the CA bundle of the class. The proxy got no other request.
	got, refused := d.seen()
	for _, want := range []string{"/acme-credentials", "/release/" + kit.NewVersion + "/bin/linux/amd64/kubelet"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s was not downloaded through the proxy, but %q", want, got)
		}
	}
	if len(refused) > 0 {
		t.Errorf("noProxy did not keep %q from the proxy", refused)
	}
	endReal(t, f)
}

// downloadsHost is only reachable through the proxy: no name server has it.
const downloadsHost = "downloads.example.com"

// downloads is a company's server: its certificate is from the company's own authority, and it is
// behind a proxy.
type downloads struct {
	kubelet, provider []byte
	server, proxy     *httptest.Server

	mu           sync.Mutex
	got, refused []string
}

// credentialProvider prints the image for which the kubelet requests credentials, and returns
// none.
const credentialProvider = `#!/bin/sh
image=$(sed -n 's/.*"image":"\([^"]*\)".*/\1/p')
echo "acme-credentials: was asked for $image" >/dev/console
echo '{"apiVersion": "credentialprovider.kubelet.k8s.io/v1", "kind": "CredentialProviderResponse", "cacheKeyType": "Image", "cacheDuration": "1h", "auth": {}}'
`

func newDownloads(t *testing.T) *downloads {
	t.Helper()
	kubelet, err := os.ReadFile(kit.RealKubelet(kit.NewVersion))
	if err != nil {
		t.Fatal(err)
	}
	d := &downloads{kubelet: kubelet, provider: []byte(credentialProvider)}
	d.server = httptest.NewTLSServer(http.HandlerFunc(d.serve))
	t.Cleanup(d.server.Close)
	d.proxy = httptest.NewServer(http.HandlerFunc(d.connect))
	t.Cleanup(d.proxy.Close)
	return d
}

func (d *downloads) serve(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	d.got = append(d.got, r.URL.Path)
	d.mu.Unlock()
	switch r.URL.Path {
	case "/release/" + kit.NewVersion + "/bin/linux/amd64/kubelet":
		_, _ = w.Write(d.kubelet)
	case "/acme-credentials":
		_, _ = w.Write(d.provider)
	default:
		http.NotFound(w, r)
	}
}

// connect a client of the proxy to the server, and to no other host.
func (d *downloads) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect || r.Host != downloadsHost+":443" {
		d.mu.Lock()
		d.refused = append(d.refused, r.Method+" "+r.Host)
		d.mu.Unlock()
		http.Error(w, "the proxy connects with "+downloadsHost+" only", http.StatusForbidden)
		return
	}
	server, err := net.Dial("tcp", d.server.Listener.Addr().String())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer server.Close()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(server, buffered); server.Close() })
	both.Go(func() { _, _ = io.Copy(client, server); client.Close() })
	both.Wait()
}

// seen returns the downloaded paths, and the other requests to the proxy.
func (d *downloads) seen() (got, refused []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.got), slices.Clone(d.refused)
}

// proxyURL is the URL of the proxy for VMs.
func (d *downloads) proxyURL() string {
	return fmt.Sprintf("http://%s:%d", localcloud.HostAddress, d.proxy.Listener.Addr().(*net.TCPAddr).Port)
}

// apply each setting of a class.
func (d *downloads) apply(t *testing.T, s *machinev1alpha1.OperatingSystem) {
	t.Helper()
	sum := func(b []byte) string { h := sha256.Sum256(b); return hex.EncodeToString(h[:]) }
	s.KubeletDownloadURL = "https://" + downloadsHost + "/release"
	s.KubeletDigests = []machinev1alpha1.Digest{{Version: kit.NewVersion, Architecture: "amd64", SHA256: sum(d.kubelet)}}
	s.CABundle = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: d.server.Certificate().Raw}))
	s.Proxy = &machinev1alpha1.Proxy{HTTP: d.proxyURL(), HTTPS: d.proxyURL(), NoProxy: []string{localcloud.GatewayAddress, localcloud.HostAddress}}
	s.RegistryMirrors = []machinev1alpha1.RegistryMirror{{Registry: "registry.example.org", Mirrors: []machinev1alpha1.RegistryEndpoint{{URL: "http://" + localcloud.GatewayAddress}}}}
	s.SandboxImage = mirroredImage
	s.ImageCredentialProviders = &machinev1alpha1.ImageCredentialProviders{
		Config: runtime.RawExtension{Raw: []byte(`{"providers": [{"name": "acme-credentials", "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "matchImages": ["registry.example.org"], "defaultCacheDuration": "1h"}]}`)},
		Downloads: []machinev1alpha1.CredentialProviderDownload{{
			Name: "acme-credentials", Architecture: "amd64", URL: "https://" + downloadsHost + "/acme-credentials", SHA256: sum(d.provider),
		}},
	}
	// Debian has a group of this name, but no such user.
	s.SSH = &machinev1alpha1.SSHAccess{User: "operator", AuthorizedKeys: []string{sshKey}}
	s.NTPServers = []string{"ntp1.example.org", "ntp2.example.org"}
	s.Files = []machinev1alpha1.MachineFile{{Path: "/etc/acme/owner", Content: "managed by the platform team\n", Mode: "0600"}}
	s.Units = []machinev1alpha1.MachineUnit{
		{Name: "containerd.service", DropIns: []machinev1alpha1.UnitDropIn{{Name: "60-limits.conf", Content: "[Service]\nLimitNOFILE=524287\n"}}},
		{Name: "acme-agent.service", Enabled: true, Content: "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"},
	}
	s.StepsBeforeJoin = []machinev1alpha1.MachineStep{{Name: "acme-before", Script: `#!/bin/sh
set -eu
echo "proof before the join: containerd is $(systemctl is-active containerd.service), the kubelet is $(systemctl is-active kubelet.service || true)"
mkdir -p /srv/acme
echo data >/srv/acme/before
`}}
	s.StepsAfterJoin = []machinev1alpha1.MachineStep{{Name: "acme-after", Script: `#!/bin/sh
set -eu
proof() { echo "proof after the join: $*"; }
proof "the extra package says $(hello)"
proof "the file says $(cat /etc/acme/owner)"
proof "the step before the join wrote $(cat /srv/acme/before)"
proof "the unit is $(systemctl is-active acme-agent.service)"
proof "containerd may open $(systemctl show --property=LimitNOFILE --value containerd.service) files"
pid=$(systemctl show --property=MainPID --value containerd.service)
proof "containerd has the proxy $(tr '\0' '\n' <"/proc/$pid/environ" | sed -n 's/^HTTPS_PROXY=//p')"
proof "the time is of $(timedatectl show-timesync --property=SystemNTPServers --value)"
proof "operator logs in with $(cat ~operator/.ssh/authorized_keys)"
proof "pods get the name servers of $(readlink /etc/kubernetes/resolv.conf)"
`}}
}
