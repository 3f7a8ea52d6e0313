package fakes

import "sync"

// A Lock guards the state of a fake, and keeps calls until it is released: a hook such as Boot may call the fake.
type Lock struct {
	sync.Mutex
	later []func()
}

// Later has f called when the lock is released. The lock is held.
func (l *Lock) Later(f func()) { l.later = append(l.later, f) }

// Release unlocks, and then makes the calls.
func (l *Lock) Release() {
	later := l.later
	l.later = nil
	l.Unlock()
	for _, f := range later {
		f()
	}
}
