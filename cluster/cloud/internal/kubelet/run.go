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

// State is what a kubelet must not forget when the process that simulates it
// ends.
type State struct {
	// Client is its identity as system:node:NAME.
	Client KeyPair `json:"client,omitzero"`
	// Serving is its serving certificate.
	Serving KeyPair `json:"serving,omitzero"`
	// Registered says that the Node was made. It is not made again when it is
	// gone: only the boot of a VM registers a Node.
	Registered bool `json:"registered,omitempty"`
}

// KeyPair is PEM. The certificate is empty as long as it was only requested.
type KeyPair struct {
	Key         []byte `json:"key,omitempty"`
	Certificate []byte `json:"certificate,omitempty"`
}

// Host is the VM that a kubelet runs on.
type Host interface {
	// Save keeps the state. It fails when the VM is no more.
	Save(State) error
	// Console writes a line to the VM's console.
	Console(format string, args ...any)
}

// kubelet is one that runs.
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

// Run is a kubelet's life: it ends with the context, and nothing that it began
// reaches the API server any more when it has returned.
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

// save changes the state and keeps it.
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

// retry does it until it is done or the kubelet ends, and says on the console
// what is in the way, once for each reason.
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
