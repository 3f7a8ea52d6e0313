package target

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	// maxKept is how many objects of a kind are kept of one cluster, and maxKeptBytes the bytes of their text.
	// Kubernetes supports 5000 Nodes.
	maxKept, maxKeptBytes = 10_000, 64 << 20

	// maxAnnotations is how many bytes of annotations of one Node are kept.
	maxAnnotations = 16 << 10
)

// A cacheBudget counts the objects in a cache of one cluster. Once exceeded, it stays so.
type cacheBudget struct {
	// exceeded is called once, in a goroutine of its own.
	exceeded func(error)

	mu           sync.Mutex
	count, bytes int
	isExceeded   bool
}

func (b *cacheBudget) change(count, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count += count
	b.bytes += bytes
	if b.isExceeded || b.count <= maxKept && b.bytes <= maxKeptBytes {
		return
	}
	b.isExceeded = true
	go b.exceeded(fmt.Errorf("%w: it has more than %d objects of a kind, or these have more than %d MiB", errTooLarge, maxKept, maxKeptBytes>>20))
}

// handler counts the objects of a cache.
func (b *cacheBudget) handler(size func(any) int) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { b.change(1, size(obj)) },
		UpdateFunc: func(oldObj, newObj any) { b.change(0, size(newObj)-size(oldObj)) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			b.change(-1, -size(obj))
		},
	}
}

// listed is a client for informers that list before they watch. An informer would collect a list that a watch
// delivers as a whole, without a known end, before it handles any object.
type listed struct{ kubernetes.Interface }

// IsWatchListSemanticsUnSupported is the method that client-go calls.
func (listed) IsWatchListSemanticsUnSupported() bool { return true }

// strip keeps only the fields of a Node that Drover reads.
func strip(obj any) (any, error) {
	n, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	return &corev1.Node{
		TypeMeta: n.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Generation: n.Generation,
			CreationTimestamp: n.CreationTimestamp, DeletionTimestamp: n.DeletionTimestamp,
			Labels: n.Labels, Annotations: fewAnnotations(n.Annotations),
		},
		Spec:   corev1.NodeSpec{ProviderID: n.Spec.ProviderID, Unschedulable: n.Spec.Unschedulable, Taints: n.Spec.Taints},
		Status: corev1.NodeStatus{Conditions: n.Status.Conditions, Addresses: n.Status.Addresses, NodeInfo: n.Status.NodeInfo},
	}, nil
}

// fewAnnotations returns the annotations of Drover, and the smallest other ones that fit.
func fewAnnotations(all map[string]string) map[string]string {
	if textOfMap(all) <= maxAnnotations {
		return all
	}
	size := func(key string) int {
		if strings.Contains(key, machinev1alpha1.Domain+"/") {
			return 0
		}
		return len(key) + len(all[key])
	}
	out, left := map[string]string{}, maxAnnotations
	for _, key := range slices.SortedFunc(maps.Keys(all), func(a, b string) int { return size(a) - size(b) }) {
		if left -= len(key) + len(all[key]); left < 0 {
			break
		}
		out[key] = all[key]
	}
	return out
}

// sizeOf returns the approximate bytes of text of an object.
func sizeOf(obj any) int {
	const fixed = 512 // Of the object itself.
	switch o := obj.(type) {
	case *corev1.Node:
		n := fixed + len(o.Name) + textOfMap(o.Labels) + textOfMap(o.Annotations) + len(o.Spec.ProviderID)
		for _, t := range o.Spec.Taints {
			n += 80 + len(t.Key) + len(t.Value) + len(t.Effect)
		}
		for _, c := range o.Status.Conditions {
			n += 160 + len(c.Type) + len(c.Reason) + len(c.Message)
		}
		for _, a := range o.Status.Addresses {
			n += 32 + len(a.Address) + len(a.Type)
		}
		i := o.Status.NodeInfo
		return n + len(i.KernelVersion) + len(i.OSImage) + len(i.ContainerRuntimeVersion) + len(i.KubeletVersion) + len(i.Architecture) +
			len(i.OperatingSystem) + len(i.MachineID) + len(i.SystemUUID) + len(i.BootID)
	case *certificatesv1.CertificateSigningRequest:
		n := fixed + len(o.Name) + textOfMap(o.Labels) + textOfMap(o.Annotations) + len(o.Spec.Request) + len(o.Spec.Username) + len(o.Status.Certificate)
		for _, g := range o.Spec.Groups {
			n += 16 + len(g)
		}
		for _, u := range o.Spec.Usages {
			n += 16 + len(u)
		}
		for key, values := range o.Spec.Extra {
			n += 64 + len(key)
			for _, v := range values {
				n += 16 + len(v)
			}
		}
		for _, c := range o.Status.Conditions {
			n += 160 + len(c.Reason) + len(c.Message)
		}
		return n
	}
	return fixed
}

func textOfMap(m map[string]string) int {
	n := 0
	for k, v := range m {
		n += 32 + len(k) + len(v)
	}
	return n
}
