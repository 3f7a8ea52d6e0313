package native

import "sync"

// Views keep a part of the observation of each VM for the step that follows it. The zero value is empty.
type Views[V any] struct {
	mu sync.Mutex
	of map[string]V
}

// Remember keeps the view of the VM with the external name.
func (s *Views[V]) Remember(externalName string, v V) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string]V{}
	}
	s.of[externalName] = v
}

// Recall returns the view of a VM and forgets it. Without a view, it returns the zero value.
func (s *Views[V]) Recall(externalName string) V {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.of[externalName]
	delete(s.of, externalName)
	return v
}
