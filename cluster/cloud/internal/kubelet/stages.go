package kubelet

import (
	"context"
	_ "embed"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

// podDelete replaces kwok's stage of that name, which has no grace period.
//
//go:embed pod-delete.yaml
var podDelete string

// podReadyAgain is for pods of a Node that was disconnected.
//
//go:embed pod-ready-again.yaml
var podReadyAgain string

// podUnready is for pods whose probe fails.
//
//go:embed pod-unready.yaml
var podUnready string

// podLifecycle is shared by all VMs, because it is large and the same for each.
var podLifecycle = sync.OnceValues(func() (lifecycle.Lifecycle, error) {
	var stages []*internalversion.Stage
	for _, text := range []string{fast.DefaultPodReady, fast.DefaultPodComplete, podReadyAgain, podUnready, podDelete} {
		s, err := config.UnmarshalWithType[*internalversion.Stage](text)
		if err != nil {
			return nil, err
		}
		stages = append(stages, s)
	}
	lc, err := lifecycle.NewLifecycle(stages)
	if err != nil {
		return nil, err
	}
	// A stage compiles its expressions at the first match, without a lock. Match once here, before
	// two VMs can do so at the same time.
	_, err = lc.Match(context.Background(), &lifecycle.Event{Data: &corev1.Pod{}})
	return lc, err
})
