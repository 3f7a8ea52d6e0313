package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// serviceConfig balances between the Pods of a Function, whose Service is headless, and
// lets calls wait for a Function that starts.
const serviceConfig = `{
	"loadBalancingConfig": [{"round_robin": {}}],
	"methodConfig": [{"name": [{}], "waitForReady": true}]
}`

// maxBackoff between two attempts to connect. It is less than a call waits, so that a
// Function that is back is seen by the next call. gRPC's default is 120 s.
const maxBackoff = 5 * time.Second

// connect returns the connection to a Function. It does not wait until it is there.
func (f *Functions) connect(name, endpoint string) (*grpc.ClientConn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if conn, ok := f.connections[name]; ok {
		if conn.Target() == endpoint {
			return conn, nil
		}
		f.drop(name)
	}
	// Without certificates a handshake can only fail, and calls would wait for it.
	if _, err := loadClientTLS(f.CertsDir); err != nil {
		return nil, err
	}
	retries := backoff.DefaultConfig
	retries.MaxDelay = maxBackoff
	conn, err := grpc.NewClient(endpoint,
		grpc.WithTransportCredentials(&reloadingTLS{dir: f.CertsDir}),
		grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: retries, MinConnectTimeout: f.timeout()}),
	)
	if err != nil {
		return nil, err
	}
	if f.connections == nil {
		f.connections = map[string]*grpc.ClientConn{}
	}
	f.connections[name] = conn
	return conn, nil
}

// drop a connection. It is closed when the calls in flight are over.
func (f *Functions) drop(name string) {
	conn := f.connections[name]
	delete(f.connections, name)
	time.AfterFunc(f.timeout(), func() { _ = conn.Close() })
}

// forget the connection to a Function that is gone.
func (f *Functions) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.connections[name]; ok {
		f.drop(name)
	}
}

// Start closes connections to Functions that are gone, until ctx is done. Then it closes all.
func (f *Functions) Start(ctx context.Context) error {
	t := time.NewTicker(pruneInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			f.closeAll()
			return nil
		case <-t.C:
			// An error is no harm: the connections are closed the next time.
			_ = f.Prune(ctx)
		}
	}
}

// Prune closes the connections to Functions that are gone.
func (f *Functions) Prune(ctx context.Context) error {
	f.mu.Lock()
	connected := slices.Collect(maps.Keys(f.connections))
	f.mu.Unlock()
	if len(connected) == 0 {
		return nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(functionRevisions)
	if err := f.Revisions.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("cannot list FunctionRevisions: %w", err)
	}
	installed := map[string]bool{}
	for _, revision := range list.Items {
		installed[revision.GetLabels()[labelPackage]] = true
	}
	for _, name := range connected {
		if !installed[name] {
			f.forget(name)
		}
	}
	return nil
}

func (f *Functions) closeAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, conn := range f.connections {
		_ = conn.Close()
		delete(f.connections, name)
	}
}
