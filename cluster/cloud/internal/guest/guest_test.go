package guest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"k8s.io/utils/clock"

	"github.com/drover-dev/drover/cluster/cloud/internal/kubelet"
	"github.com/drover-dev/drover/test/patience"
)

// host records the console output of a guest.
type host struct {
	mu  sync.Mutex
	out strings.Builder
}

func (h *host) Save(kubelet.State) error { return nil }

func (h *host) Console(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Fprintf(&h.out, format+"\n", args...)
}

func (h *host) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.out.String()
}

const installed = `#cloud-config
write_files:
- {path: /opt/drover/install-kubelet.sh, content: x}
- {path: /etc/systemd/system/kubelet.service, content: "[Service]\nExecStart=/usr/local/bin/kubelet --kubeconfig=/k --bootstrap-kubeconfig=/b"}
runcmd:
- [/opt/drover/install-kubelet.sh, v1.35.4]
- [systemctl, enable, --now, kubelet]
`

func TestTheConsoleShowsHowFarTheBootCame(t *testing.T) {
	facts := kubelet.Facts{ID: "vm-1", Name: "a", OSImage: "Debian"}
	cases := map[string]struct {
		userData string
		want     string
	}{
		"NoUserData":    {"", "booting Debian on a\nfirst boot: there is no user data\n"},
		"NoCloudConfig": {"#!/bin/sh", "booting Debian on a\nfirst boot: user data: its first line must be #cloud-config\n"},
		"NothingStarted": {"#cloud-config\n", "booting Debian on a\nfirst boot: wrote 0 files\n" +
			"kubelet.service: was never started: nothing runs \"systemctl enable --now kubelet\"\n"},
		"AFileIsMissing": {installed, "booting Debian on a\nfirst boot: wrote 2 files\nfirst boot: ran /opt/drover/install-kubelet.sh\nfirst boot: ran systemctl\n" +
			"kubelet: --bootstrap-kubeconfig: /b is missing\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, first := range []bool{true, false} {
				h, g := &host{}, New(clock.RealClock{})
				g.Start(VM{Facts: facts, UserData: []byte(tc.userData), FirstBoot: first}, h)
				g.all.Wait()
				want := tc.want
				if !first {
					want = "" // The first boot wrote it already.
				}
				if got := h.text(); got != want {
					t.Errorf("first boot %v: console\n%s\nwant\n%s", first, got, want)
				}
			}
		})
	}
}

func TestAVMThatCannotJoinKeepsTryingUntilItIsStopped(t *testing.T) {
	userData := strings.Replace(installed, "write_files:\n", `write_files:
- path: /b
  content: |
    {apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
     clusters: [{name: c, cluster: {server: "https://127.0.0.1:1", insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: secret}}]}
`, 1)
	h, g := &host{}, New(clock.RealClock{})
	vm := VM{Facts: kubelet.Facts{ID: "vm-1", Name: "a"}, UserData: []byte(userData), FirstBoot: true}
	g.Start(vm, h)
	g.Start(vm, h) // It runs already.
	patience.Eventually(t, func(context.Context) string {
		if text := h.text(); !strings.Contains(text, "TLS bootstrap failed") {
			return "console:\n" + text
		}
		return ""
	})
	g.Stop("vm-1")
	g.Stop("vm-1")
	g.all.Wait()
	if n := strings.Count(h.text(), "booting"); n != 1 || strings.Contains(h.text(), "secret") {
		t.Errorf("it booted %d times, or shows its token:\n%s", n, h.text())
	}
	g.Close()
	g.Start(vm, h)
	if n := strings.Count(h.text(), "booting"); n != 1 {
		t.Error("it was started after Close")
	}
}
