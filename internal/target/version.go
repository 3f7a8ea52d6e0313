package target

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
)

// versionAge is for how long the version of an API server counts. After an upgrade, Machines
// with a newer kubelet wait at most that long.
const versionAge = time.Minute

// A serverVersion is the version of an API server as it was last read. It is read by whichever
// call finds it too old, and so perhaps by several at once: none waits for another, because
// the lanes limit how many calls a slow cluster holds.
type serverVersion struct {
	mu      sync.Mutex
	version string
	read    time.Time
}

func (s *serverVersion) get(now time.Time) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version, !s.read.IsZero() && now.Sub(s.read) < versionAge
}

func (s *serverVersion) set(v string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.read = v, now
}

// Version returns the version of the API server, as it was within the last minute, or "" if
// the credentials may not read it. A probe reads it too.
func (c *Conn) Version(ctx context.Context) (string, error) {
	if v, ok := c.link.serverVersion.get(c.link.now()); ok {
		return v, nil
	}
	v, err := readVersion(ctx, c.Kube)
	switch {
	case kerrors.IsForbidden(err), kerrors.IsNotFound(err):
		v = &version.Info{}
	case err != nil:
		return "", c.classifyAll(err)
	}
	c.link.serverVersion.set(v.GitVersion, c.link.now())
	return v.GitVersion, nil
}

// readVersion from the API server. It is called again by those who need it: client-go would repeat a call whose connection
// breaks each second, until the call times out.
func readVersion(ctx context.Context, kube kubernetes.Interface) (*version.Info, error) {
	raw, err := kube.Discovery().RESTClient().Get().MaxRetries(0).AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	v := &version.Info{}
	if err := json.Unmarshal(raw, v); err != nil {
		return nil, fmt.Errorf("cannot decode the version: %w", err)
	}
	return v, nil
}
