package kit

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A Listener is an HTTP server of a test that counts its connections and requests.
type Listener struct {
	// URL of the server.
	URL string
	// CA of its certificate as PEM, empty without TLS.
	CA []byte

	connections, requests atomic.Int64
}

// Connections that were accepted so far.
func (l *Listener) Connections() int64 { return l.connections.Load() }

// Requests that arrived so far.
func (l *Listener) Requests() int64 { return l.requests.Load() }

// Listen on any port of an IP address until the test ends, with or without TLS. The
// certificate is for 127.0.0.1, ::1 and example.com.
func Listen(t testing.TB, ip string, withTLS bool, handler http.HandlerFunc) *Listener {
	t.Helper()
	l := &Listener{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.requests.Add(1)
		handler(w, r)
	}))
	_ = server.Listener.Close()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server.Listener = &countingListener{Listener: listener, n: &l.connections}
	server.Config.ErrorLog = nil
	if withTLS {
		server.EnableHTTP2 = true
		server.StartTLS()
		l.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	} else {
		server.Start()
	}
	l.URL = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return l
}

type countingListener struct {
	net.Listener
	n *atomic.Int64
}

func (c *countingListener) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.n.Add(1)
	}
	return conn, err
}

// KubeconfigOf returns a kubeconfig of a cluster with a token. The caller chooses the cluster.
func KubeconfigOf(t testing.TB, cluster clientcmdapi.Cluster) []byte {
	t.Helper()
	b, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": &cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: "t"}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// residentOf returns the resident memory of a process, in bytes.
func residentOf(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(text), "\n") {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no VmRSS", pid)
}

// A MemoryWatch records the highest memory usage of a component.
type MemoryWatch struct {
	most     atomic.Int64
	restarts atomic.Int64
	stop     context.CancelFunc
	done     chan struct{}
}

// WatchMemory watches the memory of a component until Done.
func (p *Plane) WatchMemory(t testing.TB, component string) *MemoryWatch {
	t.Helper()
	pid, err := p.pidOf(t.Context(), component)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(stop)
	w := &MemoryWatch{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			n, err := residentOf(pid)
			if err != nil {
				// The process has ended. Its successor has another PID.
				if next, err := p.pidOf(ctx, component); err == nil && next != pid {
					pid = next
					w.restarts.Add(1)
				}
			}
			w.most.Store(max(w.most.Load(), n))
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return w
}

// Done ends the watch. It returns the highest memory usage of the component, in bytes, and the
// number of its restarts.
func (w *MemoryWatch) Done() (most, restarts int64) {
	w.stop()
	<-w.done
	return w.most.Load(), w.restarts.Load()
}

func (p *Plane) pidOf(ctx context.Context, component string) (int, error) {
	s, err := p.Status(ctx)
	if err != nil {
		return 0, err
	}
	for _, c := range s.Components {
		if c.Name == component && c.PID != 0 {
			return c.PID, nil
		}
	}
	return 0, fmt.Errorf("there is no process of component %s", component)
}

// reporting are the kinds of the objects that report facts which Drover learns from a target
// cluster.
var reporting = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Event"},
	machinev1alpha1.MachineDeploymentGroupVersionKind,
	machinev1alpha1.MachineSetGroupVersionKind,
	machinev1alpha1.MachineGroupVersionKind,
	clusterv1alpha1.ProviderConfigGroupVersionKind,
	clusterv1alpha1.ClusterProviderConfigGroupVersionKind,
}

// Quotes returns the place of a text in the objects and events of a namespace, empty if there is
// none.
func (f Fleet) Quotes(ctx context.Context, text string) string {
	for _, gvk := range reporting {
		b, err := f.textOf(ctx, gvk)
		if err != nil {
			return fmt.Sprintf("%s: %v", gvk, err)
		}
		if i := bytes.Index(b, []byte(text)); i >= 0 {
			return fmt.Sprintf("%s quotes it: ...%s", gvk.Kind, b[max(0, i-200):min(len(b), i+len(text)+50)])
		}
	}
	return ""
}

// textOf all objects of a kind in the namespace, as JSON.
func (f Fleet) textOf(ctx context.Context, gvk schema.GroupVersionKind) ([]byte, error) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(gvk)
	if err := f.Client.List(ctx, l, client.InNamespace(f.Namespace)); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return l.MarshalJSON()
}
