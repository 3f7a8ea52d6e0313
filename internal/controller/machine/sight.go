package machine

import (
	"context"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/drover-dev/drover/internal/target"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A sight is the view of a Node during a pass.
type sight struct {
	wn   *machineNode
	node *corev1.Node
	pass drainPass
	// list has the pods as the API server returned them, pods their summary in the same order.
	list []corev1.Pod
	pods []pod
	mem  *drainMemory
}

// left reports whether a pod still has to leave the Node.
func (s sight) left() bool {
	for _, p := range s.pods {
		if s.pass.decide(p) != ignore {
			return true
		}
	}
	return false
}

func (s sight) claims() bool {
	for i := range s.list {
		if len(claimsOf(&s.list[i])) > 0 {
			return true
		}
	}
	return false
}

// volumes returns the volumes that leave the Node, given those that were recorded last, and adds to the pods
// the volumes that they use. Without the right to read volumes, the drain ignores them.
func (x *nodeKeeper) volumes(ctx context.Context, s sight, was []machinev1alpha1.MovingVolume) ([]machinev1alpha1.MovingVolume, error) {
	if s.left() && !s.claims() && len(was) == 0 {
		return nil, nil
	}
	v, err := x.viewVolumes(ctx, s)
	if kerrors.IsForbidden(err) {
		x.record.Event(s.wn.Machine, event.Warning(machinev1alpha1.EventVolumesUnreadable, fmt.Errorf("volumes are not waited for: %w", err)))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	moving := v.move(was)
	if stuck := inState(moving, machinev1alpha1.VolumeStuck); len(stuck) > 0 {
		x.record.Event(s.wn.Machine, event.Warning(machinev1alpha1.EventVolumeDetachTimeout, fmt.Errorf("the volumes %s were not detached from Node %s within %s, and are not waited for", strings.Join(stuck, ", "), v.node, v.detach)))
	}
	return moving, nil
}

func (x *nodeKeeper) viewVolumes(ctx context.Context, s sight) (volumeView, error) {
	d := s.wn.Parameters.Drain
	v := volumeView{
		now: s.pass.now, node: s.node.GetName(), silent: s.pass.silent, used: map[string]bool{},
		detach: d.VolumeDetachTimeout.Duration, reattach: d.VolumeReattachTimeout.Duration,
	}
	var err error
	if v.attachments, err = x.attachments.in(ctx, target.RefOf(s.wn.Machine), x.kube, s.mem.began, s.pass.now); err != nil {
		return v, err
	}
	here := v.here()
	if len(here) == 0 {
		return v, nil
	}
	list := s.list
	if !s.left() {
		// The volumes that are still in use now belong to pods that stay: those of DaemonSets.
		all, err := x.kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", v.node).String()})
		if err != nil {
			return v, err
		}
		list = all.Items
	}
	for i := range list {
		if readPod(&list[i]).finished {
			continue
		}
		for _, claim := range claimsOf(&list[i]) {
			name, err := volumeOf(ctx, x.kube, s.mem.volumes, list[i].GetNamespace(), claim)
			if err != nil {
				return v, err
			}
			if !here[name] {
				continue
			}
			v.used[name] = true
			if s.left() {
				s.pods[i].volumes = append(s.pods[i].volumes, name)
			}
		}
	}
	return v, nil
}
