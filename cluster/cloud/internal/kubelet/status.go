package kubelet

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// reportStatus keeps the Node's conditions. If another client changed them, such as the
// node-lifecycle controller after an outage, it corrects them at once. Otherwise it writes as
// rarely as a kubelet.
func (k *kubelet) reportStatus(ctx context.Context) {
	// A restart of the cloud must not make every Node's status due at once.
	timer := k.clock.NewTimer(wait.Jitter(k.StatusReport/2, 1))
	defer timer.Stop()
	present := true
	for {
		due := false
		select {
		case <-ctx.Done():
			return
		case <-k.nodes.changed:
		case <-timer.C():
			timer.Reset(wait.Jitter(k.StatusReport, 0.1))
			due = true
		}
		node, ok := k.nodes.current()
		if !ok && present {
			k.host.Console("kubelet: Node %s was deleted", k.NodeName)
		}
		present = ok
		if !ok {
			continue
		}
		want, drifted := wantConditions(node.Status.Conditions, k.clock.Now())
		if !due && !drifted {
			continue
		}
		k.retry(ctx, "report status", func(ctx context.Context) error {
			err := k.patchStatus(ctx, map[string]any{"conditions": want})
			if apierrors.IsNotFound(err) {
				return nil // The watch reports the deletion.
			}
			return err
		})
	}
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
