package machine

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/controller/mr"
)

// overlayFor is how long a write is remembered that the cache does not show. By then the cache has shown it, or
// the object is gone again.
const overlayFor = time.Minute

// An overlay has the objects that this process wrote last. A cache lags behind them: a reconcile that trusted
// it would repeat a write, or get a conflict.
type overlay struct {
	now func() time.Time

	mu       sync.Mutex
	objects  map[overlayKey]overlaid
	machines map[types.NamespacedName]types.UID
}

type overlayKey struct {
	kind schema.GroupKind
	name types.NamespacedName
}

type overlaid struct {
	object client.Object
	at     time.Time
}

func newOverlay(now func() time.Time) *overlay {
	return &overlay{now: now, objects: map[overlayKey]overlaid{}, machines: map[types.NamespacedName]types.UID{}}
}

func overlayKeyOf(obj client.Object) overlayKey {
	return overlayKey{kind: obj.GetObjectKind().GroupVersionKind().GroupKind(), name: client.ObjectKeyFromObject(obj)}
}

// put stores an object as the API server returned it.
func (o *overlay) put(obj client.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.objects[overlayKeyOf(obj)] = overlaid{object: obj, at: o.now()}
}

// drop removes an object that is gone.
func (o *overlay) drop(obj client.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.objects, overlayKeyOf(obj))
}

// get returns the written object if the cache does not have it yet: cached is nil, or older.
func (o *overlay) get(key overlayKey, cached client.Object) (client.Object, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	is, ok := o.objects[key]
	if !ok {
		return nil, false
	}
	if o.now().Sub(is.at) > overlayFor || cached != nil && !mr.IsOlder(cached, is.object) {
		delete(o.objects, key)
		return nil, false
	}
	return is.object, true
}

// isOwn reports whether an object is as this process wrote it last.
func (o *overlay) isOwn(obj client.Object, kind schema.GroupKind) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	is, ok := o.objects[overlayKey{kind: kind, name: client.ObjectKeyFromObject(obj)}]
	return ok && is.object.GetResourceVersion() == obj.GetResourceVersion()
}

// knows records the UID of a Machine, which is needed once the Machine is gone.
func (o *overlay) knows(name types.NamespacedName, uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.machines[name] = uid
}

func (o *overlay) uidOf(name types.NamespacedName) (types.UID, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	uid, ok := o.machines[name]
	return uid, ok
}

func (o *overlay) dropMachine(name types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.machines, name)
	delete(o.objects, overlayKey{kind: machineKind.GroupKind(), name: name})
}

// A memory has values by the UIDs of Machines.
type memory[T any] struct {
	mu     sync.Mutex
	values map[types.UID]T
}

func newMemory[T any]() *memory[T] { return &memory[T]{values: map[types.UID]T{}} }

func (m *memory[T]) get(uid types.UID) (T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.values[uid]
	return v, ok
}

func (m *memory[T]) set(uid types.UID, v T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[uid] = v
}

func (m *memory[T]) drop(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, uid)
}
