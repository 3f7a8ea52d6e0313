package kubelet

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// correctionDelay is the time after which the kubelet overwrites a condition that another client changed. A real kubelet does so
// within ten seconds. Tests do not wait that long, and a second is enough for watchers to see the change.
const correctionDelay = time.Second

// reportStatus keeps the Node's conditions. If another client changed them, such as the
// node-lifecycle controller after an outage, it corrects them. Otherwise it writes as rarely as a
// kubelet.
func (k *kubelet) reportStatus(ctx context.Context) {
	// A restart of the cloud must not make every Node's status due at once.
	timer := k.clock.NewTimer(wait.Jitter(k.StatusReport/2, 1))
	defer timer.Stop()
	present, due := true, false
	for {
		node, ok := k.nodes.current()
		if !ok && present {
			k.host.Console("kubelet: Node %s was deleted", k.NodeName)
		}
		if present = ok; ok {
			k.correctStatus(ctx, node, due)
		}
		due = false
		select {
		case <-ctx.Done():
			return
		case <-k.nodes.changed:
			select {
			case <-ctx.Done():
				return
			case <-k.clock.After(correctionDelay):
			}
		case <-timer.C():
			timer.Reset(wait.Jitter(k.StatusReport, 0.1))
			due = true
		}
	}
}

// correctStatus writes the status of the Node if it is due, or if it differs from that of the kubelet.
func (k *kubelet) correctStatus(ctx context.Context, node *corev1.Node, due bool) {
	want, drifted := wantConditions(node.Status.Conditions, k.clock.Now())
	status := map[string]any{"conditions": want}
	if node.Status.NodeInfo.BootID != k.Facts.BootID {
		// The VM was rebooted.
		status["nodeInfo"], drifted = map[string]any{"bootID": k.Facts.BootID}, true
	}
	if !due && !drifted {
		return
	}
	k.retry(ctx, "report status", func(ctx context.Context) error {
		err := k.patchStatus(ctx, status)
		if apierrors.IsNotFound(err) {
			return nil // The watch reports the deletion.
		}
		return err
	})
}

// wantConditions returns the conditions of a healthy kubelet. A condition whose status is unchanged
// keeps the time of its last transition. drifted reports whether any status differs.
func wantConditions(have []corev1.NodeCondition, now time.Time) (want []corev1.NodeCondition, drifted bool) {
	want = conditions(now, now)
	for i, w := range want {
		same := false
		for _, h := range have {
			if h.Type == w.Type && h.Status == w.Status {
				want[i].LastTransitionTime = h.LastTransitionTime
				same = true
			}
		}
		drifted = drifted || !same
	}
	return want, drifted
}
