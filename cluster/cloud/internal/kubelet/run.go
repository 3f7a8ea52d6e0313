package kubelet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// State is the state of a kubelet that must survive a restart of the process that simulates it.
type State struct {
	// Client is the kubelet's identity system:node:NAME.
	Client KeyPair `json:"client,omitzero"`
	// Serving is the kubelet's serving certificate.
	Serving KeyPair `json:"serving,omitzero"`
	// Registered means that the Node was created. If the Node is deleted, it is not created again:
	// only the boot of a VM registers a Node.
	Registered bool `json:"registered,omitempty"`
}

// KeyPair is PEM. The certificate is empty until the request is signed.
type KeyPair struct {
	Key         []byte `json:"key,omitempty"`
	Certificate []byte `json:"certificate,omitempty"`
}

// Host is the VM that a kubelet runs on.
type Host interface {
	// Save stores the state. It fails if the VM is deleted.
	Save(State) error
	// Console writes a line to the VM's console.
	Console(format string, args ...any)
}

// kubelet is a running kubelet.
type kubelet struct {
	*Plan
	host  Host
	clock clock.WithTicker

	mu    sync.Mutex
	state State

	client kubernetes.Interface
	conns  *connections
	nodes  *nodeWatch
}

// Run runs a kubelet until the context ends. After it has returned, no request of the kubelet
// reaches the API server.
func Run(ctx context.Context, p *Plan, s State, host Host, c clock.WithTicker) {
	k := &kubelet{Plan: p, host: host, clock: c, state: s}
	if err := k.run(ctx); err != nil && ctx.Err() == nil {
		host.Console("kubelet: %v", err)
	}
}

func (k *kubelet) run(ctx context.Context) error {
	if len(k.state.Client.Certificate) == 0 {
		k.retry(ctx, "TLS bootstrap", k.bootstrap)
	}
	if ctx.Err() != nil {
		return nil
	}
	var err error
	if k.client, k.conns, err = k.connect(); err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	defer k.conns.close()
	if k.Register && !k.state.Registered {
		k.retry(ctx, "register Node", k.register)
	}

	var all sync.WaitGroup
	defer all.Wait()
	k.nodes = newNodeWatch(k.client, k.NodeName)
	all.Go(func() { k.nodes.run(ctx) })
	if !k.nodes.waitForSync(ctx) {
		return nil
	}
	if _, ok := k.nodes.current(); !ok {
		k.host.Console("kubelet: Node %s is not there; it is registered only at boot", k.NodeName)
	}
	all.Go(func() { k.renewLease(ctx) })
	all.Go(func() { k.reportStatus(ctx) })
	if err := k.runPods(ctx, &all); err != nil {
		return err
	}
	k.keepCertificates(ctx, &all)
	return nil
}

// save changes the state, at the host first.
func (k *kubelet) save(change func(*State)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	next := k.state
	change(&next)
	if err := k.host.Save(next); err != nil {
		return err
	}
	k.state = next
	return nil
}

func (k *kubelet) saved() State {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state
}

// retry repeats do until it succeeds or the kubelet ends. It writes an error to the console only if
// it differs from the previous one.
func (k *kubelet) retry(ctx context.Context, what string, do func(context.Context) error) {
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 6, Cap: 30 * time.Second}
	last := ""
	for ctx.Err() == nil {
		err := do(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		if text := err.Error(); text != last {
			last = text
			k.host.Console("kubelet: %s failed, will try again: %s", what, text)
		}
		select {
		case <-ctx.Done():
		case <-k.clock.After(backoff.Step()):
		}
	}
}
