package simulator

import (
	"cmp"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A resource of a kind.
type resource[T any] interface {
	comparable
	metav1.Object
	DeepCopy() T
}

// An entry of a store's log is the state of an object after a write.
type entry[T any] struct {
	name   string
	object T
	// refs of a composite resource to its children.
	refs []string
	// gone means that the object was removed.
	gone bool
}

// A store holds all objects of a kind, and all their earlier states.
type store[T resource[T]] struct {
	log  []entry[T]
	last map[string]entry[T]
}

func newStore[T resource[T]]() *store[T] { return &store[T]{last: map[string]entry[T]{}} }

// get a copy of an object, which the caller may change and put back.
func (s *store[T]) get(name string) (entry[T], bool) {
	e, ok := s.last[name]
	if ok {
		e.object = e.object.DeepCopy()
	}
	return e, ok
}

// unchanged returns an object, and whether it still has the given resource version.
func (s *store[T]) unchanged(seen T) (entry[T], bool) {
	now, ok := s.get(seen.GetName())
	return now, ok && now.object.GetResourceVersion() == seen.GetResourceVersion()
}

// list returns the stored objects themselves. They are shared with the log, and must not be changed.
func (s *store[T]) list() []T { return listed(s.last) }

func listed[T resource[T]](last map[string]entry[T]) []T {
	out := make([]T, 0, len(last))
	for _, e := range last {
		out = append(out, e.object)
	}
	slices.SortFunc(out, byName)
	return out
}

// put an object, which must not be changed afterwards.
func (s *store[T]) put(o T, refs []string) {
	o.SetResourceVersion(strconv.Itoa(len(s.log) + 1))
	e := entry[T]{name: o.GetName(), object: o, refs: slices.Clone(refs)}
	s.log = append(s.log, e)
	s.last[e.name] = e
}

func (s *store[T]) remove(name string) {
	s.log = append(s.log, entry[T]{name: name, gone: true})
	delete(s.last, name)
}

// A cache is an earlier state of a store.
type cache[T resource[T]] struct {
	of   *store[T]
	seen int
	last map[string]entry[T]
}

func newCache[T resource[T]](of *store[T]) *cache[T] {
	return &cache[T]{of: of, last: map[string]entry[T]{}}
}

// lag is the number of writes that the cache has not read.
func (c *cache[T]) lag() int { return len(c.of.log) - c.seen }

// advance by at most n writes.
func (c *cache[T]) advance(n int) {
	for ; n > 0 && c.lag() > 0; n-- {
		e := c.of.log[c.seen]
		c.seen++
		if e.gone {
			delete(c.last, e.name)
		} else {
			c.last[e.name] = e
		}
	}
}

func (c *cache[T]) get(name string) (entry[T], bool) {
	e, ok := c.last[name]
	if ok {
		e.object = e.object.DeepCopy()
	}
	return e, ok
}

func (c *cache[T]) list() []T { return listed(c.last) }

func byName[T metav1.Object](a, b T) int { return cmp.Compare(a.GetName(), b.GetName()) }
