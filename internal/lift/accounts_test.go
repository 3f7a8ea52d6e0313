package lift

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAccountsAreSharedAndForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Accounts[string, *int]
		made := 0
		get := func(key string) *int {
			c, err := a.Get(key, func() (*int, error) { made++; return new(int), nil })
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		first := get("a")
		if get("a") != first || get("b") == first || made != 2 {
			t.Errorf("%d clients made", made)
		}
		time.Sleep(idleAfter)
		get("b")
		time.Sleep(time.Minute)
		get("b")
		if len(a.known) != 1 {
			t.Errorf("%d accounts are known, want only the one that is used", len(a.known))
		}
	})
}
