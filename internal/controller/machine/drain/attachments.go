package drain

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/drover-dev/drover/internal/target"
)

// attachmentsFor is how long one list of VolumeAttachments serves all drains in a cluster. VolumeAttachments
// cannot be listed by Node.
const attachmentsFor = 2 * time.Second

// Attachments caches the VolumeAttachments of each cluster.
type Attachments struct {
	mu   sync.Mutex
	seen map[target.Ref]*attachmentList
}

type attachmentList struct {
	// busy has one place, for the worker that reads or refreshes the list.
	busy chan struct{}
	at   time.Time
	list []attachment
}

// attachmentsWait is how long a worker waits for the request of another worker: a slow cluster must not block
// all workers at once.
const attachmentsWait = 2 * time.Second

var errAttachmentsSlow = errors.New("the list of VolumeAttachments takes long: it is asked for again later")

// in returns the attachments in a cluster. Concurrent drains share a list, but a drain never uses a list from
// before it began: a volume may have been attached since.
func (a *Attachments) in(ctx context.Context, ref target.Ref, kube kubernetes.Interface, began, now time.Time) ([]attachment, error) {
	a.mu.Lock()
	if a.seen == nil {
		a.seen = map[target.Ref]*attachmentList{}
	}
	l, ok := a.seen[ref]
	if !ok {
		l = &attachmentList{busy: make(chan struct{}, 1)}
		a.seen[ref] = l
	}
	a.mu.Unlock()

	timer := time.NewTimer(attachmentsWait)
	defer timer.Stop()
	select {
	case l.busy <- struct{}{}:
		defer func() { <-l.busy }()
	case <-timer.C:
		return nil, errAttachmentsSlow
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if !l.at.IsZero() && now.Sub(l.at) < attachmentsFor && !l.at.Before(began) {
		return l.list, nil
	}
	got, err := kube.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	l.list, l.at = nil, now
	for _, va := range got.Items {
		if pv := va.Spec.Source.PersistentVolumeName; pv != nil {
			l.list = append(l.list, attachment{volume: *pv, node: va.Spec.NodeName, attached: va.Status.Attached})
		}
	}
	return l.list, nil
}

// claimsOf returns the names of a pod's claims.
func claimsOf(p *corev1.Pod) []string {
	var out []string
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			out = append(out, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			out = append(out, p.GetName()+"-"+v.Name)
		}
	}
	return out
}

// volumeOf returns the volume of a claim, "" if it has none. A bound claim keeps its volume.
func volumeOf(ctx context.Context, kube kubernetes.Interface, known map[string]string, namespace, claim string) (string, error) {
	key := namespace + "/" + claim
	if v, ok := known[key]; ok {
		return v, nil
	}
	c, err := kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, claim, metav1.GetOptions{})
	if kerrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if c.Spec.VolumeName != "" {
		known[key] = c.Spec.VolumeName
	}
	return c.Spec.VolumeName, nil
}
